#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/stacked_bars.h"
#include "planning/model/reference_plans.h"
#include "search/search_changes.h"

namespace perseus::cli {
namespace {

constexpr const char* kAtMaximumClock = "everything at maximum clock";

report::ChartPoint chart_point(Seconds time, Joules energy) { return {time.value(), energy.value()}; }

/// A line for each change that has a frontier of its own. More time has the same frontier; its plan is a point.
std::string frontier_chart(const SearchReport& report, const std::vector<ChangeRow>& changes) {
  const SearchSummary& s = report.summary;
  report::ChartPanel panel;
  std::string description;
  int lines = 0;
  for (const ChangeRow& row : changes) {
    if (row.is_tolerance) {
      panel.series.push_back({row.change,
                              report::variant_of(report::look_of("", 0)),
                              report::SeriesKind::marks,
                              {chart_point(row.plan.time, row.plan.energy)}});
    } else {
      report::ChartSeries series{row.change, report::look_of("", lines++), report::SeriesKind::marked_line};
      for (const model::FrontierPoint& point : row.line.frontier.points) {
        series.points.push_back(chart_point(point.time, point.energy));
      }
      panel.series.push_back(std::move(series));
    }
    description +=
        fmt::format("{}: {} in {}. ", row.change, report::text_of(row.plan.energy), report::text_of(row.plan.time));
  }
  panel.series.push_back({kAtMaximumClock,
                          report::look_of("all-max"),
                          report::SeriesKind::marks,
                          {chart_point(s.reference.time, s.reference.energy)}});
  panel.vertical = changes.back().deadline.value();
  panel.vertical_name = s.rule.slowdown > 0 ? fmt::format("{:g} % slower", 100 * s.rule.slowdown) : "no slower";
  return report::line_chart(
      {"Frontier with each change: " + report.title, "iteration time [s]", "energy per iteration [J]", description},
      {panel});
}

/// `energy`: of an iteration under the plan, which a noisy profile makes later.
report::StackedBar energy_bar(const std::string& name, const model::ComputationDag& dag, const model::Plan& plan,
                              Joules energy) {
  Joules computing;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    computing += dag.types[dag.computations[i].type].options[plan[i]].energy;
  }
  return {name, report::text_of(energy), {computing.value(), (energy - computing).value()}};
}

std::string energy_bars(const SearchReport& report, const std::vector<ChangeRow>& changes) {
  const model::ComputationDag& reference = report.configurations.front().dag;
  report::BarGroup group;
  group.bars.push_back(
      energy_bar(kAtMaximumClock, reference, model::all_maximum_clock(reference), report.summary.reference.energy));
  for (const ChangeRow& row : changes) {
    const model::ComputationDag& dag = report.configurations[row.configuration_index].dag;
    group.bars.push_back(energy_bar(row.change, dag, row.plan.plan, row.plan.energy));
  }
  return report::stacked_bars("Energy of an iteration", {"computing", "waiting"}, {group});
}

std::vector<report::ReportFact> change_facts(const std::vector<ChangeRow>& changes) {
  std::vector<report::ReportFact> facts;
  for (const ChangeRow& row : changes) {
    facts.push_back(
        {row.change, fmt::format("saves {:.2f} % ({:+.2f}) with {}{}. Assumes: {}.", row.saving_pct, row.more_pct,
                                 row.configuration, row.is_late ? ", by its fastest plan, which is late" : "",
                                 fmt::join(row.assumes, "; "))});
  }
  return facts;
}

}  // namespace

report::PageSection change_section(const SearchReport& report, const std::vector<ChangeRow>& changes) {
  return {"Where the energy goes, and what to change",
          {frontier_chart(report, changes), energy_bars(report, changes)},
          change_facts(changes),
          table_of_changes(changes).text(),
          "One after the other: each line and row may use the changes above it. At most: no plan of these "
          "configurations saves more (proven). The bars have each change's plan in time."};
}

}  // namespace perseus::cli
