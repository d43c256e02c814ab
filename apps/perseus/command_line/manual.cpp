// perseus manual: writes the man pages and the completion scripts, for the build; hidden in --help.

#include <fmt/format.h>

#include <map>
#include <memory>

#include "command_line/command.h"
#include "command_line/command_tree.h"
#include "command_line/man_page.h"
#include "command_line/shell_completion.h"
#include "io/formats/file.h"

namespace perseus::cli {
namespace {

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
  manual->callback([&app, &command, options] {
    command.run = [&app, options] { return write_manual(command_tree(app), options->folder, options->date); };
  });
}

}  // namespace perseus::cli
