#include "site_day/site_day_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <numeric>
#include <span>

#include "base/count_text.h"
#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "command_line/records.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/csv.h"
#include "io/report/line_chart.h"
#include "io/report/pieces.h"
#include "io/report/static_page.h"
#include "planning/site/site_limits.h"
#include "simulation/site_emulator/day_limits.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

struct OfDomain {
  const EmulatedDay& method;
  std::size_t slot;
};
struct OfBand {
  const EmulatedDay& method;
  const site_emulator::BandFigures& band;
};

/// Kilowatts and seconds, as the tables print them.
std::string kilowatts(Watts power) {
  return std::isfinite(power.value()) ? fmt::format("{:.1f}", power.value() / 1e3) : "none";
}

std::string kilowatts_cell(double power_w) { return kilowatts(Watts(power_w)); }

const std::string& name_of_domain(const SiteDayReport& report, const site_emulator::DomainPower& domain) {
  return report.day->timed.site.domains[domain.domain].name;
}

/// A row per method and limited domain.
Table limits_of(const SiteDayReport& report, std::span<const EmulatedDay> methods) {
  using Row = const OfDomain&;
  std::vector<OfDomain> rows;
  for (const EmulatedDay& method : methods) {
    for (std::size_t slot = 0; slot < method.run.domains.size(); ++slot) rows.push_back({method, slot});
  }
  const auto over = [](Row r) -> const site_emulator::OverLimit& { return r.method.figures.over[r.slot]; };
  const auto surprised = [](Row r, Seconds time) {
    return r.slot == 0 && !r.method.run.reactions.empty() ? std::optional(time) : std::nullopt;
  };
  return table_of<OfDomain>(
      rows, {{"-method", [](Row r) { return r.method.run.method; }, "method"},
             {"name", [&](Row r) { return name_of_domain(report, r.method.run.domains[r.slot]); }, "domain"},
             {"over_w", [=](Row r) { return over(r).most; }, "kW over", "{:.2f}", 1e3},
             {"over_ws", [=](Row r) { return over(r).watt_seconds; }, "kWs over", "{:.1f}", 1e3},
             {"over_s", [=](Row r) { return over(r).time; }, "s over", "{:g}"},
             {"window_s", [&](Row r) { return report.day->timed.window_of(r.method.run.domains[r.slot].domain); }},
             {"-acts", [=](Row r) { return surprised(r, r.method.figures.guaranteed); }, "acts within", "{:.2f} s"},
             {"-follow", [=](Row r) { return surprised(r, r.method.figures.reached); }, "all follow", "{:.2f} s"},
             {"-ramp", [](Row r) { return r.slot == 0 ? r.method.figures.ramp_deviation : std::nullopt; },
              "off the ramp", "{:.2f} %", 0.01}});
}

/// A row per method and finer trace.
Table bands_of(std::span<const EmulatedDay> methods) {
  using Row = const OfBand&;
  std::vector<OfBand> rows;
  for (const EmulatedDay& method : methods) {
    for (const site_emulator::BandFigures& band : method.figures.bands) rows.push_back({method, band});
  }
  return table_of<OfBand>(rows,
                          {{"-method", [](Row r) { return r.method.run.method; }, "method"},
                           {"when", [](Row r) { return r.band.name; }, "when"},
                           {"rms_w", [](Row r) { return r.band.rms_w; }, "rms 0.1-20 Hz [kW]", "{:.3f}", 1e3},
                           {"share", [](Row r) { return r.band.share; }, "share of swing [%]", "{:.1f}", 0.01},
                           {"energy_w2s", [](Row r) { return r.band.energy_w2s; }, "energy [kW^2 s]", "{:.4g}", 1e6}});
}

/// At most that many, evenly apart.
Table minutes_of(const std::vector<site_emulator::Minute>& minutes, std::size_t most = 1'000'000) {
  using site_emulator::Minute;
  const std::size_t step = std::max<std::size_t>(1, (minutes.size() + most - 1) / most);
  std::vector<Minute> shown;
  for (std::size_t k = 0; k < minutes.size(); k += step) shown.push_back(minutes[k]);
  const auto limit = [](const Minute& m) {
    return std::isfinite(m.limit.value()) ? json::value(m.limit.value()) : json::value(nullptr);
  };
  return table_of<Minute>(shown, {{"from_s", &Minute::from, "minute", "{:g}", 60},
                                  {"limit_w", limit},
                                  {"-limit", [](const Minute& m) { return kilowatts(m.limit); }, "limit [kW]"},
                                  {"planned_w", &Minute::planned, "planned [kW]", kilowatts_cell},
                                  {"guard_w", &Minute::guard, "guard [kW]", kilowatts_cell},
                                  {"drawn_w", &Minute::drawn, "drawn [kW]", kilowatts_cell}});
}

constexpr std::size_t kMostLinePoints = 480;  // of a line
constexpr std::size_t kProofRowsOfPage = 96;

