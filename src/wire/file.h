// Whole files, in and out: the one place of wire/ that touches the file system.
//
// Reading: the whole content, gunzipped if it starts with gzip's magic bytes, never more than max_file_bytes before or
// after. Writing: atomic. The content appears under its name whole or not at all: it is written to a temporary
// neighbour, which is then renamed; a link, device or pipe is written as it is. Errors name the path and the system's reason: not_found for reading, cannot_write
// for writing, invalid_input for a file that is too large or broken gzip. Cost: one copy. Threads: any, on different
// paths.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus {

inline constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

Result<std::string> read_file(const std::string& path, std::size_t limit = max_file_bytes);
Status write_file(const std::string& path, std::string_view content);

}  // namespace perseus
