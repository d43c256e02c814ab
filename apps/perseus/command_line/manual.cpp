// perseus manual: writes the man pages and the completion scripts, for the build; hidden in --help.
#include "command_line/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "command_line/command.h"
#include "io/formats/file.h"

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

CommandEntry command_tree(const CLI::App& app) { return entry_of(app, ""); }

Result<int> write_manual(const CommandEntry& program, const std::string& folder, const std::string& date) {
  std::map<std::string, std::string> files{{"perseus.1", man_page(program, true, PERSEUS_VERSION, date)},
                                           {"perseus.bash", bash_completion(program)},
                                           {"_perseus", zsh_completion(program)},
                                           {"perseus.fish", fish_completion(program)}};
  for (const CommandEntry& command : program.subcommands) {
    files[page_name(command) + ".1"] = man_page(command, false, PERSEUS_VERSION, date);
  }
  for (const auto& [name, text] : files) {
    if (Status written = formats::write_file(fmt::format("{}/{}", folder, name), text); !written)
      return written.error();
  }
  return 0;
}

}  // namespace

void add_manual(CLI::App& app, Command& command) {
  struct Options {
    std::string folder, date;
  };
  auto options = std::make_shared<Options>();
  CLI::App* manual = app.add_subcommand("manual", "Write man pages and shell completion to a directory");
  manual->group("");
  manual->add_option("DIR", options->folder, "An existing directory")->required();
  manual->add_option("--date", options->date, "Date of the pages, YYYY-MM-DD")->required();
  set_run(*manual, command,
          [&app, options] { return write_manual(command_tree(app), options->folder, options->date); });
}

}  // namespace perseus::cli
