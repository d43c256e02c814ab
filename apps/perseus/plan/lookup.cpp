// perseus lookup: finds the plan for a given deadline.
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <chrono>
#include <memory>

#include "command_line/command.h"
#include "io/report/format.h"
#include "io/report/summary.h"
#include "plan/plan_source.h"
#include "plan/slowdown.h"
#include "planning/planner/look_up.h"

namespace perseus::cli {
namespace {

struct LookupOptions {
  std::string plans;
  std::optional<double> deadline_s;
  std::optional<double> ratio;
};

struct TimedLookup {
  int point;
  double took_s;
};

/// The mean of many look-ups: one is shorter than a clock's resolution.
TimedLookup timed_look_up(const model::Frontier& frontier, Seconds deadline) {
  constexpr int times = 1000;
  volatile std::size_t point = 0;  // prevents the optimizer from removing the look-ups
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) point = planner::look_up_index(frontier, deadline);
  return {static_cast<int>(point),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / times};
}

/// A deadline typed as the fastest plan's time is printed, of which it has fewer digits, is that time.
Seconds as_printed(Seconds deadline, Seconds fastest) {
  return report::text_of(deadline) == report::text_of(fastest) ? std::max(deadline, fastest) : deadline;
}

/// Position of the deadline relative to the frontier, in words that JSON and text share.
std::string_view position_of(const model::Frontier& frontier, Seconds deadline) {
  if (deadline < frontier.points.back().time) return "faster than any plan: this is the fastest";
  if (deadline > frontier.points.front().time) return "slower than any plan: this is the slowest";
  return "on the frontier";
}

Result<int> run_lookup(const LookupOptions& options, bool as_json) {
  const std::filesystem::path path = plan_file_path(options.plans);
  const Result<formats::PlanFile> file = read_plans(options.plans);
  if (!file) return file.error();
  const model::Frontier& frontier = file->frontier;
  const model::DefaultRule rule = default_rule_of(*file);
  const Seconds t_max = report::t_max_of(file->dag, frontier);
  const Seconds straggler = options.ratio.value_or(0) * time_without_straggler(frontier, t_max, rule);
  const Seconds planned = model::planned_time(frontier, t_max, rule, straggler);
  const Seconds deadline =
      options.deadline_s
          ? as_printed(Seconds(*options.deadline_s), frontier.points.back().time)
          : std::max({straggler, planned, frontier.points[model::slowest_within(frontier, planned)].time});
  const auto [index, took_s] = timed_look_up(frontier, deadline);
  const model::FrontierPoint& point = frontier.points[index];
  const bool feasible = point.time <= deadline;
  // Paper eq. (1): a pipeline that is done early waits for the deadline.
  const Joules energy = point.effective_energy + file->dag.total_blocking_power() * std::max(point.time, deadline);
  const std::filesystem::path clocks = frequency_plan_path(path, index);
  if (as_json) {
    boost::json::object answer{{"deadline_s", deadline.value()},
                               {"feasible", feasible},
                               {"position", position_of(frontier, deadline)},
                               {"point", index},
                               {"time_s", point.time.value()},
                               {"energy_j", point.energy.value()},
                               {"energy_at_deadline_j", energy.value()},
                               {"bound_j", point.bound.value()},
                               {"gap_pct", point.gap_pct()},
                               {"lookup_s", took_s}};
    if (!clocks.empty()) answer["plan"] = clocks.string();
    print_json(answer);
    return 0;
  }
  if (options.deadline_s || options.ratio) {
    const std::string wait =
        fmt::format(" ({} with the wait until {})", report::text_of(energy), report::text_of(deadline));
    print(fmt::format("point {}: {}, {}{}, gap {:.3f} %\n", index, report::text_of(point.time),
                      report::text_of(point.energy), feasible ? wait : "", point.gap_pct()));
    const Seconds slowed = options.deadline_s ? deadline : straggler;
    print(fmt::format("T' = {} is {}\n", report::text_of(slowed), position_of(frontier, slowed)));
    if (deadline > slowed) print(fmt::format("the tolerance and T_max allow {}\n", report::text_of(deadline)));
  } else {
    print(fmt::format("default plan: point {}: {}, {}, gap {:.3f} %\n", index, report::text_of(point.time),
                      report::text_of(point.energy), point.gap_pct()));
    if (rule.slowdown > 0) {
      print(fmt::format("tolerated: a slowdown of {:g} %, to {}\n", 100 * rule.slowdown,
                        report::text_of((1 + rule.slowdown) * allowed_time(frontier, t_max, rule))));
    }
  }
  if (!clocks.empty()) print(fmt::format("clocks: {}\n", clocks.string()));
  print(fmt::format("looked up in {:.3f} us\n", took_s * 1e6));
  return 0;
}

}  // namespace

void add_lookup(CLI::App& app, Command& command) {
  auto* lookup = app.add_subcommand(
      "lookup", "Find the plan for a deadline: the slowest one that meets it; without a deadline, the default plan");
  auto options = std::make_shared<LookupOptions>();
  lookup->add_option("PLANS", options->plans, "A directory that 'perseus plan --out' wrote, or its plans.json")
      ->required();
  auto* deadline = add_value(*lookup, "--deadline S", options->deadline_s,
                             "Iteration time T' of the straggler, in seconds", number_within(0, 1e9, "s"));
  add_value(*lookup, "--ratio R", options->ratio,
            "Ratio T'/T, where T is the iteration time without a straggler: that of everything "
            "at maximum clock (of the fastest plan for --method perseus); replaces --deadline",
            number_within(1, 1e9, ""))
      ->excludes(deadline);
  lookup->footer(help_footer(kFileErrors,
                             "  perseus lookup plans --ratio 1.2\n"
                             "  perseus lookup plans/plans.json --deadline 3.4 --json\n"));
  set_run(*lookup, command, options, run_lookup);
}

}  // namespace perseus::cli
