// perseus manual: writes the man pages and the completion scripts, for the build; hidden in --help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "command_line/command.h"
#include "io/formats/file.h"

namespace perseus::cli {
namespace {

// The tables of the command line as plain values, for man pages and completion.
// Input:   the CLI11 application with all commands added.
// Output:  per command its options and subcommands, in the order of --help; hidden ones are left out.

struct OptionEntry {
  std::vector<std::string> names;  ///< "-m", "--microbatches"; a positional: "PROFILE.csv"
  std::string value;               ///< "M"; empty: a flag, or a positional
  std::string description;         ///< with its default
  std::string group;               ///< heading in --help
  bool is_positional = false;
};

struct CommandEntry {
  std::string name;  ///< with its parents: "perseus job list"
  std::string description;
  std::string footer;  ///< examples and exit codes
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> subcommands;
};

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

// A manual page of one command, in man(7) macros.
// Input:   a command; its subcommands are sections of the same page.
// Output:  roff text without warnings of groff and mandoc. The date in the header is `date`, "2026-11-23".

/// Text of a line: roff reads backslashes, hyphens that break, and dots and quotes at the start as its own.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string synopsis(const CommandEntry& command) {
  std::string text = fmt::format(".B {}\n", escaped(command.name));
  if (!command.subcommands.empty()) text += ".I COMMAND\n";
  text += "[\\fIOPTIONS\\fR]\n";
  for (const OptionEntry& option : command.options) {
    if (option.is_positional) text += fmt::format(".I {}\n", escaped(option.names.front()));
  }
  return text;
}

std::string option_list(const CommandEntry& command) {
  std::string text, group;
  for (const OptionEntry& option : command.options) {
    if (option.group != group && option.group != "Options" && option.group != "Positionals") {
      text += fmt::format(".PP\n{}\n", escaped(option.group));
    }
    group = option.group;
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back(fmt::format("\\fB{}\\fR", escaped(name)));
    const std::string value = option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", escaped(option.value));
    text += fmt::format(".TP\n{}{}\n{}\n", fmt::join(names, ", "), value, escaped(option.description));
  }
  return text;
}

/// Examples and exit codes keep their lines.
std::string verbatim(const std::string& text) {
  std::string out = ".nf\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += line.empty() ? ".sp\n" : escaped(line) + "\n";
  return out + ".fi\n";
}

std::string section_of(const CommandEntry& command) {
  std::string text = fmt::format(".SS {}\n{}\n.PP\n", escaped(command.name), escaped(command.description));
  text += synopsis(command) + option_list(command);
  for (const CommandEntry& sub : command.subcommands) text += section_of(sub);
  return text;
}

/// "perseus-plan", the page of "perseus plan".
std::string page_name(const CommandEntry& command) {
  std::string name = command.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

/// `perseus` lists all commands and names their pages; other commands describe their options.
std::string man_page(const CommandEntry& command, bool lists_pages, const std::string& version,
                     const std::string& date) {
  const std::string name = page_name(command);
  std::string text = fmt::format(".TH {} 1 {} \"perseus {}\" \"Perseus\"\n", upper(escaped(name)), date, version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(command.description));
  text += ".SH SYNOPSIS\n" + synopsis(command) + ".SH OPTIONS\n" + option_list(command);
  if (!command.subcommands.empty()) text += ".SH COMMANDS\n";
  std::string see_also = ".BR perseus\\-clockd (8)";
  for (const CommandEntry& sub : command.subcommands) {
    if (!lists_pages) {
      text += section_of(sub);
      continue;
    }
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", escaped(page_name(sub)), escaped(sub.description));
    see_also.insert(0, fmt::format(".BR {} (1),\n", escaped(page_name(sub))));
  }
  if (!lists_pages) see_also = ".BR perseus (1),\n" + see_also;
  text += ".SH \"EXAMPLES AND EXIT CODES\"\n" + verbatim(command.footer);
  return text + ".SH \"SEE ALSO\"\n" + see_also + "\n";
}

// Completion of commands and options for bash, zsh and fish.
// Input:   the tree of commands.
// Output:  a script of that shell; values and positionals complete to file names.

void visit(const CommandEntry& command, const std::function<void(const CommandEntry&)>& each) {
  each(command);
  for (const CommandEntry& sub : command.subcommands) visit(sub, each);
}

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

/// The first sentence or clause, as one word of any shell.
std::string summary(const std::string& description) {
  std::string text = description.substr(0, description.find_first_of(";:("));
  if (const std::size_t end = text.find(". "); end != std::string::npos) text.resize(end);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '`') {
      quoted += "'\"'\"'";  // closes the quotes, one in others, opens them again
    } else if (c == '\\' || c == '[' || c == ']') {
      quoted += ' ';
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

/// The lines that find the command among the words before the cursor: `words`, counted from `first`.
std::string path_lines(const CommandEntry& program, const std::string& words) {
  std::string known;
  visit(program, [&](const CommandEntry& command) {
    if (&command != &program) known += fmt::format("{}\"{}\"", known.empty() ? "" : "|", command.name);
  });
  return fmt::format(
      "  local command={} word\n  for word in {}; do\n    case \"$command $word\" in\n      {}) command+=\" $word\" "
      ";;\n"
      "    esac\n  done\n",
      program.name, words, known);
}

std::string bash_completion(const CommandEntry& program) {
  std::string text =
      fmt::format("# bash completion of {}; generated from its options.\n_{}() {{\n", program.name, program.name);
  text += path_lines(program, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"");
  text += "  local choices=\n  case \"$command\" in\n";
  visit(program, [&](const CommandEntry& command) {
    std::vector<std::string> choices, with_value;
    for (const CommandEntry& sub : command.subcommands) choices.push_back(last_word(sub.name));
    for (const OptionEntry& option : command.options) {
      if (option.is_positional) continue;
      for (const std::string& name : option.names) {
        choices.push_back(name);
        if (!option.value.empty()) with_value.push_back(name);
      }
    }
    text += fmt::format("    \"{}\")\n", command.name);
    if (!with_value.empty()) {
      text += fmt::format("      case \"${{COMP_WORDS[COMP_CWORD-1]}}\" in {}) return ;; esac\n",
                          fmt::join(with_value, "|"));
    }
    text += fmt::format("      choices=\"{}\" ;;\n", fmt::join(choices, " "));
  });
  text += "  esac\n  local current=${COMP_WORDS[COMP_CWORD]}\n";
  text += "  if [[ $current == -* || $choices != -* ]]; then\n";
  text += "    mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$current\")\n  fi\n}\n";
  return text + fmt::format("complete -o default -F _{0} {0}\n", program.name);
}

std::string zsh_completion(const CommandEntry& program) {
  std::string text =
      fmt::format("#compdef {0}\n# zsh completion of {0}; generated from its options.\n_{0}() {{\n", program.name);
  text += path_lines(program, "\"${(@)words[2,CURRENT-1]}\"");
  text += "  local -a commands options\n  case \"$command\" in\n";
  visit(program, [&](const CommandEntry& command) {
    text += fmt::format("    \"{}\")\n      commands=(\n", command.name);
    for (const CommandEntry& sub : command.subcommands) {
      text += fmt::format("        {}:{}\n", last_word(sub.name), summary(sub.description));
    }
    text += "      )\n      options=(\n";
    for (const OptionEntry& option : command.options) {
      if (option.is_positional) continue;
      for (const std::string& name : option.names)
        text += fmt::format("        {}:{}\n", name, summary(option.description));
    }
    text += "      ) ;;\n";
  });
  text += "  esac\n  if [[ $PREFIX == -* ]]; then\n    _describe option options\n  elif (( $#commands )); then\n";
  return text + "    _describe command commands\n  else\n    _files\n  fi\n}\n" +
         fmt::format("_{} \"$@\"\n", program.name);
}

std::string fish_completion(const CommandEntry& program) {
  std::string known;
  visit(program, [&](const CommandEntry& command) { known += fmt::format(" '{}'", command.name); });
  std::string text = fmt::format(
      "# fish completion of {0}; generated from its options.\nfunction __{0}_command_is\n"
      "  set -l command {0}\n  for word in (commandline -opc)[2..-1]\n"
      "    contains -- \"$command $word\"{1}; and set command \"$command $word\"\n  end\n"
      "  test \"$command\" = \"$argv[1]\"\nend\n",
      program.name, known);
  visit(program, [&](const CommandEntry& command) {
    const std::string here =
        fmt::format("complete -c {} -n \"__{}_command_is '{}'\"", program.name, program.name, command.name);
    for (const CommandEntry& sub : command.subcommands) {
      text += fmt::format("{} -f -a {} -d {}\n", here, last_word(sub.name), summary(sub.description));
    }
    for (const OptionEntry& option : command.options) {
      if (option.is_positional) continue;
      text += here;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      text += fmt::format("{} -d {}\n", option.value.empty() ? "" : " -r", summary(option.description));
    }
  });
  return text;
}

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
