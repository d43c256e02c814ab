#include "command_line/usage_message.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "command_line/closest_name.h"

namespace perseus::cli {
namespace {

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
