// perseus site emulate: a day of a site in virtual time, method by method.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "command_line/command.h"
#include "command_line/output_directory.h"
#include "command_line/progress.h"
#include "io/formats/site_toml.h"
#include "plan/effort.h"
#include "simulation/site_emulator/share_method.h"
#include "site/site_actions.h"
#include "site/site_jobs.h"
#include "site_day/site_day_output.h"

namespace perseus::cli {
namespace {

constexpr std::size_t kMostLimitedDomains = 100;

struct SiteEmulateOptions {
  std::string file, objective = "slowdown", effort = "normal", feedback = "none", out;
  std::vector<std::string> methods;
  std::optional<std::uint64_t> seed;
  std::optional<double> bias_pct, draw_more_pct;
  std::optional<bool> progress;
};

Status check_day(const model::SiteDescription& site, const std::string& file) {
  if (site.end == Seconds(0)) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: end_s is missing; required to emulate a site", file)};
  }
  std::vector<bool> limited(site.domains.size());
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    limited[d] = std::ranges::any_of(site.domains[d].limits,
                                     [](const model::LimitStep& step) { return step.limit != model::kNoLimit; });
  }
  for (const model::DescribedEvent& event : site.events) limited[event.domain] = true;
  const auto count = static_cast<std::size_t>(std::ranges::count(limited, true));
  if (count <= kMostLimitedDomains) return Ok{};
  return Error{ErrorCode::invalid_input, fmt::format("{}: {} domains with a limit; allowed: at most {} to emulate",
                                                     file, count, kMostLimitedDomains)};
}

/// optimum first, the others in the requested order, each once.
std::vector<std::string> methods_of(const SiteEmulateOptions& options) {
  std::vector<std::string> methods{"optimum"};
  for (const std::string& name : options.methods) {
    if (std::ranges::find(methods, name) == methods.end()) methods.push_back(name);
  }
  return methods;
}

Result<int> run_site_emulate(const SiteEmulateOptions& options, bool as_json) {
  Result<model::SiteDescription> description = formats::read_site(options.file);
  if (!description) return description.error();
  if (Status valid = check_day(*description, options.file); !valid) return valid.error();
  if (options.seed) description->emulation.seed = *options.seed;
  if (options.bias_pct) description->emulation.bias = *options.bias_pct / 100;
  if (options.draw_more_pct) description->emulation.draw_more = *options.draw_more_pct / 100;
  if (Status writable = check_site_day(options.out); !writable) return writable.error();
  const Result<PlannedSite> planned = plan_jobs(*description, options.effort, options.progress);
  if (!planned) return planned.error();
  site_emulator::SiteDay day = day_of(*description, *planned);
  day.feedback.reports = options.feedback == "reports" || options.feedback == "both";
  day.feedback.meter = options.feedback == "meter" || options.feedback == "both";
  SiteDayReport report{&*description, &*planned, &day, *model::site_objective_named(options.objective)};
  for (const std::string& method : methods_of(options)) {
    ProgressLine line("emulating, " + method, options.progress);
    EmulatedDay emulated{site_emulator::run_day(day, method, report.objective, line.callback()), {}};
    emulated.figures = site_emulator::figures_of(day, emulated.run);
    report.methods.push_back(std::move(emulated));
  }
  if (Status written = write_site_day(options.out, report); !written) return written.error();
  if (as_json) {
    print_json(site_day_json(report));
    return 0;
  }
  print(site_day_text(report));
  if (!options.out.empty()) print("\n" + written_text(options.out, "day.html"));
  return 0;
}

}  // namespace

void add_site_emulate(CLI::App& group, Command& command) {
  auto* emulate = group.add_subcommand(
      "emulate", "Emulate a day of a site: its jobs' power second by second, limits and unannounced events");
  auto options = std::make_shared<SiteEmulateOptions>();
  const std::vector<std::string_view> names = site_emulator::share_method_names();
  for (const std::string_view name : names) options->methods.emplace_back(name);
  emulate
      ->add_option("SITE.toml", options->file,
                   "Power domains, limits over time, events and jobs; see docs/power.md and data/sample_site_day.toml")
      ->required();
  add_value(*emulate, "--methods NAME,...", options->methods,
            fmt::format("Methods to emulate, of {}, and always optimum (default: all)", fmt::join(names, ", ")),
            CLI::IsMember(names))
      ->delimiter(',');
  add_default(*emulate, "--objective NAME", options->objective,
              fmt::format("What optimum maximizes: {}", fmt::join(model::site_objective_names(), ", ")),
              CLI::IsMember(model::site_objective_names()));
  add_value(*emulate, "--bias PCT", options->bias_pct,
            "Standard deviation of the jobs' power over that of their profiles (default: the site's)",
            number_within(0, 50, "%"));
  add_value(*emulate, "--draw-more PCT", options->draw_more_pct,
            "Percent by which all jobs draw more than their profiles say (default: the site's)",
            number_within(-50, 50, "%"));
  add_default(*emulate, "--feedback KIND", options->feedback,
              "What corrects the plans: none, reports (energies of iterations), meter, or both",
              CLI::IsMember(std::vector<std::string>{"none", "reports", "meter", "both"}));
  add_value(*emulate, "--seed N", options->seed, "Random seed (default: the site's)",
            whole_number_within(0, 9007199254740992));
  add_value(*emulate, "--out DIR", options->out,
            "Write an HTML page and tables to this directory, whole or not at all; replaces an earlier "
            "emulation of a site");
  add_effort_option(*emulate, options->effort,
                    "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap");
  add_progress_flag(*emulate, options->progress);
  set_run(*emulate, command, options, run_site_emulate);
}

}  // namespace perseus::cli