/// A row per method: work and energy; `whole`: in JSON with its limits, bands and minutes.
Table methods_of(const SiteDayReport& report, bool whole = false) {
  using Day = const EmulatedDay&;
  const auto during = [](Day m) {
    std::string text;
    for (const double part : m.figures.during) text += fmt::format("{}{:.2f} %", text.empty() ? "" : ", ", 100 * part);
    return text.empty() ? "-" : text;
  };
  const auto part = [=](auto of) {
    return [=](Day m) { return whole ? std::optional(json::value(of(m))) : std::nullopt; };
  };
  return table_of<EmulatedDay>(
      report.methods,
      {{"name", [](Day m) { return m.run.method; }, "method"},
       {"throughput", [](Day m) { return m.figures.throughput; }, "throughput", "{:.2f} %", 0.01},
       {"-during", during, "in events"},
       {"slowest_rate", [](Day m) { return m.figures.slowest; }, "slowest job", "{:.2f} %", 0.01},
       {"-mean", [&](Day m) { return m.figures.energy / report.day->timed.end; }, "mean kW", kilowatts_cell},
       {"energy_j", [](Day m) { return m.figures.energy; }, "MWh", "{:.3f}", 3.6e9},
       {"falls", [](Day m) { return m.run.falls; }, "falls"},
       {"raises", [](Day m) { return m.run.raises; }, "raises"},
       {"corrections", [](Day m) { return m.run.corrections; }},
       {"reaction_guaranteed_s", [](Day m) { return m.figures.guaranteed; }},
       {"reaction_s", [](Day m) { return m.figures.reached; }},
       {"domains", part([&](Day m) {
          return limits_of(report, {&m, 1}).json();
        })},
       {"ramp_deviation", [](Day m) { return m.figures.ramp_deviation; }},
       {"throughput_in_events", [](Day m) { return json::array(m.figures.during.begin(), m.figures.during.end()); }},
       {"band", part([](Day m) {
          return bands_of({&m, 1}).json();
        })},
       {"proof", part([](Day m) { return minutes_of(m.figures.minutes.front()).json(); })}});
}

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

/// Power against the limit over the day and around events, and the tables.
void write_site_day_page(const SiteDayReport& report, const report::Sink& sink) {
  report::StaticPage page{"Perseus site emulation", report.description->name, with_origin(facts_of(report)), {}};
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

constexpr std::size_t kMostProofRows = 24;  // on a terminal

void write_proof(const SiteDayReport& report, const report::Sink& sink) {
  constexpr std::string_view header = "method,domain,from_s,limit_w,planned_w,guard_w,drawn_w";
  sink(fmt::format("{}\n", header));
  for (const EmulatedDay& method : report.methods) {
    for (std::size_t slot = 0; slot < method.run.domains.size(); ++slot) {
      Table minutes = minutes_of(method.figures.minutes[slot]);
      for (json::value& minute : minutes.records) {
        minute.get_object()["method"] = method.run.method;
        minute.get_object()["domain"] = name_of_domain(report, method.run.domains[slot]);
      }
      const std::string text = minutes.csv(header, 9);
      sink(std::string_view(text).substr(text.find('\n') + 1));
    }
  }
}

/// Bins of the whole site, a column per method.
template <class PowerOf>
void write_trace(const SiteDayReport& report, Seconds from, Seconds width, PowerOf power_of, report::Pieces& pieces) {
  for (std::size_t bin = 0; bin < power_of(report.methods.front()).size(); ++bin) {
    std::string line = fmt::format("{:.9g}", from.value() + width.value() * static_cast<double>(bin));
    for (const EmulatedDay& method : report.methods) line += fmt::format(",{:.8g}", power_of(method)[bin]);
    pieces << line + "\n";
  }
}

std::string trace_header(const SiteDayReport& report) {
  std::string header = "from_s";
  for (const EmulatedDay& method : report.methods) header += fmt::format(",{}_w", method.run.method);
  return header + "\n";
}

void write_power(const SiteDayReport& report, const report::Sink& sink) {
  report::Pieces pieces(sink);
  pieces << trace_header(report);
  const auto power_of = [](const EmulatedDay& m) -> const std::vector<double>& {
    return m.run.domains.front().power_w;
  };
  write_trace(report, Seconds(0), report.methods.front().run.bin_width, power_of, pieces);
}

void write_fine_power(const SiteDayReport& report, const report::Sink& sink) {
  report::Pieces pieces(sink);
  pieces << trace_header(report);
  const auto& traces = report.methods.front().run.fine;
  for (std::size_t k = 0; k < traces.size(); ++k) {
    if (traces[k].name.starts_with("surprise") && !traces[k].name.ends_with("holds")) {
      const auto power_of = [k](const EmulatedDay& m) -> const std::vector<double>& { return m.run.fine[k].power_w; };
      write_trace(report, traces[k].from, traces[k].width, power_of, pieces);
    }
  }
}

std::string jobs_csv(const SiteDayReport& report) {
  std::string text = "job,domain,gpus,least_rate";
  for (const EmulatedDay& method : report.methods) text += fmt::format(",{}_rate", method.run.method);
  text += '\n';
  const model::Site& site = report.day->timed.site;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    text += fmt::format("{},{},{},{}", formats::csv_field(site.jobs[j].name),
                        formats::csv_field(site.domains[site.jobs[j].domain].name), report.planned->gpus[j],
                        site.jobs[j].least_rate);
    for (const EmulatedDay& method : report.methods) text += fmt::format(",{:.9g}", method.run.rate[j]);
    text += '\n';
  }
  return text;
}

