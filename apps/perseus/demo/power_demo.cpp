#include "demo/power_demo.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "command_line/command.h"
#include "command_line/interrupt.h"
#include "command_line/origin.h"
#include "demo/demo_scratch.h"
#include "demo/power_story.h"
#include "demo/power_story_output.h"

namespace perseus::cli {
namespace {

std::vector<report::ReportFact> facts_of(const DemoOptions& o, const PowerMeasurement& m) {
  return {{"GPUs", "simulated"},
          {"profile", profile_file_of(o) + (o.profile.empty() ? ", the project's own, not measured" : "")},
          {"profile of the server", o.known_profile ? "given" : "measured in vivo"},
          {"server killed", fmt::format("{} times, at random moments of seed {}", m.server_kills, m.seed)},
          {"time scale", fmt::format("everything takes {:g} times as long as in the profile", o.time_scale)}};
}

}  // namespace

Result<int> run_power_demo(const DemoOptions& options, bool as_json) {
  std::vector<report::ReportFact> origin = origin_facts();
  if (const Status writable = check_power_output(options.out); !writable) return writable.error();
  std::optional<Error> failed;
  bool is_tidy = false, written = false, holds = false;
  {
    const InterruptGuard guard;
    const auto scratch = DemoScratch::create(options.scratch);
    if (!scratch) return scratch.error();
    PowerStory story(options, *scratch);
    auto measured = story.run();
    if (!measured) failed = measured.error();
    const Status tidy = story.tidy();
    is_tidy = tidy.ok();
    if (!tidy && (!failed || InterruptGuard::interrupted())) failed = tidy.error();
    if (!failed && !InterruptGuard::interrupted()) {
      measured->clocks_given_back = is_tidy;
      measured->facts = facts_of(options, *measured);
      measured->origin = std::move(origin);
      holds = story_holds(*measured);
      const Result<bool> whole = write_power_output(options.out, *measured);
      if (!whole) failed = whole.error();
      written = whole && *whole;
    }
    if (written) {
      print(as_json
                ? power_summary_json(*measured)
                : power_text(*measured) + fmt::format("written to {0}; to look at: {0}/report.html\n", options.out));
    }
    if (written && options.keep) story.keep_server();
    story.stop_server();
    if (written && options.keep) return holds ? 0 : 1;  // Ctrl-C is the regular end here
  }
  if (InterruptGuard::interrupted()) {
    fmt::print(stderr, "perseus: interrupted; the training has ended, {}, {}\n",
               is_tidy ? "no clock is locked" : failed->message, written ? "all was written" : "nothing was written");
  }
  die_if_interrupted();
  if (failed) return *failed;
  return holds ? 0 : 1;
}

}  // namespace perseus::cli
