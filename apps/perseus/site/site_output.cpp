#include "site/site_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

#include "base/count_text.h"
#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/csv.h"
#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/static_page.h"
#include "io/report/table.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxRows = 40;  // of a table on a terminal

std::string watts(Watts power) {
  const double w = power.value();
  if (!std::isfinite(w)) return "none";
  if (w >= 1e6) return fmt::format("{:.4f} MW", w / 1e6);
  return w >= 1e4 ? fmt::format("{:.2f} kW", w / 1e3) : fmt::format("{:.0f} W", w);
}

std::string watts_cell(double power_w) { return watts(Watts(power_w)); }
std::string positive_watts_cell(double power_w) { return power_w > 0 ? watts_cell(power_w) : "-"; }

double total_weight(const model::Site& site) {
  double sum = 0;
  for (const model::SiteJob& job : site.jobs) sum += job.weight;
  return sum;
}

Watts all_max_of(const SitePlanReport& report) {
  Watts sum;
  for (const model::SiteJob& job : report.planned->timed.site.jobs) sum += job.all_max;
  return sum;
}

Watts missing_of(const site::Interval& interval) {
  return interval.allocation.missing.empty() ? Watts(0) : *std::ranges::max_element(interval.allocation.missing);
}

/// The objective per weight: throughput in percent of full speed, the mean slowdown, or the least rate in percent.
double per_weight(const SitePlanReport& report, double value) {
  switch (report.objective) {
    case model::SiteObjective::throughput:
      return 100 * value / total_weight(report.planned->timed.site);
    case model::SiteObjective::slowdown:
      return -value / total_weight(report.planned->timed.site);
    case model::SiteObjective::max_min:
      break;
  }
  return 100 * value;
}

double gap_pct(const model::Allocation& allocation) {
  return 100 * (allocation.bound - allocation.value) / std::abs(allocation.bound);
}

/// What one more kW would bring: percent points of throughput, or of the mean slowdown.
double price_pct_per_kw(const SitePlanReport& report, double price) {
  return 100 * 1000 * price / total_weight(report.planned->timed.site);
}

Table domains_of(const SitePlanReport& report, const site::Interval& interval) {
  const model::Site& site = report.planned->timed.site;
  const model::Allocation& found = interval.allocation;
  std::vector<Watts> all_max(site.domains.size());
  for (const model::SiteJob& job : site.jobs) all_max[job.domain] += job.all_max;
  for (std::size_t d = all_max.size() - 1; d > 0; --d) all_max[site.domains[d].parent] += all_max[d];
  const auto price = [&](int d) { return price_pct_per_kw(report, found.price[d]); };
  const auto limit = [&](int d) {
    return interval.limits[d] == model::kNoLimit ? std::nullopt : std::optional(interval.limits[d]);
  };
  const auto paid = [&](int d) {
    return price(d) > 0 && found.missing[d] == Watts(0) ? std::optional(price(d)) : std::nullopt;
  };
  return table_of<int>(indices_of(interval.used),
                       {{"name", [&](int d) { return site.domains[d].name; }, "domain"},
                        {"-limit", [&](int d) { return watts(interval.limits[d]); }, "limit for GPUs"},
                        {"-guard", [&](int d) { return interval.guards[d]; }, "guard", positive_watts_cell},
                        {"used_w", [&](int d) { return interval.used[d]; }, "used", watts_cell},
                        {"guard_w", [&](int d) { return interval.guards[d]; }},
                        {"price_pct_per_kw", price},
                        {"missing_w", [&](int d) { return found.missing[d]; }},
                        {"limit_w", limit},
                        {"-all_max", [&](int d) { return all_max[d]; }, "at maximum clock", watts_cell},
                        {"-price", paid, "% per kW", "{:.4g}"},
                        {"-short", [&](int d) { return found.missing[d]; }, "short", positive_watts_cell}});
}

