// Shared base of the subcommands: registration, errors, output.
//
// A subcommand is one file with one function add_<name>(app, command): it declares the options and, once they are
// parsed, sets `command.run`. main() runs it, and turns its Error into a message and an exit code
// (base/error_table.h).
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/transfer_latency.h"

namespace perseus::cli {

struct Command {
  bool json = false;
  /// Returns the exit code of a completed command (0, or 1 for "no": verify), or the error.
  std::function<Result<int>()> run;
};

void add_plan(CLI::App& app, Command& command);
void add_doctor(CLI::App& app, Command& command);
void add_advise(CLI::App& app, Command& command);
void add_compare(CLI::App& app, Command& command);
void add_lookup(CLI::App& app, Command& command);
void add_verify(CLI::App& app, Command& command);
void add_show(CLI::App& app, Command& command);
void add_partition(CLI::App& app, Command& command);
void add_calibrate(CLI::App& app, Command& command);
void add_trace(CLI::App& app, Command& command);
void add_emulate(CLI::App& app, Command& command);
void add_reproduce(CLI::App& app, Command& command);
void add_site(CLI::App& app, Command& command);
void add_demo(CLI::App& app, Command& command);
void add_serve(CLI::App& app, Command& command);
void add_relay(CLI::App& app, Command& command);
void add_backup(CLI::App& app, Command& command);
void add_job(CLI::App& app, Command& command);
void add_profile(CLI::App& app, Command& command);
void add_straggler(CLI::App& app, Command& command);
void add_policy(CLI::App& app, Command& command);
void add_alert(CLI::App& app, Command& command);
void add_event(CLI::App& app, Command& command);
void add_host(CLI::App& app, Command& command);
void add_token(CLI::App& app, Command& command);
void add_manual(CLI::App& app, Command& command);

/// --json, on every subcommand.
CLI::Option* add_json_flag(CLI::App& subcommand, Command& command);

/// What the command does, if it is the one that the user gives.
void set_run(CLI::App& subcommand, Command& command, std::function<Result<int>()> run);
/// The same with its options, after --json.
template <class Options, class Run>
void set_run(CLI::App& subcommand, Command& command, const std::shared_ptr<Options>& options, Run run) {
  add_json_flag(subcommand, command);
  set_run(subcommand, command, [options, run, &command] { return run(*options, command.json); });
}

/// An option "-m,--microbatches M": its names, and what its value is called.
template <class T>
CLI::Option* add_value(CLI::App& app, const std::string& names_and_value, T& target, const std::string& description,
                       const CLI::Validator& check = CLI::Validator("")) {
  const std::size_t space = names_and_value.rfind(' ');
  return app.add_option(names_and_value.substr(0, space), target, description)
      ->check(check)
      ->type_name(names_and_value.substr(space + 1));
}
/// The same, with the target's value as the default in --help.
template <class T>
CLI::Option* add_default(CLI::App& app, const std::string& names_and_value, T& target, const std::string& description,
                         const CLI::Validator& check = CLI::Validator("")) {
  return add_value(app, names_and_value, target, description, check)->capture_default_str();
}

/// While it lives, the options that are added have this heading in --help; "": they are not in it.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, const std::string& heading) : app_(app) { app_.option_defaults()->group(heading); }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;
  ~OptionGroup() { app_.option_defaults()->group("Options"); }

 private:
  CLI::App& app_;
};

/// A finite number within [least, most]; the message names unit and limits.
CLI::Validator number_within(double least, double most, std::string unit);
CLI::Validator whole_number_within(std::int64_t least, std::int64_t most, std::string unit = "");

/// Replaces each name of a schedule in a comma-separated list by ours (model::schedule_named()); others stay.
CLI::Validator schedule_names();

/// --transfer-latency, see io/formats/transfer_latency_text.h.
CLI::Option* add_transfer_latency(CLI::App& app, const std::string& description,
                                  std::function<void(const model::TransferLatency&)> set);

/// Writes to standard output, at once. Text may quote files: control characters become visible (terminal_text()).
void print(std::string_view text);
/// The same for text with the program's own control characters.
void print_drawing(std::string_view text);
/// The object of --json, on a line.
void print_json(const boost::json::object& object);
/// Writes "perseus: note: ..." to standard error.
void note(std::string_view text);

/// Of a program that the system gives no more memory: that of EX_OSERR. It is no ErrorCode: no answer of a server and
/// no call of the C ABI has it.
inline constexpr int kOutOfMemoryExitCode = 71;

/// Of every command: its options, and standard output.
inline constexpr std::array kTextErrors{ErrorCode::usage, ErrorCode::cannot_write};
/// Of commands that read GPUs.
inline constexpr std::array kDeviceErrors{ErrorCode::invalid_input, ErrorCode::usage, ErrorCode::not_found,
                                          ErrorCode::cannot_write};
/// Of commands that read files and compute.
inline constexpr std::array kFileErrors{ErrorCode::invalid_input, ErrorCode::usage, ErrorCode::not_found,
                                        ErrorCode::cannot_write, ErrorCode::internal};
/// Of commands that have ports, databases or processes of their own.
inline constexpr std::array kServiceErrors{ErrorCode::invalid_input, ErrorCode::usage,    ErrorCode::not_found,
                                           ErrorCode::cannot_write,  ErrorCode::internal, ErrorCode::conflict,
                                           ErrorCode::unavailable};
/// Of commands that call a server, whose errors they pass on, and of all commands together.
inline constexpr std::array kAllErrors{ErrorCode::invalid_input, ErrorCode::usage,     ErrorCode::not_found,
                                       ErrorCode::cannot_write,  ErrorCode::internal,  ErrorCode::conflict,
                                       ErrorCode::unauthorized,  ErrorCode::forbidden, ErrorCode::too_large,
                                       ErrorCode::unavailable};

/// The exit codes with which a command of these errors can end, a line each: 0, then in the order of
/// base/error_table.h, then that of any command without memory.
std::string exit_codes_text(std::span<const ErrorCode> errors);
/// Examples, then the exit codes: the end of a command's --help.
std::string help_footer(std::span<const ErrorCode> errors, std::string_view examples);

}  // namespace perseus::cli
