#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "io/report/line_chart.h"
#include "io/report/static_page.h"
#include "planning/site/site_limits.h"
#include "simulation/site_emulator/day_limits.h"
#include "site_day/site_day_tables.h"

namespace perseus::cli {
namespace {

constexpr std::size_t kMostLinePoints = 480;  // of a line
constexpr std::size_t kProofRowsOfPage = 96;

/// A method's look: what `perseus site plan` and the pages of other commands give the nearest method.
report::SeriesLook look_of_method(std::string_view method) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> looks{
      {{"optimum", "exact"}, {"equal-shares", "zeus-global"}, {"clock-limit", "envpipe"}, {"power-limit", "all-max"}}};
  const auto* found = std::ranges::find(looks, method, &std::pair<std::string_view, std::string_view>::first);
  return report::look_of(found == looks.end() ? method : found->second);
}

/// Means of equal groups of bins, at most kMostLinePoints.
report::ChartSeries trace(const std::string& name, const std::vector<double>& power_w, double from, double width) {
  report::ChartSeries series{name, look_of_method(name)};
  const std::size_t group = std::max<std::size_t>(1, (power_w.size() + kMostLinePoints - 1) / kMostLinePoints);
  for (std::size_t begin = 0; begin < power_w.size(); begin += group) {
    const std::size_t end = std::min(power_w.size(), begin + group);
    const auto first = power_w.begin() + static_cast<std::ptrdiff_t>(begin);
    const double mean = std::accumulate(first, first + static_cast<std::ptrdiff_t>(end - begin), 0.0) /
                        static_cast<double>(end - begin);
    series.points.push_back({from + width * static_cast<double>(begin + end) / 2, mean / 1e3});
  }
  return series;
}

/// A domain's limit from a time to another; x in units of `unit` seconds since `zero`.
report::ChartSeries limit_line(const SiteDayReport& report, int domain, Seconds from, Seconds until, Seconds zero,
                               double unit) {
  report::ChartSeries series{"limit", report::look_of("bound")};
  const auto limits = site_emulator::due_limits(
      *report.day, report.methods.front().figures.guaranteed)[static_cast<std::size_t>(domain)];
  const auto add = [&](Seconds time, Watts limit) {
    series.points.push_back({(time - zero).value() / unit, limit.value() / 1e3});
  };
  add(from, site::limit_at(limits, from));
  for (const model::LimitStep& step : limits) {
    if (step.from <= from || step.from > until) continue;
    add(step.from, site::limit_at(limits, Seconds(std::nextafter(step.from.value(), 0))));
    add(step.from, step.limit);
  }
  add(until, site::limit_at(limits, until));
  return series;
}

std::string day_chart(const SiteDayReport& report) {
  std::vector<report::ChartPanel> panels;
  const auto& domains = report.methods.front().run.domains;
  for (std::size_t slot = 0; slot < std::min<std::size_t>(5, domains.size()); ++slot) {
    report::ChartPanel panel{report.day->timed.site.domains[domains[slot].domain].name, {}};
    for (const EmulatedDay& method : report.methods) {
      panel.series.push_back(
          trace(method.run.method, method.run.domains[slot].power_w, 0, method.run.bin_width.value() / 3600));
    }
    panel.series.push_back(
        limit_line(report, domains[slot].domain, Seconds(0), report.day->timed.end, Seconds(0), 3600));
    panels.push_back(std::move(panel));
  }
  if (panels.size() == 1) panels.front().title.clear();
  return report::line_chart({"Power of the GPUs over the day", "h", "kW"}, panels);
}

std::string event_chart(const SiteDayReport& report, std::size_t number, const site_emulator::Surprise& surprise) {
  report::ChartPanel panel{"", {}};
  for (const EmulatedDay& method : report.methods) {
    const site_emulator::FinePower& fine = method.run.fine[number];
    panel.series.push_back(
        trace(method.run.method, fine.power_w, (fine.from - surprise.at).value(), fine.width.value()));
  }
  const site_emulator::FinePower& fine = report.methods.front().run.fine[number];
  const Seconds until = fine.from + static_cast<double>(fine.power_w.size()) * fine.width;
  if (surprise.domain == 0) panel.series.push_back(limit_line(report, 0, fine.from, until, surprise.at, 1));
  return report::line_chart({"Power of the GPUs around an unannounced event", "s since the event", "kW"}, {panel});
}

std::vector<std::string> event_charts(const SiteDayReport& report) {
  std::vector<std::string> charts;
  const auto& fine = report.methods.front().run.fine;
  std::size_t surprise = 0;
  for (std::size_t k = 0; k < fine.size() && surprise < report.day->surprises.size(); ++k) {
    if (!fine[k].name.starts_with("surprise") || fine[k].name.ends_with("holds")) continue;
    charts.push_back(event_chart(report, k, report.day->surprises[surprise++]));
  }
  return charts;
}

}  // namespace

void write_site_day_page(const SiteDayReport& report, const report::Sink& sink) {
  report::StaticPage page{"Perseus site emulation", report.description->name, facts_of(report), {}};
  page.facts.insert(page.facts.end(), report.origin.begin(), report.origin.end());
  page.sections.push_back(
      {.drawings = {day_chart(report)},
       .table = methods_of(report).text(),
       .note = "Throughput: weighted rates of all jobs over the day, of their full speed. An emulation from "
               "profiles, not a measurement of a site; watts are those of the GPUs."});
  page.sections.push_back(
      {.heading = "Limits",
       .drawings = event_charts(report),
       .table = limits_of(report, report.methods).text(),
       .note = "Over: the mean over the domain's window above that of its limit, from the guaranteed "
               "reaction after an unannounced event on. All follow: when the last rank had its new clock."});
  page.sections.push_back(
      {.heading = "Swings",
       .table = bands_of(report.methods).text(),
       .note = "Of the whole site, within some minutes: 0.1 to 20 Hz is the range that disturbs power grids."});
  page.sections.push_back({.heading = "Minute by minute",
                           .table = minutes_of(report.methods.front().figures.minutes.front(), kProofRowsOfPage).text(),
                           .note = "The site under the first method. proof.csv has every minute, domain and method."});
  report::write_static_page(page, sink);
}

}  // namespace perseus::cli
