#include "search/search_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>

#include "command_line/origin.h"
#include "command_line/terminal_size.h"
#include "io/report/comparison.h"
#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/stacked_bars.h"
#include "io/report/static_page.h"
#include "io/report/timeline.h"
#include "planning/model/reference_plans.h"
#include "search/search_changes.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kSpansShown = 12;

std::string slower_text(const SearchSummary& s, Seconds time) {
  const double pct = 100 * ((time - s.reference.time) / s.reference.time);
  return std::abs(pct) < 0.0005
             ? std::string("as fast as the reference")
             : fmt::format("{:.3f} % {} than the reference", std::abs(pct), pct < 0 ? "faster" : "slower");
}

Table configurations_of(const SearchReport& report) {
  const auto planned = [&](int c) -> const PlannedConfiguration& { return report.configurations[c]; };
  const auto figures = [&](int c) -> const ConfigurationFigures& { return report.summary.configurations[c]; };
  const auto in_time = [&](int c) {
    const std::optional<int> point = figures(c).in_time;
    if (!point) return json::value();
    const model::FrontierPoint& p = planned(c).frontier.points[*point];
    return json::value{{"point", *point},
                       {"time_s", p.time.value()},
                       {"energy_j", p.energy.value()},
                       {"bound_j", p.bound.value()},
                       {"saving_pct", figures(c).saving_pct}};
  };
  const auto memory = [&](int c) {
    return planned(c).memory_gib ? json::value(*planned(c).memory_gib) : json::value();
  };
  const auto assumptions = [&](int c) {
    return json::array(planned(c).assumptions.begin(), planned(c).assumptions.end());
  };
  Table table = table_of<int>(
      indices_of(report.configurations),
      {{"name", [&](int c) { return planned(c).name; }, "configuration"},
       {"description", [&](int c) { return planned(c).description; }},
       {"t_min_s", [&](int c) { return figures(c).t_min; }},
       {"t_star_s", [&](int c) { return figures(c).t_star; }},
       {"points", [&](int c) { return planned(c).frontier.points.size(); }},
       {"wins_pct", [&](int c) { return figures(c).wins_pct; }},
       {"assumptions", assumptions},
       {"-fastest", [&](int c) { return planned(c).frontier.points.back().time; }, "fastest", seconds_cell},
       {"memory_gib", memory, "memory", "{:.4g} GiB"},
       {"in_time", in_time},
       {"-slowest", [&](int c) { return planned(c).frontier.points.front().time; }, ""}});
  table.columns.insert(table.columns.end(), {{"in time", "in_time.time_s", seconds_cell},
                                             {"energy", "in_time.energy_j", joules_cell},
                                             {"saving", "in_time.saving_pct", "{:.2f} %"},
                                             {"slowest", "slowest", seconds_cell},
                                             {"wins", "wins_pct", "{:.1f} %"}});
  return table;
}

/// "from 2.8 s zero-bubble, from 3.1 s 1f1b".
std::string spans_text(const SearchReport& report) {
  const std::vector<search::WinningSpan> spans = search::winning_spans(report.summary.all);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(spans.size(), kSpansShown); ++i) {
    texts.push_back(
        fmt::format("from {} {}", report::text_of(spans[i].from), report.configurations[spans[i].configuration].name));
  }
  if (spans.size() > kSpansShown) texts.push_back(fmt::format("and {} more changes", spans.size() - kSpansShown));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string default_text(const SearchReport& report) {
  const SearchSummary& s = report.summary;
  const model::FrontierPoint& chosen = s.all.frontier.points[s.default_point];
  const search::Origin origin = s.all.origins[s.default_point];
  return fmt::format("{}, point {}: {}, {}, {}; saves {:.2f} %", report.configurations[origin.configuration].name,
                     origin.point, report::text_of(chosen.time), report::text_of(chosen.energy),
                     slower_text(s, chosen.time), saving_pct_of(s, chosen.energy));
}

std::vector<report::ReportFact> assumption_facts(const SearchReport& report) {
  std::vector<report::ReportFact> facts;
  for (const PlannedConfiguration& configuration : report.configurations) {
    for (const std::string& assumption : configuration.assumptions) {
      const auto known = std::ranges::find(facts, assumption, &report::ReportFact::value);
      if (known == facts.end()) {
        facts.push_back({configuration.name, assumption});
      } else {
        known->name += ", " + configuration.name;
      }
    }
  }
  return facts;
}

std::string rule_text(const model::DefaultRule& rule) {
  return rule.slowdown == 0 ? "no slower than it" : fmt::format("at most {:g} % slower than it", 100 * rule.slowdown);
}

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

