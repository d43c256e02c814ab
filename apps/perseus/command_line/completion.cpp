#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "command_line/manual.h"

namespace perseus::cli {
namespace {

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

}  // namespace

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

}  // namespace perseus::cli
