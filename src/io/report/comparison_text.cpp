#include "io/report/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/report/format.h"
#include "io/report/table.h"
#include "io/report/timeline.h"
#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"

namespace perseus::report {

TextRows method_rows(const ComparisonInput& input) {
  const Timeline reference = timeline_of(input.dag, model::all_maximum_clock(input.dag));
  const Seconds lateness = input.methods.front().frontier.maximum_clock_noise.lateness;
  const Seconds t_max = reference.makespan + lateness;
  const Joules all_max = reference.energy + input.dag.total_blocking_power() * lateness;
  TextRows rows{
      {"method", "points", "in time", "saving", "fastest", "energy", "saving", "gap", "slowest", "energy", "saving"},
      {}};
  for (const ComparedMethod& method : input.methods) {
    const model::FrontierPoint& fastest = method.frontier.points.back();
    const model::FrontierPoint& slowest = method.frontier.points.front();
    const auto saving = [&](const model::FrontierPoint& p) { return percent(100 * ((all_max - p.energy) / all_max)); };
    const model::FrontierPoint& in_time =
        method.frontier.points[model::default_point(method.frontier, t_max, {input.slowdown, false})];
    const bool is_late = in_time.time > model::kSameTime * (1 + input.slowdown) * t_max;
    rows.rows.push_back({method.name, fmt::format("{}", method.frontier.points.size()),
                         is_late ? "-" : text_of(in_time.time), is_late ? "-" : saving(in_time), text_of(fastest.time),
                         text_of(fastest.energy), saving(fastest), percent(std::max(0.0, fastest.gap_pct())),
                         text_of(slowest.time), text_of(slowest.energy), saving(slowest)});
  }
  return rows;
}

TextRows pair_rows(const ComparisonInput& input, const std::vector<PairComparison>& pairs) {
  TextRows rows{{"first", "second", "first better", "only it", "second better", "only it", "mean saving",
                 "first saves up to", "second saves up to", "verdict"},
                {}};
  for (const PairComparison& pair : pairs) {
    const auto most = [](const Advantage& a) {
      return a.largest_pct > 0 ? fmt::format("{} at {}", percent(a.largest_pct), text_of(a.largest_at)) : "-";
    };
    const std::string verdict = pair.of_first.dominates    ? "first dominates"
                                : pair.of_second.dominates ? "second dominates"
                                : pair.equal_pct >= 100    ? "equal"
                                                           : "neither dominates";
    rows.rows.push_back({input.methods[pair.first].name, input.methods[pair.second].name,
                         percent(pair.of_first.better_pct), percent(pair.of_first.only_pct),
                         percent(pair.of_second.better_pct), percent(pair.of_second.only_pct),
                         percent(pair.mean_saving_pct), most(pair.of_first), most(pair.of_second), verdict});
  }
  return rows;
}

std::string text_of(const TextRows& rows, std::size_t columns, std::size_t left_columns) {
  TextTable table(rows.header, left_columns);
  for (const std::vector<std::string>& row : rows.rows) table.add(row);
  return table.to_string(columns);
}

}  // namespace perseus::report
