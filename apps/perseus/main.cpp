// perseus: the command line. Each subcommand has its own file; this file runs the requested one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "base/error_table.h"
#include "base/standard_streams.h"
#include "base/terminal_text.h"
#include "command_line/command.h"
#include "command_line/help_formatter.h"
#include "command_line/origin.h"
#include "command_line/usage_message.h"

namespace {

using namespace perseus;
using namespace perseus::cli;

int fail(std::string_view code, int exit_code, std::string_view full_message, bool json) {
  constexpr std::size_t longest = 2000;  // it may quote a file
  std::string message = terminal_text(full_message.substr(0, longest));
  if (full_message.size() > longest) message += fmt::format("... ({} bytes more)", full_message.size() - longest);
  if (json) { print_json({{"error", {{"code", code}, {"message", message}, {"exit_code", exit_code}}}}); }
  write_error(fmt::format("perseus: {}\n", message));
  return exit_code;
}

int fail(const Error& error, bool json) {
  const ErrorEntry& entry = entry_of(error.code);
  return fail(entry.name, entry.exit_code, error.message, json);
}

/// Whether errors are JSON too: they may come before the options are parsed.
bool asks_for_json(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--json" || word == "-ojson" || word == "--output=json") return true;
    if ((word == "-o" || word == "--output") && i + 1 < words.size() && words[i + 1] == "json") return true;
  }
  return false;
}

/// The name of an empty argument, or nullopt: none may be empty, since "--out ''" would count as missing.
std::string empty_argument(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() && i > 0 && words[i - 1].starts_with('-')) return words[i - 1] + ": the value is empty";
    if (words[i].empty()) return "an argument is empty";
    if (words[i].starts_with("--") && words[i].ends_with('=')) return words[i] + ": the value is empty";
  }
  return {};
}

bool asks_for_help(const std::string& word) { return word == "-h" || word == "--help"; }

/// `perseus help [COMMAND...]` as the command line `perseus [COMMAND...] --help`, or what is wrong with it.
Result<std::vector<std::string>> without_help_command(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  if (words.size() == 2 && asks_for_help(words.back())) return words;
  words.erase(words.begin());
  std::erase_if(words, asks_for_help);
  const CLI::App* asked = &app;
  for (const std::string& word : words) {
    const auto found = asked->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
    if (found.empty()) return Error{ErrorCode::usage, unknown_command(word, *asked)};
    asked = found.front();
  }
  words.emplace_back("--help");
  return words;
}

/// Only for its own help: without_help_command() replaces the command before it is parsed.
void add_help(CLI::App& app) {
  auto* help = app.add_subcommand("help", "Print the help of a command");
  help->add_option("COMMAND", "Command and its subcommands (default: list all commands)")->expected(0, -1);
  help->footer(help_footer(kTextErrors, "  perseus help plan\n  perseus help job list\n"));
}

struct NamedCommand {
  std::string_view name;
  void (*add)(CLI::App& app, Command& command);
};
/// In the order of --help.
constexpr NamedCommand kCommands[] = {
    {"plan", add_plan},     {"advise", add_advise},   {"compare", add_compare},     {"lookup", add_lookup},
    {"verify", add_verify}, {"show", add_show},       {"partition", add_partition}, {"calibrate", add_calibrate},
    {"trace", add_trace},   {"emulate", add_emulate}, {"site", add_site},           {"reproduce", add_reproduce},
    {"demo", add_demo},     {"serve", add_serve},     {"relay", add_relay},         {"doctor", add_doctor},
    {"backup", add_backup}, {"job", add_job},         {"profile", add_profile},     {"straggler", add_straggler},
    {"policy", add_policy}, {"alert", add_alert},     {"event", add_event},         {"host", add_host},
    {"token", add_token}};

/// Only the command that the first word names, since a server keeps it: all take 0.7 MB. Otherwise all, for help.
void add_commands(CLI::App& app, Command& command, std::string_view first_word) {
  const auto* const named = std::ranges::find(kCommands, first_word, &NamedCommand::name);
  if (named != std::end(kCommands)) return named->add(app, command);
  for (const NamedCommand& one : kCommands) one.add(app, command);
  add_help(app);
  add_manual(app, command);
}

constexpr std::string_view kOutOfMemory =
    "out of memory: the problem is too large for this machine, or for its limits ('ulimit -v', a container's limit)";

/// Where std::bad_alloc leaves a thread other than main(), the program ends by the same message and exit code. It
/// cannot undo anything there: files are as after SIGKILL.
void end_threads_without_memory() {
  static const std::terminate_handler otherwise = std::get_terminate();
  std::set_terminate([] {
    try {
      if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      for (const std::string_view piece : {std::string_view("perseus: "), kOutOfMemory, std::string_view("\n")}) {
        if (::write(STDERR_FILENO, piece.data(), piece.size()) < 0) break;
      }
      ::_exit(kOutOfMemoryExitCode);
    } catch (...) {}
    otherwise();
  });
}

int run(int argc, char** argv) {
  CLI::App app("Perseus plans GPU clocks for pipeline-parallel training: less energy, no slower.", "perseus");
  app.set_version_flag("--version", "perseus " + version_text());
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "'perseus help COMMAND' describes each command.\n"
      "Start with: perseus plan PROFILE.csv --schedule 1f1b --microbatches 12 --blocking-power 83.6 --out DIR\n\n" +
      exit_codes_text(kAllErrors));

  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  Command command;
  add_commands(app, command, words.empty() ? std::string_view() : words.front());

  const bool json = asks_for_json(words);
  if (const std::string wrong = empty_argument(words); !wrong.empty()) return fail({ErrorCode::usage, wrong}, json);
  auto asked_words = without_help_command(app, words);
  if (!asked_words) return fail(asked_words.error(), json);
  std::ranges::reverse(*asked_words);  // the order that CLI11 takes
  try {
    app.parse(*std::move(asked_words));
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    const CLI::App* asked = &app;
    std::string name = "perseus";
    for (auto deeper = app.get_subcommands(); !deeper.empty(); deeper = asked->get_subcommands()) {
      asked = deeper.front();
      name += " " + asked->get_name();
    }
    const bool bare = asked->get_require_subcommand_min() > 0 && asked->remaining().empty();
    if (bare && !json && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      print(app.help());
      return 0;
    }
    return fail({ErrorCode::usage, fmt::format("{} (see '{} --help')", usage_message(error, *asked), name)}, json);
  }
  const Result<int> done = command.run();
  return done ? *done : fail(done.error(), command.json);
}

}  // namespace

int main(int argc, char** argv) {
  prepare_standard_streams();
  end_threads_without_memory();
  int code = kOutOfMemoryExitCode;
  try {
    code = run(argc, argv);
  } catch (const std::bad_alloc&) {  // what was half done is undone by now, and its memory free
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    fail("out_of_memory", kOutOfMemoryExitCode, kOutOfMemory, asks_for_json(words));
  }
  return exit_code_after_output("perseus", code);
}
