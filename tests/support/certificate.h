// A certificate for 127.0.0.1 that the test generates, and its key.
#pragma once

#include <string>

namespace perseus::testing {

struct Certificate {
  std::string file, key_file;  ///< PEM
};

/// Valid from an hour ago, or for the hour before its end.
Certificate make_certificate(const std::string& folder, long ends_in_s = 3600);

}  // namespace perseus::testing