Table jobs_of(const SitePlanReport& report, const site::Interval& interval) {
  const model::Site& site = report.planned->timed.site;
  const auto point = [&](int j) -> const model::PowerPoint& {
    return site.jobs[j].curve.points[interval.allocation.chosen[j]];
  };
  const auto iteration = [&](int j) {
    return point(j).rate > 0 ? std::optional(report.planned->full_speed[j] / point(j).rate) : std::nullopt;
  };
  const auto plan = [&](int j) {
    return point(j).paced ? fmt::format("{} and a wait", point(j).plan) : std::to_string(point(j).plan);
  };
  return table_of<int>(
      indices_of(site.jobs),
      {{"name", [&](int j) { return site.jobs[j].name; }, "job"},
       {"domain", [&](int j) { return site.domains[site.jobs[j].domain].name; }, "domain"},
       {"gpus", [&](int j) { return report.planned->gpus[j]; }, "GPUs"},
       {"power_w", [&](int j) { return point(j).power; }, "power", watts_cell},
       {"rate", [&](int j) { return point(j).rate; }, "speed", "{:.2f} %", 0.01},
       {"least_rate", [&](int j) { return interval.least_rates[j]; }, "at least", "{:.2f} %", 0.01},
       {"point", [&](int j) { return point(j).plan; }},
       {"paced", [&](int j) { return point(j).paced; }},
       {"-from_s", [&](int) { return interval.from; }, ""},
       {"-time", [&](int j) { return iteration(j) ? report::text_of(*iteration(j)) : "stopped"; }, "iteration"},
       {"-plan", plan, "plan"},
       {"iteration_time_s", iteration}});
}

/// `whole`: with domains and jobs.
Table intervals_of(const SitePlanReport& report, bool whole = false) {
  using site::Interval;
  const auto speed = [&](const Interval& i) { return site::speed_of(report.planned->timed.site, i.allocation.chosen); };
  const auto until = [](const Interval& i) { return i.until > i.from ? std::optional(i.until) : std::nullopt; };
  const auto gap = [](const Interval& i) {
    return missing_of(i) > Watts(0) ? std::nullopt : std::optional(std::max(0.0, gap_pct(i.allocation)));
  };
  return table_of<Interval>(
      report.intervals,
      {{"from_s", &Interval::from, "from", "{:g} s"},
       {"-until", until, "until", "{:g} s"},
       {"-limit", [](const Interval& i) { return watts(i.limits[0]); }, "limit for GPUs"},
       {"-used", [](const Interval& i) { return i.used[0]; }, "used", watts_cell},
       {"throughput", [=](const Interval& i) { return speed(i).throughput; }, "throughput", "{:.2f} %", 0.01},
       {"least_rate", [=](const Interval& i) { return speed(i).least_rate; }, "slowest job", "{:.2f} %", 0.01},
       {"domains",
        [&](const Interval& i) { return whole ? std::optional(domains_of(report, i).json()) : std::nullopt; }},
       {"jobs", [&](const Interval& i) { return whole ? std::optional(jobs_of(report, i).json()) : std::nullopt; }},
       {"until_s", until},
       {"-gap", gap, "gap", "{:.4f} %"},
       {"gap_pct",
        [](const Interval& i) {
          return std::isnan(i.allocation.bound) ? std::nullopt : std::optional(std::max(0.0, gap_pct(i.allocation)));
        }},
       {"-short", missing_of, "short", positive_watts_cell}});
}

Table curve_of(const DomainWhatIf& what_if) {
  using site::WhatIf;
  return table_of<WhatIf>(
      what_if.curve,
      {{"fraction", &WhatIf::fraction, "of maximum clock", "{:.0f} %", 0.01},
       {"limit_w", &WhatIf::limit, "limit for GPUs", watts_cell},
       {"throughput", [](const WhatIf& w) { return w.best.throughput; }, "throughput", "{:.2f} %", 0.01},
       {"least_rate", [](const WhatIf& w) { return w.best.least_rate; }, "slowest job", "{:.2f} %", 0.01},
       {"equal_shares_throughput", [](const WhatIf& w) { return w.equal_shares.throughput; }, "equal shares",
        "{:.2f} %", 0.01},
       {"missing_w", &WhatIf::missing, "short", positive_watts_cell}});
}

