#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>

#include "command_line/output_directory.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "demo/demo_server.h"
#include "demo/power_story.h"
#include "io/formats/boost_json_text.h"
#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/static_page.h"
#include "remote/answer_members.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr const char *kWatts = "{:.1f} W", *kSeconds = "{:.1f} s";
constexpr std::size_t kReadingsOfSecond = 10, kDrawnEvery = 3;
OutputDirectory::IsOurs files_of_a_story() {
  return one_of({"summary.json", "report.html", "power.csv", "server.csv"});
}

std::string watts(double power_w) { return fmt::format("{:.1f} W", power_w); }
std::string seconds(double time_s) { return fmt::format("{:.1f} s", time_s); }
std::string time_of(double time_s) { return time_s > 0 ? report::text_of(Seconds(time_s)) : std::string("-"); }

Table windows_of(const PowerMeasurement& m) {
  const auto verdict = [&](int k) -> const replay::WindowVerdict& { return m.verdicts[k]; };
  return table_of<int>(indices_of(m.judged),
                       {{"name", [&](int k) { return m.judged[k].name; }, "time"},
                        {"from_s", [&](int k) { return m.judged[k].from_s; }, "from", kSeconds},
                        {"until_s", [&](int k) { return m.judged[k].until_s; }, "to", kSeconds},
                        {"windows", [&](int k) { return verdict(k).windows; }, "windows"},
                        {"over", [&](int k) { return verdict(k).over; }, "over"},
                        {"power_w", [&](int k) { return verdict(k).power_w; }},
                        {"limit_w", [&](int k) { return verdict(k).limit_w; }},
                        {"begins_s", [&](int k) { return verdict(k).begins_s; }, "closest: at", kSeconds},
                        {"mean_w", [&](int k) { return verdict(k).mean_w; }},
                        {"-limit", [&](int k) { return verdict(k).limit_w; }, "limit", kWatts},
                        {"-mean", [&](int k) { return verdict(k).power_w; }, "mean", kWatts},
                        {"-left", [&](int k) { return verdict(k).limit_w - verdict(k).power_w; }, "left", kWatts}});
}

Table jobs_of(const PowerMeasurement& m) {
  using Job = StoryJobFigures;
  return table_of<Job>(m.jobs,
                       {{"-job", [](const Job& j) { return fmt::format("{} ({})", j.shape, j.description); }, "job"},
                        {"name", &Job::shape},
                        {"shape", &Job::description},
                        {"gpus", &Job::gpus, "GPUs"},
                        {"iterations", &Job::iterations, "iterations"},
                        {"iterations_without_server", &Job::iterations_without_server, "without a server"},
                        {"iteration_high_s", &Job::high_s, "time, high limit", time_of},
                        {"iteration_low_s", &Job::low_s, "low limit", time_of},
                        {"iteration_without_server_s", &Job::without_server_s, "without a server", time_of}});
}

json::object summary_of(const PowerMeasurement& m) {
  const Table limits = table_of<replay::LimitPoint>(
      m.limits, {{"at_s", &replay::LimitPoint::at_s}, {"limit_w", &replay::LimitPoint::limit_w}});
  const Table ramps = table_of<StoryRamp>(m.ramps, {{"from_s", &StoryRamp::from_s},
                                                    {"until_s", &StoryRamp::until_s},
                                                    {"killed_s", &StoryRamp::killed_s},
                                                    {"serves_again_s", &StoryRamp::serves_again_s}});
  json::value fall, kill;
  if (m.fall) fall = {{"at_s", m.fall->at_s}, {"acted_s", m.fall->acted_s}, {"in_time", m.fall->in_time}};
  if (m.kill) {
    kill = {{"job", m.kill->job},
            {"at_s", m.kill->at_s},
            {"others_before_w", m.kill->before_w},
            {"others_after_w", m.kill->after_w},
            {"others_unlimited_w", m.kill->unlimited_w},
            {"used_after_s", m.kill->used_s},
            {"at_most_s", m.kill->at_most_s}};
  }
  return {{"holds", story_holds(m)},
          {"limits_kept", limits_kept(m)},
          {"acted_in_time", acted_in_time(m)},
          {"trained_on", trained_on(m)},
          {"rose_again", rose_again(m)},
          {"watts_used", watts_used(m)},
          {"clocks_given_back", m.clocks_given_back},
          {"most_over_w", most_over_w(m)},
          {"window_s", m.window_s},
          {"reaction_s", m.reaction_s},
          {"lease_s", m.lease_s},
          {"all_max_w", m.all_max_w},
          {"drawn_w", m.drawn_w},
          {"limit_w", m.limit_w},
          {"low_limit_w", m.low_limit_w},
          {"swing_w", m.swing_w},
          {"server_limit_w", limit_of_server_w(m, m.limit_w)},
          {"server_low_limit_w", limit_of_server_w(m, m.low_limit_w)},
          {"seed", m.seed},
          {"limit", limits.json()},
          {"judged", windows_of(m).json()},
          {"fall", std::move(fall)},
          {"ramps", ramps.json()},
          {"kill", std::move(kill)},
          {"jobs", jobs_of(m).json()},
          {"took_s", m.took_s}};
}

