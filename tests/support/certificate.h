// A certificate for 127.0.0.1 that the test generates, and its key.
#pragma once

#include <string>

namespace perseus::testing {

struct Certificate {
  std::string file, key_file;  ///< PEM
};

Certificate make_certificate(const std::string& folder);

}  // namespace perseus::testing
