// Makes text from an untrusted file safe to print on a terminal.
//
// Input:   any bytes.
// Output:  valid UTF-8 without terminal control: control characters other than newline and tab, and bytes that are not
//          UTF-8, become \xNN; C1 controls (U+0080 to U+009F), characters that reorder text (bidirectional controls)
//          and line separators become \uNNNN. All other text is unchanged.
// Cost:    O(bytes).
// Source:  ECMA-48 (C0, C1); Unicode Technical Report 36, section 3.
#pragma once

#include <string>
#include <string_view>

namespace perseus {

std::string terminal_text(std::string_view text);

/// The same for text that stays on its line: a newline and a tab become \x0a and \x09 too.
std::string line_text(std::string_view text);

}  // namespace perseus
