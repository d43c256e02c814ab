// Size of the terminal behind a file descriptor, text cut to it, and a line of progress that overwrites itself.
//
// Output:  terminal_size(): nothing if the descriptor is no terminal or has no size.
//          cut_line(): at most that many columns, with "..." in place of what is cut.
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
/// Columns of the terminal behind standard output; without one, as many as a table needs.
std::size_t output_columns();

/// `line`: valid UTF-8 without newline.
std::string cut_line(std::string_view line, std::size_t columns);

/// Shows `line` on standard error in place of the previous one, cut to the terminal so that it does not wrap.
void show_progress_line(std::string_view line);
void clear_progress_line();

}  // namespace perseus::cli
