#include "command_line/usage_message.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace perseus::cli {
namespace {

/// How many characters must be inserted, deleted, replaced, or exchanged with their neighbor to turn one word into the
/// other (optimal string alignment). O(product of the lengths).
int edits_between(std::string_view from, std::string_view to) {
  std::vector<std::vector<int>> edits(from.size() + 1, std::vector<int>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = static_cast<int>(i + j);
        continue;
      }
      const int replaced = edits[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      const bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (exchanged) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits.back().back();
}

/// The first name with the fewest edits from `word`, at most a third of its length, or one; empty: none is so
/// close.
std::string closest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 100;  // of a name
  if (word.size() > longest) return {};
  int least = std::max(1, static_cast<int>(word.size() / 3));
  std::string closest;
  for (const std::string& name : names) {
    const int edits = edits_between(word, name);
    if (edits < least || (edits == least && closest.empty())) {
      least = edits;
      closest = name;
    }
  }
  return closest;
}

/// Without hidden ones.
std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
    names.push_back(one->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

std::string unknown_option(const std::string& word, const CLI::App& asked) {
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = closest_name(name.substr(std::min<std::size_t>(2, name.size())), options_of(asked));
  return fmt::format("unknown option '{}'{}", name, meant.empty() ? "" : fmt::format("; did you mean '--{}'?", meant));
}

std::string unknown_argument(const std::string& word) { return fmt::format("unknown argument '{}'", word); }

}  // namespace

std::string unknown_command(const std::string& word, const CLI::App& asked) {
  const std::vector<std::string> commands = commands_of(asked);
  if (commands.empty()) return unknown_argument(word);
  const std::string meant = closest_name(word, commands);
  if (!meant.empty()) return fmt::format("unknown command '{}'; did you mean '{}'?", word, meant);
  return fmt::format("unknown command '{}'; allowed: {}", word, fmt::join(commands, ", "));
}

std::string usage_message(const CLI::ParseError& error, const CLI::App& asked) {
  std::string message = error.what();
  const bool needs_command = asked.get_require_subcommand_min() > 0;
  std::vector<std::string> unknown = asked.remaining();
  std::erase(unknown, "--");  // only says that the words behind it are no options
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string option = message.substr(0, message.find(':'));
    if (message.find("missing") != std::string::npos) return option + ": the value is missing";
    if (message.find("At Most") != std::string::npos) return option + ": given more than once; allowed: once";
  } else if (!unknown.empty()) {
    const std::string& first = unknown.front();
    if (first.starts_with('-')) return unknown_option(first, asked);
    return needs_command ? unknown_command(first, asked) : unknown_argument(first);
  } else if (needs_command) {
    return fmt::format("a command is missing; allowed: {}", fmt::join(commands_of(asked), ", "));
  }
  return message;
}

}  // namespace perseus::cli