bool is_judged(const PowerMeasurement& m, double from_s, double until_s) {
  return std::ranges::any_of(
      m.judged, [&](const auto& time) { return from_s >= time.from_s - 1e-6 && until_s <= time.until_s + 1e-6; });
}

std::size_t window_steps(const PowerMeasurement& m) {
  return static_cast<std::size_t>(std::lround(m.window_s / m.interval_s));
}

double mean_w(const PowerMeasurement& m, std::size_t from, std::size_t until) {
  const replay::EnergyReading &a = m.readings[from], &b = m.readings[until];
  return (b.energy_j - a.energy_j) / (b.at_s - a.at_s);
}

std::string power_csv(const PowerMeasurement& m) {
  std::string csv = "time_s,energy_j,power_w,window_w,limit_w,judged\n";
  const std::size_t steps = window_steps(m);
  for (std::size_t k = 1; k < m.readings.size(); ++k) {
    const double at_s = m.readings[k].at_s, limit_w = replay::limit_at(m.limits, at_s);
    const bool whole = k >= steps;
    csv += fmt::format("{:.4f},{:.3f},{:.2f},{},{},{}\n", at_s, m.readings[k].energy_j, mean_w(m, k - 1, k),
                       whole ? fmt::format("{:.3f}", mean_w(m, k - steps, k)) : "",
                       limit_w > 0 ? fmt::format("{:.2f}", limit_w) : "",
                       whole && is_judged(m, m.readings[k - steps].at_s, at_s) ? 1 : 0);
  }
  return csv;
}

std::string chart(const PowerMeasurement& m) {
  report::ChartSeries window{fmt::format("meter, mean of the last {:g} s", m.window_s), report::look_of("exact")};
  report::ChartSeries second{"meter, mean of a second", report::variant_of(report::look_of("exact"))};
  report::ChartSeries counted{"counted by the server", report::look_of("envpipe")};
  report::ChartSeries limit{"limit", report::look_of("bound")};
  const std::size_t steps = window_steps(m);
  for (std::size_t k = kReadingsOfSecond; k < m.readings.size(); k += kDrawnEvery) {
    second.points.push_back({m.readings[k].at_s, mean_w(m, k - kReadingsOfSecond, k)});
    if (k >= steps) window.points.push_back({m.readings[k].at_s, mean_w(m, k - steps, k)});
  }
  for (const ServerReading& r : m.server) counted.points.push_back({r.at_s, r.counted_w});
  for (const replay::LimitPoint& point : m.limits) limit.points.push_back({point.at_s, point.limit_w});
  if (!m.limits.empty()) limit.points.push_back({m.readings.back().at_s, m.limits.back().limit_w});
  report::ChartSeries killed{"server killed", report::look_of("min-energy"), report::SeriesKind::marks};
  for (const StoryRamp& ramp : m.ramps)
    killed.points.push_back({ramp.killed_s, replay::limit_at(m.limits, ramp.killed_s)});
  return report::line_chart({"Power of all GPUs", "s", "W"}, {{"",
                                                               {killed, limit, window, counted, second},
                                                               m.kill ? std::optional(m.kill->at_s) : std::nullopt,
                                                               "a job killed"}});
}

report::TextRows proof_rows(const PowerMeasurement& m) {
  report::TextRows t{{"minute", "readings", "limit", "planned", "counted", "reported", "over", "rate lost"}, {}};
  for (const json::value& entry : list_in(m.proof, "entries")) {
    const double start_s = number_at(entry, {"start_s"});
    const auto power = [&](std::string_view key) {
      const double power_w = number_at(entry, {key}, -1);
      return power_w < 0 ? std::string("-") : watts(power_w);
    };
    t.rows.push_back({fmt::format("{:02}:{:02} UTC", std::lround(start_s) / 3600 % 24, std::lround(start_s) / 60 % 60),
                      fmt::format("{:.0f}", number_at(entry, {"readings"})), power("metered_limit_w"),
                      power("planned_w"), power("counted_w"), power("reported_w"),
                      seconds(number_at(entry, {"over_s"})),
                      fmt::format("{:.1f} %", 100 * number_at(entry, {"rate_lost"}))});
  }
  return t;
}

std::string verdict_text(const PowerMeasurement& m) {
  if (!limits_kept(m)) {
    const double over_w = most_over_w(m);
    return over_w > 0 ? fmt::format("NOT kept: a window's mean is {} above its limit", watts(over_w))
                      : std::string("not proven: there is a time without a whole window");
  }
  return fmt::format("kept: in no window of {:g} s is the meter's mean above the limit; the closest is {} below",
                     m.window_s, watts(-most_over_w(m)));
}

