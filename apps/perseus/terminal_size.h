// Size of the terminal behind a file descriptor, and text cut to it.
//
// Output:  terminal_size(): nothing if the descriptor is no terminal or has no size.
//          cut_line(): at most that many columns, with "..." in place of what is cut.
// Errors:  none.
// Threads: any.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace perseus::cli {

struct TerminalSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

std::optional<TerminalSize> terminal_size(int descriptor);

/// `line`: valid UTF-8 without newline.
std::string cut_line(std::string_view line, std::size_t columns);

}  // namespace perseus::cli
