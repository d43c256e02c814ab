#include "search_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>

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

/// The best plan within the deadline of configurations with changes up to `largest`.
ChangeRow row_of(const std::vector<PlannedConfiguration>& configurations, const SearchSummary& summary, Change largest,
                 Seconds deadline) {
  ChangeRow row;
  std::vector<const model::Frontier*> allowed;
  for (const PlannedConfiguration& configuration : configurations) {
    if (configuration.change > largest) continue;
    allowed.push_back(&configuration.frontier);
    const auto point = search::cheapest_in_time(configuration.frontier, deadline);
    if (!point) continue;
    const model::FrontierPoint& found = configuration.frontier.points[*point];
    if (row.plan && row.plan->energy <= found.energy) continue;
    row.plan = found;
    row.configuration = configuration.name;
  }
  const Watts blocking_power = configurations.front().dag.total_blocking_power();
  row.most_pct = saving_pct_of(summary, search::least_energy_in_time(allowed, blocking_power, deadline));
  if (row.plan) row.saving_pct = saving_pct_of(summary, row.plan->energy);
  return row;
}

}  // namespace

std::vector<ChangeRow> changes_of(const std::vector<PlannedConfiguration>& configurations,
                                  const SearchSummary& summary) {
  const Seconds t_max = model::allowed_time(summary.all.frontier, summary.reference.time);
  const Seconds deadline = (1 + summary.rule.slowdown) * t_max;
  std::vector<ChangeRow> rows;
  const auto add = [&](std::string change, Change largest, Seconds within) {
    ChangeRow row = row_of(configurations, summary, largest, within);
    row.change = std::move(change);
    row.more_pct = row.saving_pct - (rows.empty() ? 0 : rows.back().saving_pct);
    rows.push_back(std::move(row));
  };
  add(name_of(Change::clocks), Change::clocks, t_max);
  if (summary.rule.slowdown > 0) {
    add(fmt::format("+ {:g} % of time", 100 * summary.rule.slowdown), Change::clocks, deadline);
  }
  for (const Change change : {Change::recomputation, Change::schedule, Change::partition, Change::microbatches}) {
    const bool tried = std::ranges::find(configurations, change, &PlannedConfiguration::change) != configurations.end();
    if (tried) add(name_of(change), change, deadline);
  }
  return rows;
}

report::TextRows change_rows(const std::vector<ChangeRow>& changes) {
  report::TextRows rows{{"change", "saving", "more", "at most", "configuration", "time", "energy"}, {}};
  for (const ChangeRow& row : changes) {
    const std::string at_most = fmt::format("{:.2f} %", row.most_pct);
    if (row.plan) {
      rows.rows.push_back({row.change, fmt::format("{:.2f} %", row.saving_pct), fmt::format("{:+.2f}", row.more_pct),
                           at_most, row.configuration, report::text_of(row.plan->time),
                           report::text_of(row.plan->energy)});
    } else {
      rows.rows.push_back({row.change, "-", "-", at_most, "none is in time", "-", "-"});
    }
  }
  return rows;
}

json::array changes_json(const std::vector<ChangeRow>& changes) {
  json::array array;
  for (const ChangeRow& row : changes) {
    json::object object{{"change", row.change}, {"most_pct", row.most_pct}};
    if (row.plan) {
      object["configuration"] = row.configuration;
      object["time_s"] = row.plan->time.value();
      object["energy_j"] = row.plan->energy.value();
      object["saving_pct"] = row.saving_pct;
      object["more_pct"] = row.more_pct;
    }
    array.push_back(std::move(object));
  }
  return array;
}

}  // namespace perseus::cli
