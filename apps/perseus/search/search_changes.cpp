#include "search/search_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>

#include "io/report/format.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

std::string name_of(Change change) {
  switch (change) {
    case Change::clocks:
      return "clocks alone";
    case Change::recomputation:
      return "+ recomputation";
    case Change::schedule:
      return "+ schedule";
    case Change::partition:
      return "+ partition";
    case Change::microbatches:
      return "+ microbatch size";
  }
  return "";
}

/// The best plan within the deadline of configurations with changes up to `largest`; the fastest if none is in time.
ChangeRow row_of(const std::vector<PlannedConfiguration>& configurations, const SearchSummary& summary, Change largest,
                 Seconds deadline) {
  ChangeRow row;
  std::vector<const model::Frontier*> allowed;
  std::vector<int> indices;
  for (int c = 0; c < static_cast<int>(configurations.size()); ++c) {
    if (configurations[c].change > largest) continue;
    allowed.push_back(&configurations[c].frontier);
    indices.push_back(c);
  }
  const Watts blocking_power = configurations.front().dag.total_blocking_power();
  row.line = search::union_of(allowed, blocking_power);
  const std::vector<model::FrontierPoint>& points = row.line.frontier.points;
  const std::optional<int> in_time = search::cheapest_in_time(row.line.frontier, deadline);
  const int chosen = in_time.value_or(static_cast<int>(points.size()) - 1);
  row.is_late = !in_time;
  row.deadline = in_time ? deadline : points[chosen].time;
  row.most_pct = saving_pct_of(summary, search::least_energy_in_time(allowed, blocking_power, row.deadline));
  for (search::Origin& origin : row.line.origins) origin.configuration = indices[origin.configuration];
  const search::Origin origin = row.line.origins[chosen];
  row.configuration_index = origin.configuration;
  row.configuration = configurations[origin.configuration].name;
  row.plan = configurations[origin.configuration].frontier.points[origin.point];
  row.saving_pct = saving_pct_of(summary, row.plan.energy);
  return row;
}

std::string assumption_of(Change change) {
  switch (change) {
    case Change::clocks:
      return "schedule, recomputation, partition and microbatches stay as they are";
    case Change::recomputation:
      return "the framework lets each stage recompute or not";
    case Change::schedule:
      return "the framework runs the schedule";
    case Change::partition:
      return "layers can move between stages";
    case Change::microbatches:
      return "the microbatch size may change";
  }
  return "";
}

/// The assumptions behind the configurations on the row's line that no row above has.
void add_assumptions(const std::vector<PlannedConfiguration>& configurations, const std::vector<ChangeRow>& above,
                     ChangeRow& row) {
  const auto is_known = [&](const std::string& assumption) {
    const auto has = [&](const ChangeRow& r) { return std::ranges::find(r.assumes, assumption) != r.assumes.end(); };
    return has(row) || std::ranges::any_of(above, has);
  };
  const auto add_all = [&](int c) {
    for (const std::string& assumption : configurations[c].assumptions) {
      if (!is_known(assumption)) row.assumes.push_back(assumption);
    }
  };
  add_all(row.configuration_index);
  for (const search::Origin& origin : row.line.origins) add_all(origin.configuration);
}

}  // namespace

std::vector<ChangeRow> changes_of(const std::vector<PlannedConfiguration>& configurations,
                                  const SearchSummary& summary) {
  const Seconds t_max = model::allowed_time(summary.all.frontier, summary.reference.time);
  const Seconds deadline = (1 + summary.rule.slowdown) * t_max;
  std::vector<ChangeRow> rows;
  const auto add = [&](std::string change, std::string assumption, Change largest, Seconds within) {
    ChangeRow row = row_of(configurations, summary, largest, within);
    row.change = std::move(change);
    row.assumes.push_back(std::move(assumption));
    add_assumptions(configurations, rows, row);
    row.more_pct = row.saving_pct - (rows.empty() ? 0 : rows.back().saving_pct);
    rows.push_back(std::move(row));
  };
  add(name_of(Change::clocks), assumption_of(Change::clocks), Change::clocks, t_max);
  if (const double pct = 100 * summary.rule.slowdown; pct > 0) {
    add(fmt::format("+ {:g} % of time", pct), fmt::format("an iteration may take {:g} % longer", pct), Change::clocks,
        deadline);
    rows.back().is_tolerance = true;
  }
  for (const Change change : {Change::recomputation, Change::schedule, Change::partition, Change::microbatches}) {
    const bool tried = std::ranges::find(configurations, change, &PlannedConfiguration::change) != configurations.end();
    if (tried) add(name_of(change), assumption_of(change), change, deadline);
  }
  return rows;
}

Table table_of_changes(const std::vector<ChangeRow>& changes) {
  using Row = const ChangeRow&;
  const auto time = [](Row r) { return report::text_of(r.plan.time) + (r.is_late ? ", late" : ""); };
  return table_of<ChangeRow>(changes,
                             {{"change", &ChangeRow::change, "change"},
                              {"-saving", &ChangeRow::saving_pct, "saving", "{:.2f} %"},
                              {"-more", &ChangeRow::more_pct, "more", "{:+.2f}"},
                              {"-most", &ChangeRow::most_pct, "at most", "{:.2f} %"},
                              {"configuration", &ChangeRow::configuration, "configuration"},
                              {"-time", time, "time"},
                              {"time_s", [](Row r) { return r.plan.time; }},
                              {"is_late", &ChangeRow::is_late},
                              {"energy_j", [](Row r) { return r.plan.energy; }, "energy", joules_cell},
                              {"saving_pct", &ChangeRow::saving_pct},
                              {"more_pct", &ChangeRow::more_pct},
                              {"most_pct", &ChangeRow::most_pct},
                              {"assumes", [](Row r) { return json::array(r.assumes.begin(), r.assumes.end()); }}});
}

}  // namespace perseus::cli
