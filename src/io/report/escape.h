// Escapes names from files for HTML and XML.
//
// Input:   any bytes.
// Output:  valid UTF-8 without control characters (bytes that are not UTF-8 become U+FFFD), escaped.
// Cost:    O(bytes).
#pragma once

#include <string>
#include <string_view>

namespace perseus::report {

/// For text and double- or single-quoted attributes of HTML and XML.
std::string escape_markup(std::string_view text);

}  // namespace perseus::report
