#include "command_line/exit_codes.h"

#include <fmt/format.h>

#include "base/error_table.h"

namespace perseus::cli {

static_assert(kAllErrors.size() == static_cast<std::size_t>(ErrorCode::unavailable) + 1);

std::string exit_codes_text(std::span<const ErrorCode> errors) {
  std::string text = "Exit codes:\n   0  done\n";
  for (const ErrorCode code : errors) {
    const ErrorEntry& entry = entry_of(code);
    text += fmt::format("  {:2}  {}\n", entry.exit_code, entry.meaning);
  }
  return text + fmt::format("  {:2}  out of memory\n", kOutOfMemoryExitCode);
}

std::string help_footer(std::span<const ErrorCode> errors, std::string_view examples) {
  return fmt::format("Examples:\n{}\n{}", examples, exit_codes_text(errors));
}

}  // namespace perseus::cli
