#include "command_line/terminal_size.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "base/standard_streams.h"
#include "base/utf8.h"

namespace perseus::cli {

std::optional<TerminalSize> terminal_size(int descriptor) {
  winsize size{};
  if (::isatty(descriptor) != 1 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return TerminalSize{size.ws_col, size.ws_row};
}

std::size_t output_columns() {
  const auto size = terminal_size(STDOUT_FILENO);
  return size ? size->columns : std::string::npos;
}

std::string cut_line(std::string_view line, std::size_t columns) {
  if (display_columns(line) <= columns) return std::string(line);
  const std::string_view dots = std::string_view("...").substr(0, columns);
  std::size_t bytes = 0;
  for (std::size_t column = 0;;) {
    const CodePoint next = first_code_point(line.substr(bytes));
    column += display_columns(next.value);
    if (column + dots.size() > columns) break;
    bytes += next.bytes;
  }
  return std::string(line.substr(0, bytes)).append(dots);
}

void show_progress_line(std::string_view line) {
  const auto size = terminal_size(STDERR_FILENO);
  write_error(fmt::format("\r{}\x1b[K", size ? cut_line(line, size->columns - 1) : std::string(line)));
  std::fflush(stderr);
}

void clear_progress_line() { write_error("\r\x1b[K"); }

}  // namespace perseus::cli
