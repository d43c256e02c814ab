// A secret on the only line of a file: a token, a client's secret.
//
// Input:   a path; white space at the end of the file is ignored.
// Output:  the secret: ASCII without spaces.
// Errors:  those of reading; usage with the path, never with the content.
#pragma once

#include <string>

#include "base/result.h"

namespace perseus::cli {

Result<std::string> read_secret(const std::string& file);

}  // namespace perseus::cli
