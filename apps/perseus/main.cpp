// perseus: the command line. One subcommand, one file; this one runs the one that was asked for.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <memory>

#include "base/error_table.h"
#include "command.h"
#include "demo.h"
#include "help_formatter.h"

namespace {

using namespace perseus;

int fail(const Error& error, bool json) {
  const ErrorEntry& entry = entry_of(error.code);
  if (json) {
    const boost::json::value value{
        {"error", {{"code", entry.name}, {"message", error.message}, {"exit_code", entry.exit_code}}}};
    print(boost::json::serialize(value) + "\n");
  }
  fmt::print(stderr, "perseus: {}\n", error.message);
  return entry.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Perseus plans GPU clocks for pipeline-parallel training: less energy, no slower.", "perseus");
  app.set_version_flag("--version", "perseus " PERSEUS_VERSION);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "'perseus COMMAND --help' says more about each.\n"
      "Start with: perseus plan PROFILE.csv --schedule 1f1b --microbatches 12 --blocking-power 83.6 --out DIR");

  Command command;
  add_plan(app, command);
  add_compare(app, command);
  add_lookup(app, command);
  add_verify(app, command);
  add_show(app, command);
  add_partition(app, command);
  add_calibrate(app, command);
  add_emulate(app, command);
  add_reproduce(app, command);
  add_demo(app, command);
  add_serve(app, command);
  add_doctor(app, command);
  add_backup(app, command);
  add_job(app, command);
  add_profile(app, command);
  add_straggler(app, command);
  add_policy(app, command);
  add_token(app, command);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    const auto asked = app.get_subcommands();
    const std::string help = asked.empty() ? "perseus --help" : "perseus " + asked.front()->get_name() + " --help";
    return fail({ErrorCode::usage, fmt::format("{} (see '{}')", error.what(), help)}, command.json);
  }
  const Result<int> done = command.run();
  return done ? *done : fail(done.error(), command.json);
}
