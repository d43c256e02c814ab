// perseus site: one power budget for all jobs of a site.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>

#include "command_line/command.h"
#include "command_line/output_directory.h"
#include "command_line/progress.h"
#include "io/formats/site_toml.h"
#include "plan/effort.h"
#include "planning/checker/allocation_check.h"
#include "site/site_actions.h"
#include "site/site_jobs.h"
#include "site/site_output.h"
#include "site_day/site_day_output.h"

namespace perseus::cli {
namespace {

constexpr std::array kFractions = {1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5};
constexpr std::array kHeadroomRates = {1.0, 0.99, 0.97, 0.95, 0.9};

struct SitePlanOptions {
  std::string file, objective = "slowdown", effort = "normal", out;
  std::optional<bool> progress;
};

/// Checks every allocation with code that shares nothing with the allocator.
Status check(const PlannedSite& planned, model::SiteObjective objective, const std::vector<site::Interval>& intervals) {
  model::Site site = planned.timed.site;
  for (const site::Interval& interval : intervals) {
    for (std::size_t j = 0; j < site.jobs.size(); ++j) site.jobs[j].least_rate = interval.least_rates[j];
    model::Allocation allocation = interval.allocation;
    for (std::size_t d = 0; d < allocation.missing.size(); ++d) allocation.missing[d] -= interval.below[d];
    const auto wrong = checker::wrong_in_allocation(site, interval.guarded_limits(), objective, allocation);
    if (wrong) {
      return Error{ErrorCode::internal, fmt::format("allocation at {:g} s: {}", interval.from.value(), *wrong)};
    }
  }
  return Ok{};
}

Result<int> run_site_plan(const SitePlanOptions& options, bool as_json) {
  const Result<model::SiteDescription> description = formats::read_site(options.file);
  if (!description) return description.error();
  if (Status writable = check_site_plan(options.out); !writable) return writable.error();
  Result<PlannedSite> planned = plan_jobs(*description, options.effort, options.progress);
  if (!planned) return planned.error();
  std::vector<site_emulator::JobKind> kinds;
  const site_emulator::SiteDay day = day_of(*description, *planned);
  for (const PlannedPipeline& pipeline : planned->pipelines) {
    kinds.emplace_back(pipeline.dag, pipeline.frontier.points.back().time);
  }
  planned->timed.swing_of = [&](std::size_t job, int point, Seconds window) {
    site_emulator::JobKind& kind = kinds[planned->pipeline_of[job]];
    return planned->copies[job] * kind.swing(way_of_point(day, kinds, job, point), window);
  };
  SitePlanReport report{&*description, &*planned, *model::site_objective_named(options.objective)};
  {
    ProgressLine line("dividing the watts", options.progress);
    report.intervals = site::plan_site(planned->timed, report.objective, line.callback());
  }
  if (Status right = check(*planned, report.objective, report.intervals); !right) return right.error();
  const model::Site& site = planned->timed.site;
  for (int d = 0; d < std::ssize(site.domains); ++d) {
    if (site.domains[d].parent <= 0) {
      report.what_if.push_back({d, site::throughput_over_watts(site, report.objective, d, kFractions)});
    }
  }
  for (const double rate : kHeadroomRates) report.headroom.push_back({rate, site::headroom_at(site, rate)});
  if (Status written = write_site_plan(options.out, report); !written) return written.error();
  if (as_json) {
    print_json(site_plan_json(report));
    return 0;
  }
  print(site_plan_text(report));
  if (!options.out.empty()) print("\n" + written_text(options.out, "site.html"));
  return 0;
}

void add_site_plan(CLI::App& group, Command& command) {
  auto* plan = group.add_subcommand(
      "plan", "Divide the watts of a site among its jobs: points of their frontiers such that every limit holds");
  auto options = std::make_shared<SitePlanOptions>();
  plan->add_option("SITE.toml", options->file,
                   "Power domains, limits over time and jobs; see docs/power.md and data/sample_site.toml")
      ->required();
  add_default(*plan, "--objective NAME", options->objective,
              fmt::format("What to maximize: {}", fmt::join(model::site_objective_names(), ", ")),
              CLI::IsMember(model::site_objective_names()));
  add_value(*plan, "--out DIR", options->out,
            "Write an HTML page and tables to this directory, whole or not at all; replaces an earlier site plan");
  add_effort_option(*plan, options->effort,
                    "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap");
  add_progress_flag(*plan, options->progress);
  set_run(*plan, command, options, run_site_plan);
}

}  // namespace

void add_site(CLI::App& app, Command& command) {
  auto* group = app.add_subcommand("site", "One power budget for all jobs of a site");
  group->require_subcommand(1);
  group->footer(help_footer(kAllErrors,
                            "  perseus site plan data/sample_site.toml\n"
                            "  perseus site plan data/sample_site.toml --objective max-min --out site-plan\n"
                            "  perseus site emulate data/sample_site_day.toml --out site-day\n"
                            "  perseus site set hall.toml\n"
                            "  perseus site limit row-a 40000 --until 1800003600\n"
                            "  perseus site status\n"
                            "  perseus site admit --job llama-17 --domain row-a --accelerators 64 --wait 300\n"
                            "  perseus site proof --from 1800000000 --until 1800003600 -o csv\n"));
  add_site_plan(*group, command);
  add_site_emulate(*group, command);
  add_site_server_actions(*group, command);
  add_site_admit(*group, command);
  add_site_release(*group, command);
  add_site_reports(*group, command);
  add_site_follow(*group, command);
}

}  // namespace perseus::cli
