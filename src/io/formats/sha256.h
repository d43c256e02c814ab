// SHA-256 of text, as 64 hexadecimal digits.
//
// Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace perseus::formats {

std::string sha256(std::string_view text);

}  // namespace perseus::formats