double saving_pct_of(const SearchSummary& summary, Joules energy) {
  const Joules before = summary.reference.energy;
  return energy == before ? 0 : 100 * ((before - energy) / before);
}

SearchSummary summarize_search(const std::vector<PlannedConfiguration>& configurations,
                               const model::DefaultRule& rule) {
  SearchSummary summary;
  // For every method: the job runs the reference at maximum clock today.
  summary.rule = {rule.slowdown, false};
  const model::ComputationDag& reference = configurations.front().dag;
  const report::Timeline at_maximum = report::timeline_of(reference, model::all_maximum_clock(reference));
  const Seconds lateness = configurations.front().frontier.maximum_clock_noise.lateness;
  summary.reference = {at_maximum.makespan + lateness, at_maximum.energy + reference.total_blocking_power() * lateness,
                       at_maximum.effective_energy};
  std::vector<const model::Frontier*> frontiers;
  for (const PlannedConfiguration& c : configurations) frontiers.push_back(&c.frontier);
  summary.all = search::union_of(frontiers, reference.total_blocking_power());
  const std::vector<model::FrontierPoint>& points = summary.all.frontier.points;
  const Seconds deadline = (1 + rule.slowdown) * allowed_time(summary.all.frontier, summary.reference.time);
  // Where no plan is as fast as the reference, the fastest.
  summary.default_point =
      search::cheapest_in_time(summary.all.frontier, deadline).value_or(static_cast<int>(points.size()) - 1);

  summary.bound_in_time = search::least_energy_in_time(frontiers, reference.total_blocking_power(), deadline);
  for (const PlannedConfiguration& c : configurations) {
    ConfigurationFigures figures{c.frontier.bound.t_min(), c.frontier.bound.t_star(), {}, 0, 0};
    figures.in_time = search::cheapest_in_time(c.frontier, deadline);
    if (figures.in_time) figures.saving_pct = saving_pct_of(summary, c.frontier.points[*figures.in_time].energy);
    summary.configurations.push_back(figures);
  }
  const Seconds range = points.front().time - points.back().time;
  for (std::size_t i = points.size(); i-- > 0;) {
    // A point is in use up to the next slower one's deadline.
    const Seconds until = i == 0 ? points[0].time : points[i - 1].time;
    const double share = range > Seconds() ? (until - points[i].time) / range : (points.size() == 1 ? 1.0 : 0.0);
    summary.configurations[summary.all.origins[i].configuration].wins_pct += 100 * share;
  }
  return summary;
}

std::string search_text(const SearchReport& report) {
  const SearchSummary& s = report.summary;
  std::string text =
      lines_of(report.inputs) + "\n" + report::text_of(configurations_of(report).text(), output_columns()) + "\n";
  text += fmt::format("reference: {}, everything at maximum clock: {}, {} (the reference of 'saving')\n",
                      report.configurations.front().name, report::text_of(s.reference.time),
                      report::text_of(s.reference.energy));
  text += fmt::format("in time: the plan of least energy that is {}; slowest: being slower saves nothing more\n",
                      rule_text(s.rule));
  text += fmt::format("best at each deadline: {}\n", spans_text(report));
  text += fmt::format("default plan: {}\n", default_text(report));
  text += fmt::format("no plan of these configurations that is {} saves more than {:.2f} % (proven)\n",
                      rule_text(s.rule), saving_pct_of(s, s.bound_in_time));
  text += "\nwhat each change saves, one after the other:\n" +
          report::text_of(table_of_changes(changes_of(report.configurations, s)).text(), output_columns()) + "\n";
  for (const SkippedConfiguration& out : report.left_out) text += fmt::format("left out: {}\n", out.reason);
  for (const report::ReportFact& fact : assumption_facts(report)) {
    text += fmt::format("assumed for {}: {}\n", fact.name, fact.value);
  }
  return text;
}

Table points_of(const SearchReport& report) {
  const SearchSummary& s = report.summary;
  const auto point = [&](int i) -> const model::FrontierPoint& { return s.all.frontier.points[i]; };
  return table_of<int>(
      indices_of(s.all.frontier.points),
      {{"-point", [](int i) { return i; }, ""},
       {"configuration", [&](int i) { return report.configurations[s.all.origins[i].configuration].name; }},
       {"configuration_point", [&](int i) { return s.all.origins[i].point; }},
       {"time_s", [&](int i) { return point(i).time; }},
       {"energy_j", [&](int i) { return point(i).energy; }},
       {"effective_energy_j", [&](int i) { return point(i).effective_energy; }},
       {"bound_j", [&](int i) { return point(i).bound; }},
       {"gap_pct", [&](int i) { return point(i).gap_pct(); }},
       {"saving_pct", [&](int i) { return saving_pct_of(s, point(i).energy); }},
       {"slowdown_pct", [&](int i) { return 100 * ((point(i).time - s.reference.time) / s.reference.time); }}});
}

