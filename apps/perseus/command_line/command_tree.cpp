#include "command_line/command_tree.h"

#include <fmt/format.h>

namespace perseus::cli {
namespace {

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  entry.is_positional = !option.nonpositional();
  entry.description = option.get_description();
  if (!option.get_default_str().empty()) entry.description += fmt::format(" (default: {})", option.get_default_str());
  entry.group = option.get_group();
  if (entry.is_positional) {
    entry.names = {option.get_name(true)};
    return entry;
  }
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0)
    entry.value = option.get_type_name().empty() ? "VALUE" : option.get_type_name();
  return entry;
}

CommandEntry entry_of(const CLI::App& app, const std::string& parents) {
  CommandEntry entry;
  entry.name = parents.empty() ? app.get_name() : parents + " " + app.get_name();
  entry.description = app.get_description();
  entry.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options([](const CLI::Option* one) { return !one->get_group().empty(); })) {
    entry.options.push_back(entry_of(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    entry.subcommands.push_back(entry_of(*sub, entry.name));
  }
  return entry;
}

}  // namespace

CommandEntry command_tree(const CLI::App& app) { return entry_of(app, ""); }

}  // namespace perseus::cli
