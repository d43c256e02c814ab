#include "command_line/help_formatter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "command_line/terminal_size.h"

namespace perseus::cli {
namespace {

constexpr std::size_t kDescriptionColumn = 28;
constexpr std::size_t kUsualWidth = 80;
constexpr std::size_t kLeastWidth = 60;

std::size_t last_column() {
  const auto size = terminal_size(STDOUT_FILENO);
  return size ? std::max(size->columns, kLeastWidth) : kUsualWidth;
}

/// "-m,--microbatches M", "PROFILE.csv"
std::string names_of(const CLI::Option& option, bool is_positional) {
  std::string names = option.get_name(is_positional, true);
  if (const std::size_t negated = names.find("{false}"); negated != std::string::npos) names.erase(negated);
  const std::string value = is_positional ? "" : option.get_type_name();  // flags have none
  return value.empty() ? names : names + " " + value;
}

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string line = "  " + names_of(*option, is_positional);
  std::string words = option->get_description();
  if (!option->get_default_str().empty()) words += fmt::format(" (default: {})", option->get_default_str());

  const std::size_t width = last_column();
  std::string text;
  std::istringstream stream(words);
  if (line.size() + 2 > kDescriptionColumn) {
    text = line + "\n";
    line.clear();
  }
  for (std::string word; stream >> word;) {
    if (line.size() < kDescriptionColumn) {
      line.resize(kDescriptionColumn, ' ');
    } else if (line.size() + 1 + word.size() > width) {
      text += line + "\n";
      line.assign(kDescriptionColumn, ' ');
    } else {
      line += ' ';
    }
    line += word;
  }
  return text + line + "\n";
}

}  // namespace perseus::cli
