#include "site/site_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

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
std::string missing_cell(double power_w) { return power_w > 0 ? watts_cell(power_w) : "-"; }

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

report::TextRows domain_rows(const SitePlanReport& report, const site::Interval& interval) {
  const model::Site& site = report.planned->timed.site;
  std::vector<Watts> all_max(site.domains.size());
  for (const model::SiteJob& job : site.jobs) all_max[job.domain] += job.all_max;
  for (std::size_t d = all_max.size() - 1; d > 0; --d) all_max[site.domains[d].parent] += all_max[d];
  report::TextRows rows{{"domain", "limit for GPUs", "guard", "used", "at maximum clock", "% per kW", "short"}, {}};
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    const Watts missing = interval.allocation.missing[d];
    const double price = price_pct_per_kw(report, interval.allocation.price[d]);
    rows.rows.push_back({site.domains[d].name, watts(interval.limits[d]),
                         interval.guards[d] > Watts(0) ? watts(interval.guards[d]) : "-", watts(interval.used[d]),
                         watts(all_max[d]), price > 0 && missing == Watts(0) ? fmt::format("{:.4g}", price) : "-",
                         missing > Watts(0) ? watts(missing) : "-"});
  }
  return rows;
}

report::TextRows job_rows(const SitePlanReport& report, const site::Interval& interval) {
  const model::Site& site = report.planned->timed.site;
  report::TextRows rows{{"job", "domain", "GPUs", "power", "speed", "at least", "iteration", "plan"}, {}};
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const model::SiteJob& job = site.jobs[j];
    const model::PowerPoint& point = job.curve.points[interval.allocation.chosen[j]];
    rows.rows.push_back({job.name, site.domains[job.domain].name, std::to_string(report.planned->gpus[j]),
                         watts(point.power), fmt::format("{:.2f} %", 100 * point.rate),
                         fmt::format("{:.2f} %", 100 * interval.least_rates[j]),
                         point.rate > 0 ? report::text_of(report.planned->full_speed[j] / point.rate) : "stopped",
                         point.paced ? fmt::format("{} and a wait", point.plan) : std::to_string(point.plan)});
  }
  return rows;
}

report::TextRows interval_rows(const SitePlanReport& report) {
  report::TextRows rows{{"from", "until", "limit for GPUs", "used", "throughput", "slowest job", "gap", "short"}, {}};
  for (const site::Interval& interval : report.intervals) {
    const site::Speed speed = site::speed_of(report.planned->timed.site, interval.allocation.chosen);
    const Watts missing = missing_of(interval);
    rows.rows.push_back(
        {fmt::format("{:g} s", interval.from.value()),
         interval.until > interval.from ? fmt::format("{:g} s", interval.until.value()) : "-",
         watts(interval.limits[0]), watts(interval.used[0]), fmt::format("{:.2f} %", 100 * speed.throughput),
         fmt::format("{:.2f} %", 100 * speed.least_rate),
         missing > Watts(0) ? "-" : fmt::format("{:.4f} %", std::max(0.0, gap_pct(interval.allocation))),
         missing > Watts(0) ? watts(missing) : "-"});
  }
  return rows;
}

json::array what_if_json(const DomainWhatIf& what_if) {
  json::array rows;
  for (const site::WhatIf& row : what_if.curve) {
    rows.push_back({{"fraction", row.fraction},
                    {"limit_w", row.limit.value()},
                    {"throughput", row.best.throughput},
                    {"least_rate", row.best.least_rate},
                    {"equal_shares_throughput", row.equal_shares.throughput},
                    {"missing_w", row.missing.value()}});
  }
  return rows;
}

report::TextRows what_if_rows(const DomainWhatIf& what_if) {
  return text_rows(what_if_json(what_if), {{"of maximum clock", "fraction", "{:.0f} %", 0.01},
                                           {"limit for GPUs", "limit_w", watts_cell},
                                           {"throughput", "throughput", "{:.2f} %", 0.01},
                                           {"slowest job", "least_rate", "{:.2f} %", 0.01},
                                           {"equal shares", "equal_shares_throughput", "{:.2f} %", 0.01},
                                           {"short", "missing_w", missing_cell}});
}

json::array headroom_json(const SitePlanReport& report) {
  json::array rows;
  for (const HeadroomAtRate& r : report.headroom) rows.push_back({{"rate", r.rate}, {"more_gpus", r.more}});
  return rows;
}

report::TextRows headroom_rows(const SitePlanReport& report) {
  return text_rows(headroom_json(report), {{"speed of every job", "rate", "{:.0f} %", 0.01},
                                           {"more GPUs in the watts of maximum clock", "more_gpus", "{:.1f} %", 0.01}});
}