std::vector<report::ReportFact> verdict(const PowerMeasurement& m) {
  const auto yes = [](bool holds) { return holds ? "yes" : "NO"; };
  double least_s = 0;
  for (const StoryRamp& ramp : m.ramps) {
    const double dead_s = ramp.serves_again_s - ramp.killed_s;
    least_s = least_s > 0 ? std::min(least_s, dead_s) : dead_s;
  }
  return {
      {"limits", verdict_text(m)},
      {"acted in time", m.fall ? fmt::format("{}: after {}; allowed: {}", yes(acted_in_time(m)),
                                             seconds(m.fall->acted_s - m.fall->at_s), seconds(m.reaction_s))
                               : std::string("NO")},
      {"training", !m.ramps.empty() ? fmt::format("{}: every job trained on while the server was dead, for {} and more",
                                                  yes(trained_on(m)), seconds(least_s))
                                    : std::string("NO: the story ended before the server was killed")},
      {"watts came back", yes(rose_again(m))},
      {"watts of the killed job",
       m.kill && m.kill->used_s > 0
           ? fmt::format("{}: the others drew {} before, and {} within {} (without a limit: {}); allowed: {}",
                         yes(watts_used(m)), watts(m.kill->before_w), watts(m.kill->after_w), seconds(m.kill->used_s),
                         watts(m.kill->unlimited_w), seconds(m.kill->at_most_s))
           : std::string("NO: not used")},
      {"clocks given back", yes(m.clocks_given_back)}};
}

std::vector<report::ReportFact> facts_of(const PowerMeasurement& m) {
  std::vector<report::ReportFact> facts = m.facts;
  facts.push_back(
      {"power", fmt::format("{} at maximum clock; {} with plans and no limit", watts(m.all_max_w), watts(m.drawn_w))});
  facts.push_back({"limits", fmt::format("{:.0f} W, and {:.0f} W, 30 % less", m.limit_w, m.low_limit_w)});
  facts.push_back({"window", fmt::format("{:g} s, ten iterations of the slowest job or more", m.window_s)});
  facts.push_back(
      {"reserve", fmt::format("the server keeps {:.0f} W and {:.0f} W: 1 % less, up to which it corrects no "
                              "job, and {:.1f} W for swings within iterations",
                              limit_of_server_w(m, m.limit_w), limit_of_server_w(m, m.low_limit_w), m.swing_w)});
  return facts;
}

report::StaticPage page_of(const PowerMeasurement& m) {
  report::StaticPage page{
      "Perseus demo", "A limit that falls, a server that dies, and a job that dies", facts_of(m), {}};
  page.facts.insert(page.facts.end(), m.origin.begin(), m.origin.end());
  page.sections.push_back({.drawings = {chart(m)},
                           .list = verdict(m),
                           .note = "The GPUs are simulated: each computation takes the time and power of the profile "
                                   "at the GPU's current clock. "
                                   "Jobs, clients, helpers and server are real processes. The meter reads the energies "
                                   "of the simulated GPUs and "
                                   "asks "
                                   "neither the server nor the clients."});
  page.sections.push_back(
      {.heading = "Windows against limits",
       .table = windows_of(m).text(),
       .note =
           "Every window counts whose begin lies after the limit without notice has acted: when the server counted no "
           "more "
           "than it and every job had ended the iteration of that moment, at the latest after a plan lease and two "
           "iterations. Its limit is the mean of the limit over the window. It is in the row of the time in which it "
           "ends."});
  std::vector<report::ReportFact> events;
  for (const StoryEvent& event : m.events) events.push_back({seconds(event.at_s), event.what});
  page.sections.push_back({.heading = "Events", .list = std::move(events)});
  page.sections.push_back({.heading = "Jobs", .table = jobs_of(m).text(), .note = "Times are means of an iteration."});
  page.sections.push_back(
      {.heading = "The server's proof",
       .table = proof_rows(m),
       .note = "From GET /v1/site/proof, a reading every 5 s while the server lives. Its limit is lower by the "
               "reserve. Means of minutes: the fall and the return lie within minutes."});
  return page;
}

}  // namespace

Status check_power_output(const std::filesystem::path& directory) {
  return check_output(directory, files_of_a_story());
}

Result<bool> write_power_output(const std::filesystem::path& directory, const PowerMeasurement& m) {
  return write_guarded_output(
      directory, files_of_a_story(),
      {{"summary.json", power_summary_json(m)},
       {"power.csv", power_csv(m)},
       {"server.csv", table_of<ServerReading>(m.server, {{"time_s:.2f", &ServerReading::at_s},
                                                         {"planned_w:.2f", &ServerReading::planned_w},
                                                         {"counted_w:.2f", &ServerReading::counted_w}})
                          .csv()},
       {"report.html", [&](const report::Sink& sink) { report::write_static_page(page_of(m), sink); }}});
}

std::string power_text(const PowerMeasurement& m) {
  return lines_of(facts_of(m)) + "\n" + report::text_of(windows_of(m).text(), output_columns()) + "\n" +
         report::text_of(jobs_of(m).text(), output_columns()) + "\n" + lines_of(verdict(m));
}

std::string power_summary_json(const PowerMeasurement& m) { return formats::json_text(summary_of(m)) + "\n"; }

}  // namespace perseus::cli
