// Reads and writes whole files: the one place of wire/ that touches the file system.
//
// Input:   reading gunzips what starts with gzip's magic bytes; never more than max_file_bytes before or after.
// Output:  a file appears under its name whole or not at all: written to a temporary neighbor, which is then renamed.
//          A link, device or pipe of that name is written as it is.
// Errors:  name the path and the system's reason: not_found for reading, cannot_write for writing, invalid_input for
//          a file that is too large or broken gzip.
// Cost:    one copy.
// Threads: any, on different paths.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus::formats {

inline constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

Result<std::string> read_file(const std::string& path, std::size_t limit = max_file_bytes);
Status write_file(const std::string& path, std::string_view content);

}  // namespace perseus::formats