std::string table_text(const report::TextRows& rows, std::size_t left_columns = 1) {
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
  return {{"site", fmt::format("{}, {} domains", d.name, d.domains.size())},
          {"jobs", fmt::format("{}, {} GPUs", report.planned->gpus.size(), gpus)},
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

json::array domains_json(const SitePlanReport& report, const site::Interval& interval) {
  json::array domains;
  for (std::size_t d = 0; d < interval.used.size(); ++d) {
    json::object one{{"name", report.planned->timed.site.domains[d].name},
                     {"used_w", interval.used[d].value()},
                     {"guard_w", interval.guards[d].value()},
                     {"price_pct_per_kw", price_pct_per_kw(report, interval.allocation.price[d])},
                     {"missing_w", interval.allocation.missing[d].value()}};
    if (interval.limits[d] != model::kNoLimit) one["limit_w"] = interval.limits[d].value();
    domains.push_back(std::move(one));
  }
  return domains;
}

json::array jobs_json(const SitePlanReport& report, const site::Interval& interval) {
  json::array jobs;
  const model::Site& site = report.planned->timed.site;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const model::PowerPoint& point = site.jobs[j].curve.points[interval.allocation.chosen[j]];
    json::object one{{"name", site.jobs[j].name},
                     {"domain", site.domains[site.jobs[j].domain].name},
                     {"gpus", report.planned->gpus[j]},
                     {"power_w", point.power.value()},
                     {"rate", point.rate},
                     {"least_rate", interval.least_rates[j]},
                     {"point", point.plan},
                     {"paced", point.paced}};
    if (point.rate > 0) one["iteration_time_s"] = (report.planned->full_speed[j] / point.rate).value();
    jobs.push_back(std::move(one));
  }
  return jobs;
}

json::object interval_json(const SitePlanReport& report, const site::Interval& interval) {
  const site::Speed speed = site::speed_of(report.planned->timed.site, interval.allocation.chosen);
  json::object one{{"from_s", interval.from.value()},
                   {"throughput", speed.throughput},
                   {"least_rate", speed.least_rate},
                   {"domains", domains_json(report, interval)},
                   {"jobs", jobs_json(report, interval)}};
  if (interval.until > interval.from) one["until_s"] = interval.until.value();
  if (!std::isnan(interval.allocation.bound)) one["gap_pct"] = std::max(0.0, gap_pct(interval.allocation));
  return one;
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
  report::StaticPage page{"Perseus site plan", report.description->name, facts_of(report), {}};
  page.facts.insert(page.facts.end(), report.origin.begin(), report.origin.end());
  report::PageSection top;
  top.note = objective_text(report);
  for (const std::string& line : shortages_of(report)) top.list.push_back({"short", line});
  for (const std::string& line : missed_deadlines_text(report)) top.list.push_back({"late", line});
  page.sections.push_back(std::move(top));
  if (report.intervals.size() > 1) {
    page.sections.push_back(
        {.heading = "Over time", .drawings = {power_chart(report)}, .table = interval_rows(report)});
  }
  page.sections.push_back(
      {.heading = "Domains",
       .table = domain_rows(report, report.intervals.front()),
       .note = "At the beginning. % per kW: what one more kilowatt would bring there, in percent points of "
               "throughput or of the mean slowdown."});
  std::vector<report::ChartPanel> panels;
  for (const DomainWhatIf& what_if : report.what_if) panels.push_back(what_if_panel(report, what_if));
  page.sections.push_back(
      {.heading = "What a limit costs",
       .drawings = {report::line_chart({"Throughput over watts", "kW of GPUs", "% of full speed"}, panels)},
       .table = what_if_rows(report.what_if.front()),
       .note = "With no other limit. Equal shares: every job gets the same fraction of its own power at "
               "maximum clock, and the best plan within it."});
  page.sections.push_back(
      {.heading = "Headroom", .table = headroom_rows(report), .note = "GPUs of the same mix of jobs; GPU watts only."});
  page.sections.push_back(
      {.heading = "Jobs", .table = job_rows(report, report.intervals.front()), .note = "At the beginning."});
  report::write_static_page(page, sink);
}

std::string jobs_csv(const SitePlanReport& report) {
  json::array jobs;
  for (const site::Interval& interval : report.intervals) {
    for (json::value& job : jobs_json(report, interval)) {
      job.get_object()["from_s"] = interval.from.value();
      jobs.push_back(std::move(job));
    }
  }
  return csv_of("from_s,job=name,domain,gpus,power_w,rate,least_rate,point,paced", jobs);
}

OutputDirectory::IsOurs files_of_a_site_plan() { return one_of({"site.html", "jobs.csv", "site.json"}); }

}  // namespace

std::string site_plan_text(const SitePlanReport& report) {
  std::string text = lines_of(facts_of(report)) + "\n" + objective_text(report) + "\n";
  for (const std::string& line : shortages_of(report)) text += line + "\n";
  for (const std::string& line : missed_deadlines_text(report)) text += line + "\n";
  text += "\n" + table_text(domain_rows(report, report.intervals.front())) + "\n";
  text += table_text(job_rows(report, report.intervals.front()), 2) + "\n";
  if (report.intervals.size() > 1) text += "Over time:\n" + table_text(interval_rows(report), 0) + "\n";
  text +=
      "What a limit of the site costs, with no other limit:\n" + table_text(what_if_rows(report.what_if.front()), 0);
  text += "\nHeadroom:\n" + table_text(headroom_rows(report), 0);
  return text;
}

json::object site_plan_json(const SitePlanReport& report) {
  json::object answer{{"name", report.description->name}, {"objective", std::string(model::name_of(report.objective))}};
  json::array intervals;
  for (const site::Interval& interval : report.intervals) intervals.push_back(interval_json(report, interval));
  answer["intervals"] = std::move(intervals);
  json::array curves;
  for (const DomainWhatIf& what_if : report.what_if) {
    curves.push_back(json::object{{"domain", report.planned->timed.site.domains[what_if.domain].name},
                                  {"curve", what_if_json(what_if)}});
  }
  answer["what_if"] = std::move(curves);
  answer["headroom"] = headroom_json(report);
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
                      {{"jobs.csv", jobs_csv(report)},
                       {"site.json", formats::json_text(site_plan_json(report)) + "\n"},
                       {"site.html", [&](const report::Sink& sink) { write_page(report, sink); }}});
}

}  // namespace perseus::cli