std::string configurations_csv(const SearchReport& report) {
  return configurations_of(report).csv(
      "configuration=name,t_min_s,t_star_s,points,point_in_time=in_time.point,time_s=in_time.time_s,"
      "energy_j=in_time.energy_j,saving_pct=in_time.saving_pct,wins_pct");
}

json::object search_json(const SearchReport& report) {
  const SearchSummary& s = report.summary;
  json::array spans, left_out;
  for (const search::WinningSpan& span : search::winning_spans(s.all)) {
    spans.push_back(
        json::object{{"from_s", span.from.value()}, {"configuration", report.configurations[span.configuration].name}});
  }
  for (const SkippedConfiguration& out : report.left_out) {
    left_out.push_back(json::object{{"name", out.name}, {"reason", out.reason}});
  }
  json::array points = points_of(report).json();
  json::object chosen = points[s.default_point].get_object();
  chosen["slowdown_tolerated_pct"] = 100 * s.rule.slowdown;
  chosen["bound_in_time_j"] = s.bound_in_time.value();
  return {{"inputs", object_of(report.inputs)},
          {"origin", origin_json()},
          {"reference", json::object{{"configuration", report.configurations.front().name},
                                     {"time_s", s.reference.time.value()},
                                     {"energy_j", s.reference.energy.value()}}},
          {"default_plan", std::move(chosen)},
          {"changes", table_of_changes(changes_of(report.configurations, s)).json()},
          {"configurations", configurations_of(report).json()},
          {"left_out", std::move(left_out)},
          {"best_at", std::move(spans)},
          {"points", std::move(points)}};
}

void write_search_svg(const SearchReport& report, const report::Sink& sink) {
  // The reference, and every configuration that is best at some deadline.
  std::vector<report::ComparedMethod> drawn;
  for (std::size_t c = 0; c < report.configurations.size(); ++c) {
    if (c > 0 && report.summary.configurations[c].wins_pct == 0) continue;
    drawn.push_back(
        {report.configurations[c].name, report.configurations[c].description, "", report.configurations[c].frontier});
  }
  report::write_comparison_svg({report.configurations.front().dag, drawn, report.title, report.inputs}, sink);
}

void write_search_html(const SearchReport& report, const report::Sink& sink) {
  std::string drawing;
  write_search_svg(report, [&](std::string_view piece) { drawing += piece; });
  const SearchSummary& s = report.summary;
  std::vector<report::ReportFact> left_out;
  for (const SkippedConfiguration& out : report.left_out) left_out.push_back({out.name, out.reason});
  std::vector<report::PageSection> sections{
      change_section(report, changes_of(report.configurations, s)),
      {"Configurations",
       {drawing},
       {{"Default plan", default_text(report)}, {"Best at each deadline", spans_text(report)}},
       configurations_of(report).text(),
       fmt::format("Drawn: the reference, and every configuration that is best at some deadline. Saving: against {} "
                   "with everything at maximum clock, {} and {}. In time: the plan of least energy that is "
                   "{}. Wins: the share of deadlines at which it needs the least energy.",
                   report.configurations.front().name, report::text_of(s.reference.time),
                   report::text_of(s.reference.energy), rule_text(s.rule))}};
  if (const auto facts = assumption_facts(report); !facts.empty()) {
    sections.push_back({.heading = "Assumptions",
                        .list = facts,
                        .note = "Derived, not measured: measure a configuration before you rely on it."});
  }
  if (!left_out.empty()) sections.push_back({.heading = "Left out", .list = left_out});
  std::vector<report::ReportFact> facts = report.inputs;
  facts.insert(facts.end(), report.origin.begin(), report.origin.end());
  report::write_static_page({"Perseus configurations", report.title, std::move(facts), std::move(sections)}, sink);
}

report::PageSection change_section(const SearchReport& report, const std::vector<ChangeRow>& changes) {
  return {"Where the energy goes, and what to change",
          {frontier_chart(report, changes), energy_bars(report, changes)},
          change_facts(changes),
          table_of_changes(changes).text(),
          "One after the other: each line and row may use the changes above it. At most: no plan of these "
          "configurations saves more (proven). The bars have each change's plan in time."};
}

}  // namespace perseus::cli
