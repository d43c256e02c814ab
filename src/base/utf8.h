// Reads and writes UTF-8 (RFC 3629: no overlong forms, no surrogates), for text that comes from files and networks.
//
// Input:   any bytes.
// Output:  code points, their width in a terminal, and whether they change how the text around them is shown.
// Errors:  none: bytes that are not UTF-8 are part of the answer.
// Cost:    O(1) per code point.
// Source:  the decoder is that of utfcpp; widths follow Unicode 15, UAX #11 (East Asian Width), as wcwidth() does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace perseus {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  ///< 0: the text does not begin with UTF-8
};

/// The first code point of `text`, which is not empty.
CodePoint first_code_point(std::string_view text);

/// `point` is a Unicode scalar value.
void append_utf8(std::string& out, char32_t point);

/// `text` with a '?' for each byte that is not UTF-8.
std::string valid_utf8(std::string_view text);

/// Columns of a terminal: 2 for East Asian wide characters and emoji, 0 for combining marks, else 1.
std::size_t display_columns(char32_t point);
/// Columns of a terminal that valid UTF-8 takes: the sum over its code points.
std::size_t display_columns(std::string_view utf8);

/// Shown as nothing at all: two texts that differ only in these look the same (Default_Ignorable_Code_Point of Unicode
/// 15, among them U+200B, U+FEFF and tags). Not the joiners U+200C, U+200D and the variation selectors, which change
/// how the character before them is drawn: see is_joiner().
bool is_invisible(char32_t point);
bool is_joiner(char32_t point);

/// Control characters (C0, DEL, C1), line separators, and those that turn the direction of writing.
bool changes_display(char32_t point);

}  // namespace perseus
