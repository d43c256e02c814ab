#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "command_line/manual.h"

namespace perseus::cli {
namespace {

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

}  // namespace

std::string page_name(const CommandEntry& command) {
  std::string name = command.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

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

}  // namespace perseus::cli