Table headroom_of(const SitePlanReport& report) {
  return table_of<HeadroomAtRate>(
      report.headroom,
      {{"rate", &HeadroomAtRate::rate, "speed of every job", "{:.0f} %", 0.01},
       {"more_gpus", &HeadroomAtRate::more, "more GPUs in the watts of maximum clock", "{:.1f} %", 0.01}});
}

std::string table_text(const Table& all, std::size_t left_columns = 1) {
  const report::TextRows rows = all.text();
  report::TextTable table(rows.header, left_columns);
  for (std::size_t k = 0; k < std::min(kMaxRows, rows.rows.size()); ++k) table.add(rows.rows[k]);
  std::string text = table.to_string(output_columns());
  if (rows.rows.size() > kMaxRows) {
    text += fmt::format("... and {} more: --json, or --out DIR\n", rows.rows.size() - kMaxRows);
  }
  return text;
}

/// Domains whose floors do not fit, and jobs below their floor.
std::vector<std::string> shortages_of(const SitePlanReport& report) {
  std::vector<std::string> lines;
  const model::Site& site = report.planned->timed.site;
  for (const site::Interval& interval : report.intervals) {
    if (missing_of(interval) == Watts(0)) continue;
    for (std::size_t d = 0; d < site.domains.size(); ++d) {
      if (interval.allocation.missing[d] == Watts(0)) continue;
      lines.push_back(fmt::format("from {:g} s: domain '{}' lacks {} for what its jobs accept{}", interval.from.value(),
                                  site.domains[d].name, watts(interval.allocation.missing[d]),
                                  interval.used[d] > interval.limits[d] * 1.000001
                                      ? fmt::format("; even waiting, its jobs draw {}", watts(interval.used[d]))
                                      : ""));
    }
    int below = 0;
    std::string names;
    for (std::size_t j = 0; j < site.jobs.size(); ++j) {
      const double rate = site.jobs[j].curve.points[interval.allocation.chosen[j]].rate;
      if (rate >= interval.least_rates[j] * (1 - 1e-12) && rate > 0) continue;
      if (++below <= 5) names += fmt::format("{}{} ({:.1f} %)", below > 1 ? ", " : "", site.jobs[j].name, 100 * rate);
    }
    lines.push_back(fmt::format("from {:g} s: {} below the least rate: {}{}", interval.from.value(),
                                below == 1 ? "1 job is" : fmt::format("{} jobs are", below), names,
                                below > 5 ? ", ..." : ""));
    if (lines.size() >= 20) return lines;
  }
  return lines;
}

struct MissedDeadline {
  std::size_t job = 0;
  double iterations = 0;  ///< that are left at the deadline
};

/// Of the deadlines within the plan. Intervals end at deadlines.
std::vector<MissedDeadline> missed_deadlines(const SitePlanReport& report) {
  std::vector<MissedDeadline> missed;
  const PlannedSite& planned = *report.planned;
  for (std::size_t j = 0; j < planned.timed.due.size(); ++j) {
    const auto& due = planned.timed.due[j];
    if (!due || report.intervals.empty() || report.intervals.back().until < due->at) continue;
    Seconds left = due->work;
    for (const site::Interval& interval : report.intervals) {
      if (interval.from >= due->at) break;
      const int chosen = interval.allocation.chosen[j];
      left -= planned.timed.site.jobs[j].curve.points[chosen].rate * (interval.until - interval.from);
    }
    constexpr double rounding = 1e-6;
    if (left > rounding * due->work) missed.push_back({j, left / planned.full_speed[j]});
  }
  return missed;
}