OutputDirectory::IsOurs files_of_a_site_day() {
  return one_of({"day.html", "day.json", "proof.csv", "power.csv", "power_events.csv", "jobs.csv"});
}

}  // namespace

std::vector<report::ReportFact> facts_of(const SiteDayReport& report) {
  const model::SiteDescription& d = *report.description;
  long gpus = 0;
  for (const int n : report.planned->gpus) gpus += n;
  Watts all_max;
  for (const model::SiteJob& job : report.day->timed.site.jobs) all_max += job.all_max;
  std::vector<report::ReportFact> facts{
      {"site", fmt::format("{}, {}, {:g} h", d.name, count_text(d.domains.size(), "domain"), d.end.value() / 3600)},
      {"jobs", fmt::format("{}, {}, {} kW at maximum clock", report.planned->gpus.size(), count_text(gpus, "GPU"),
                           kilowatts(all_max))},
      {"events", fmt::format("{} unannounced", d.events.size())},
      {"grants",
       fmt::format("median {:g} s, at most {:g} s", d.emulation.delay_median.value(), d.emulation.delay_most.value())},
      {"objective", std::string(model::name_of(report.objective))},
      {"seed", std::to_string(d.emulation.seed)}};
  if (d.emulation.bias > 0 || d.emulation.draw_more != 0) {
    facts.push_back({"bias", fmt::format("jobs draw {:g} % more than planned, with a standard deviation of {:g} %",
                                         100 * d.emulation.draw_more, 100 * d.emulation.bias)});
  }
  const site_emulator::Feedback& feedback = report.day->feedback;
  if (feedback.reports || feedback.meter) {
    facts.push_back(
        {"feedback", fmt::format("{}{}{}", feedback.reports ? "reports" : "",
                                 feedback.reports && feedback.meter ? " and " : "", feedback.meter ? "meter" : "")});
  }
  facts.push_back({"kind", "an emulation from profiles, not a measurement of a site"});
  return facts;
}

std::string site_day_text(const SiteDayReport& report) {
  std::string text = lines_of(facts_of(report)) + "\n" + report::text_of(methods_of(report).text()) + "\n";
  if (!report.methods.front().run.domains.empty())
    text += report::text_of(limits_of(report, report.methods).text()) + "\n";
  text += report::text_of(bands_of(report.methods).text());
  text += "\nThe site under the first method, some minutes:\n" +
          report::text_of(minutes_of(report.methods.front().figures.minutes.front(), kMostProofRows).text());
  return text;
}

json::object site_day_json(const SiteDayReport& report) {
  json::object answer{{"name", report.description->name}, {"inputs", object_of(facts_of(report))}};
  answer["methods"] = methods_of(report, true).json();
  answer["origin"] = origin_json();
  return answer;
}

Status check_site_day(const std::string& directory) { return check_output(directory, files_of_a_site_day()); }

Status write_site_day(const std::string& directory, const SiteDayReport& report) {
  return write_output(directory, files_of_a_site_day(),
                      {{"jobs.csv", jobs_csv(report)},
                       {"proof.csv", [&](const report::Sink& sink) { write_proof(report, sink); }},
                       {"power.csv", [&](const report::Sink& sink) { write_power(report, sink); }},
                       {"power_events.csv", [&](const report::Sink& sink) { write_fine_power(report, sink); }},
                       {"day.json", formats::json_text(site_day_json(report)) + "\n"},
                       {"day.html", [&](const report::Sink& sink) { write_site_day_page(report, sink); }}});
}

site_emulator::SiteDay day_of(const model::SiteDescription& site, const PlannedSite& planned) {
  site_emulator::SiteDay day;
  day.timed = planned.timed;
  for (auto& limits : day.timed.limits) {
    for (model::LimitStep& step : limits) step.limit = std::max(Watts(0), step.limit);
  }
  for (const PlannedPipeline& pipeline : planned.pipelines) day.kinds.push_back({&pipeline.dag, &pipeline.frontier});
  day.kind_of = planned.pipeline_of;
  day.copies = planned.copies;
  day.ramp_step = site.ramp_step;
  for (const model::DescribedEvent& event : site.events) {
    site_emulator::Surprise surprise{event.domain, event.at, event.until,
                                     site::for_accelerators(event.limit, site, planned.constants[event.domain]),
                                     event.within};
    if (const auto up = site.domains[event.domain].ramp.up_w_per_s) {
      surprise.up_w_per_s = *up * site.supply_efficiency / site.pue;
    }
    day.surprises.push_back(surprise);
  }
  day.delay = {site.emulation.delay_median, site.emulation.delay_most, site.emulation.delay_spread};
  day.bias = site.emulation.bias;
  day.draw_more = site.emulation.draw_more;
  day.seed = site.emulation.seed;
  return day;
}

}  // namespace perseus::cli
