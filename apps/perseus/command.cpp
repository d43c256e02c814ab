#include "command.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/error_table.h"
#include "wire/number.h"

namespace perseus {

void add_json_flag(CLI::App& subcommand, Command& command) {
  subcommand.add_flag("--json", command.json, "Print one JSON object instead of text; errors too");
}

std::string help_footer(std::string_view examples) {
  std::string text = fmt::format("Examples:\n{}\nExit codes:\n   0  done\n", examples);
  for (const ErrorEntry& entry : error_table()) text += fmt::format("  {:2}  {}\n", entry.exit_code, entry.meaning);
  return text;
}

CLI::Validator number_within(double least, double most, std::string unit) {
  const auto check = [=](const std::string& text) -> std::string {
    const auto value = number_in<double>(text);
    if (value && *value >= least && *value <= most) return {};
    return fmt::format("'{}' is not a number from {:g} to {:g}{}{}", text, least, most, unit.empty() ? "" : " ", unit);
  };
  return {check, ""};
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void note(std::string_view text) { fmt::print(stderr, "perseus: note: {}\n", text); }

}  // namespace perseus