std::vector<std::string> missed_deadlines_text(const SitePlanReport& report) {
  constexpr std::size_t most = 20;
  std::vector<std::string> lines;
  for (const MissedDeadline& one : missed_deadlines(report)) {
    if (lines.size() >= most) break;
    lines.push_back(fmt::format("job '{}' misses its deadline of {:g} s: {:.1f} iterations are left then",
                                report.planned->timed.site.jobs[one.job].name,
                                report.planned->timed.due[one.job]->at.value(), one.iterations));
  }
  return lines;
}

std::vector<report::ReportFact> facts_of(const SitePlanReport& report) {
  const model::SiteDescription& d = *report.description;
  long gpus = 0;
  for (const int n : report.planned->gpus) gpus += n;
  return {{"site", fmt::format("{}, {}", d.name, count_text(d.domains.size(), "domain"))},
          {"jobs", fmt::format("{}, {}", report.planned->gpus.size(), count_text(gpus, "GPU"))},
          {"GPUs at maximum clock", watts(all_max_of(report))},
          {"other loads", fmt::format("{} of hosts and constant loads, PUE {:g}, supply efficiency {:g}",
                                      watts(report.planned->constants[0]), d.pue, d.supply_efficiency)},
          {"objective", std::string(model::name_of(report.objective))}};
}

std::string objective_text(const SitePlanReport& report) {
  const model::Allocation& first = report.intervals.front().allocation;
  const double value = per_weight(report, first.value);
  if (std::isnan(first.bound)) return "What the jobs accept at least does not fit.";
  const double bound = per_weight(report, first.bound);
  switch (report.objective) {
    case model::SiteObjective::throughput:
      return fmt::format("Throughput {:.3f} % of full speed; no allocation has more than {:.3f} %.", value, bound);
    case model::SiteObjective::slowdown:
      return fmt::format("Mean time of an iteration {:.5f} of full speed; no allocation has less than {:.5f}.", value,
                         bound);
    case model::SiteObjective::max_min:
      break;
  }
  return fmt::format("The slowest job has {:.3f} % of full speed; no allocation has a faster slowest job.", value);
}

report::ChartPanel what_if_panel(const SitePlanReport& report, const DomainWhatIf& what_if) {
  report::ChartSeries best{"optimum", report::look_of("exact"), report::SeriesKind::marked_line};
  report::ChartSeries equal{"equal shares, best plans", report::look_of("zeus-global"),
                            report::SeriesKind::marked_line};
  for (const auto& row : what_if.curve) {
    best.points.push_back({row.limit.value() / 1000, 100 * row.best.throughput});
    equal.points.push_back({row.limit.value() / 1000, 100 * row.equal_shares.throughput});
  }
  std::ranges::reverse(best.points);
  std::ranges::reverse(equal.points);
  return {report.planned->timed.site.domains[what_if.domain].name, {std::move(best), std::move(equal)}};
}

std::string power_chart(const SitePlanReport& report) {
  report::ChartSeries used{"used", report::look_of("exact")}, limit{"limit", report::look_of("bound")};
  for (const site::Interval& interval : report.intervals) {
    for (const Seconds time : {interval.from, interval.until}) {
      used.points.push_back({time.value(), interval.used[0].value() / 1000});
      limit.points.push_back({time.value(), interval.limits[0].value() / 1000});
    }
  }
  return report::line_chart({"Power of the GPUs over time", "s", "kW"}, {{"", {std::move(used), std::move(limit)}}});
}

void write_page(const SitePlanReport& report, const report::Sink& sink) {
  report::StaticPage page{"Perseus site plan", report.description->name, with_origin(facts_of(report)), {}};
  report::PageSection top;
  top.note = objective_text(report);
  for (const std::string& line : shortages_of(report)) top.list.push_back({"short", line});
  for (const std::string& line : missed_deadlines_text(report)) top.list.push_back({"late", line});
  page.sections.push_back(std::move(top));
  if (report.intervals.size() > 1) {
    page.sections.push_back(
        {.heading = "Over time", .drawings = {power_chart(report)}, .table = intervals_of(report).text()});
  }
  page.sections.push_back(
      {.heading = "Domains",
       .table = domains_of(report, report.intervals.front()).text(),
       .note = "At the beginning. % per kW: what one more kilowatt would bring there, in percent points of "
               "throughput or of the mean slowdown."});
  std::vector<report::ChartPanel> panels;
  for (const DomainWhatIf& what_if : report.what_if) panels.push_back(what_if_panel(report, what_if));
  page.sections.push_back(
      {.heading = "What a limit costs",
       .drawings = {report::line_chart({"Throughput over watts", "kW of GPUs", "% of full speed"}, panels)},
       .table = curve_of(report.what_if.front()).text(),
       .note = "With no other limit. Equal shares: every job gets the same fraction of its own power at "
               "maximum clock, and the best plan within it."});
  page.sections.push_back({.heading = "Headroom",
                           .table = headroom_of(report).text(),
                           .note = "GPUs of the same mix of jobs; GPU watts only."});
  page.sections.push_back(
      {.heading = "Jobs", .table = jobs_of(report, report.intervals.front()).text(), .note = "At the beginning."});
  report::write_static_page(page, sink);
}

std::string csv_of_jobs(const SitePlanReport& report) {
  json::array jobs;
  for (const site::Interval& interval : report.intervals) {
    for (json::value& job : jobs_of(report, interval).records) jobs.push_back(std::move(job));
  }
  return csv_of("from_s,job=name,domain,gpus,power_w,rate,least_rate,point,paced", jobs);
}

OutputDirectory::IsOurs files_of_a_site_plan() { return one_of({"site.html", "jobs.csv", "site.json"}); }

}  // namespace

std::string site_plan_text(const SitePlanReport& report) {
  std::string text = lines_of(facts_of(report)) + "\n" + objective_text(report) + "\n";
  for (const std::string& line : shortages_of(report)) text += line + "\n";
  for (const std::string& line : missed_deadlines_text(report)) text += line + "\n";
  text += "\n" + table_text(domains_of(report, report.intervals.front())) + "\n";
  text += table_text(jobs_of(report, report.intervals.front()), 2) + "\n";
  if (report.intervals.size() > 1) text += "Over time:\n" + table_text(intervals_of(report), 0) + "\n";
  text += "What a limit of the site costs, with no other limit:\n" + table_text(curve_of(report.what_if.front()), 0);
  text += "\nHeadroom:\n" + table_text(headroom_of(report), 0);
  return text;
}

json::object site_plan_json(const SitePlanReport& report) {
  json::object answer{{"name", report.description->name}, {"objective", std::string(model::name_of(report.objective))}};
  answer["intervals"] = intervals_of(report, true).json();
  json::array curves;
  for (const DomainWhatIf& what_if : report.what_if) {
    curves.push_back(json::object{{"domain", report.planned->timed.site.domains[what_if.domain].name},
                                  {"curve", curve_of(what_if).json()}});
  }
  answer["what_if"] = std::move(curves);
  answer["headroom"] = headroom_of(report).json();
  json::array missed;
  for (const MissedDeadline& one : missed_deadlines(report)) {
    missed.push_back(json::object{{"job", report.planned->timed.site.jobs[one.job].name},
                                  {"deadline_s", report.planned->timed.due[one.job]->at.value()},
                                  {"iterations_left", one.iterations}});
  }
  answer["missed_deadlines"] = std::move(missed);
  answer["origin"] = origin_json();
  return answer;
}

Status check_site_plan(const std::string& directory) { return check_output(directory, files_of_a_site_plan()); }

Status write_site_plan(const std::string& directory, const SitePlanReport& report) {
  return write_output(directory, files_of_a_site_plan(),
                      {{"jobs.csv", csv_of_jobs(report)},
                       {"site.json", formats::json_text(site_plan_json(report)) + "\n"},
                       {"site.html", [&](const report::Sink& sink) { write_page(report, sink); }}});
}

}  // namespace perseus::cli
