#include "demo/demo_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>

#include "command_line/output_directory.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/formats/boost_json_text.h"
#include "io/report/format.h"
#include "io/report/static_page.h"
#include "io/report/timeline_svg.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

OutputDirectory::IsOurs files_of_a_demo() {
  return one_of({"summary.json", "details.json", "report.html", "timeline.svg"});
}

double slowdown_pct(double time_s, double before_s) { return before_s > 0 ? 100 * (time_s / before_s - 1) : 0; }

/// To two decimals, never "-0.00".
double rounded(double value) { return std::round(100 * value) / 100 + 0.0; }
std::string pct(double value) { return fmt::format("{:.2f} %", rounded(value)); }
std::string points(double value) { return fmt::format("{:+.2f} points", rounded(value)); }

double predicted_saving_pct(const PredictedIteration& p) { return replay::saving_pct(p.energy_j, p.all_max_energy_j); }

/// Of the replicas without the straggler.
double others_energy_j(const replay::PhaseFigures& figures, int straggler) {
  double energy_j = 0;
  for (std::size_t r = 0; r < figures.replica_energy_j.size(); ++r) {
    if (static_cast<int>(r) != straggler) energy_j += figures.replica_energy_j[r];
  }
  return energy_j;
}

json::object json_of(const replay::PhaseFigures& f) {
  return {{"iterations", f.iterations},
          {"left_out", f.left_out},
          {"time_s", f.time_s},
          {"shortest_s", f.shortest_s},
          {"longest_s", f.longest_s},
          {"energy_j", f.energy_j},
          {"replica_time_s", json::array(f.replica_time_s.begin(), f.replica_time_s.end())},
          {"replica_energy_j", json::array(f.replica_energy_j.begin(), f.replica_energy_j.end())},
          {"late_ms", f.late_ms},
          {"lost_ms", f.lost_ms}};
}

json::object json_of(const PredictedIteration& p) {
  return {{"time_s", p.time_s},
          {"energy_j", p.energy_j},
          {"all_max_time_s", p.all_max_time_s},
          {"all_max_energy_j", p.all_max_energy_j},
          {"energy_saving_pct", predicted_saving_pct(p)}};
}

json::object summary_of(const DemoMeasurement& m) {
  json::object o;
  o["baseline_time_s"] = m.baseline.time_s;
  o["baseline_energy_j"] = m.baseline.energy_j;
  o["plan_time_s"] = m.plan.time_s;
  o["plan_energy_j"] = m.plan.energy_j;
  o["energy_saving_pct"] = replay::saving_pct(m.plan.energy_j, m.baseline.energy_j);
  o["slowdown_pct"] = slowdown_pct(m.plan.time_s, m.baseline.time_s);
  o["straggler_energy_saving_pct"] =
      m.straggler ? json::value(replay::saving_pct(m.straggler->reaction.energy_j, m.straggler->all_max.energy_j))
                  : json::value(nullptr);
  o["predicted_energy_saving_pct"] = predicted_saving_pct(m.predicted);
  o["server_energy_saving_pct"] = cell_of(m.server_saving_pct).value_or(nullptr);
  o["client_overhead_pct"] = m.client_pct;
  return o;
}

Table clients_of(const DemoMeasurement& m) {
  using Client = replay::ClientFigures;
  return table_of<Client>(m.clients, {{"plan_version", &Client::plan_version},
                                      {"clocks_requested", &Client::clocks_requested},
                                      {"clocks_applied", &Client::clocks_applied},
                                      {"clocks_failed", &Client::clocks_failed},
                                      {"server_failures", &Client::server_failures},
                                      {"samples", &Client::samples},
                                      {"samples_rejected", &Client::samples_rejected},
                                      {"blocking_power_w", &Client::blocking_power_w},
                                      {"request_to_device_p50_s", &Client::request_to_device_p50_s},
                                      {"request_to_device_p99_s", &Client::request_to_device_p99_s},
                                      {"begin_end_ns", &Client::begin_end_ns},
                                      {"set_speed_ns", &Client::set_speed_ns},
                                      {"client_cpu_s", &Client::client_cpu_s}});
}

json::object details_of(const DemoMeasurement& m) {
  json::object all{{"gpus", "simulated"},
                   {"inputs", object_of(m.facts)},
                   {"profile", m.known_profile ? "known" : "measured in vivo"},
                   {"job_states", json::array(m.job_states.begin(), m.job_states.end())},
                   {"profiling_s", m.profiling_s},
                   {"profiling_iterations", m.profiling_iterations},
                   {"characterizing_s", m.characterizing_s},
                   {"baseline", json_of(m.baseline)},
                   {"plan", json_of(m.plan)},
                   {"predicted", json_of(m.predicted)},
                   {"planned_time_s", m.planned_time_s},
                   {"simulated_plan_time_s", m.truth_time_s},
                   {"at_planned_clock_pct", cell_of(m.at_planned_clock_pct).value_or(nullptr)},
                   {"client_overhead_whole_run_pct", m.client_whole_pct},
                   {"clients", clients_of(m).json()},
                   {"took_s", m.took_s}};
  if (m.straggler) {
    const StragglerMeasurement& s = *m.straggler;
    json::object straggler{
        {"replica", s.replica},
        {"power_limit_w", s.power_limit_w},
        {"degree", s.degree},
        {"all_max", json_of(s.all_max)},
        {"no_reaction", json_of(s.no_reaction)},
        {"reaction", json_of(s.reaction)},
        {"after", json_of(s.after)},
        {"saving_against_no_reaction_pct", replay::saving_pct(s.reaction.energy_j, s.no_reaction.energy_j)},
        {"others_saving_pct",
         replay::saving_pct(others_energy_j(s.reaction, s.replica), others_energy_j(s.all_max, s.replica))},
        {"iterations_to_react", s.iterations_to_react},
        {"iterations_to_recover", s.iterations_to_recover},
        {"slowdown_pct", slowdown_pct(s.reaction.time_s, s.no_reaction.time_s)}};
    if (s.predicted) straggler["predicted"] = json_of(*s.predicted);
    all["straggler"] = std::move(straggler);
  }
  return all;
}

report::TextRows cost_rows(const DemoMeasurement& m) {
  report::TextRows t{{"iterations", "number", "time", "slowdown", "energy", "saving"}, {}};
  const auto add = [&](const std::string& name, const replay::PhaseFigures& f, const replay::PhaseFigures& against) {
    const bool is_reference = &f == &against;
    t.rows.push_back({name, std::to_string(f.iterations), report::text_of(Seconds(f.time_s)),
                      is_reference ? "-" : pct(slowdown_pct(f.time_s, against.time_s)),
                      report::text_of(Joules(f.energy_j)),
                      is_reference ? "-" : pct(replay::saving_pct(f.energy_j, against.energy_j))});
  };
  add("everything at maximum clock", m.baseline, m.baseline);
  add("the plan", m.plan, m.baseline);
  if (m.straggler) {
    add("with a straggler, maximum clock", m.straggler->all_max, m.straggler->all_max);
    add("with a straggler, the plan as before", m.straggler->no_reaction, m.straggler->all_max);
    add("with a straggler, the plan for it", m.straggler->reaction, m.straggler->all_max);
    add("the straggler gone", m.straggler->after, m.baseline);
  }
  return t;
}

report::TextRows comparison_rows(const DemoMeasurement& m) {
  report::TextRows t{{"figure", "predicted", "measured", "difference"}, {}};
  const auto compare = [&](const std::string& when, const std::string& plan, const PredictedIteration& p,
                           const replay::PhaseFigures& all_max, const replay::PhaseFigures& planned) {
    const auto add = [&](const std::string& what, auto text_of, double predicted, double measured) {
      t.rows.push_back({when + what, text_of(predicted), text_of(measured), pct(slowdown_pct(measured, predicted))});
    };
    add("iteration time, maximum clock", seconds_cell, p.all_max_time_s, all_max.time_s);
    add("iteration time, " + plan, seconds_cell, p.time_s, planned.time_s);
    add("energy, maximum clock", joules_cell, p.all_max_energy_j, all_max.energy_j);
    add("energy, " + plan, joules_cell, p.energy_j, planned.energy_j);
    const double predicted = predicted_saving_pct(p), measured = replay::saving_pct(planned.energy_j, all_max.energy_j);
    t.rows.push_back({when + "saving", pct(predicted), pct(measured), points(measured - predicted)});
  };
  compare("", "the plan", m.predicted, m.baseline, m.plan);
  if (const auto& s = m.straggler; s && s->predicted) {
    compare("with the straggler: ", "the plan for it", *s->predicted, s->all_max, s->reaction);
  }
  return t;
}

std::vector<report::ReportFact> overheads(const DemoMeasurement& m) {
  double p50_s = 0, p99_s = 0, set_speed_ns = 0, begin_end_ns = 0;
  std::int64_t requested = 0, applied = 0, failed = 0;
  for (const replay::ClientFigures& c : m.clients) {
    p50_s = std::max(p50_s, c.request_to_device_p50_s);
    p99_s = std::max(p99_s, c.request_to_device_p99_s);
    set_speed_ns = std::max(set_speed_ns, c.set_speed_ns);
    begin_end_ns = std::max(begin_end_ns, c.begin_end_ns);
    requested += c.clocks_requested;
    applied += c.clocks_applied;
    failed += c.clocks_failed;
  }
  return {
      {"client and helper",
       fmt::format("{:.3f} % of a processor per rank while the plan ran, {:.3f} % from start to end", m.client_pct,
                   m.client_whole_pct)},
      {"calls", fmt::format("set_speed {:.0f} ns, begin and end {:.0f} ns (median of the slowest rank)", set_speed_ns,
                            begin_end_ns)},
      {"clock requests",
       fmt::format("{} made, {} applied, {} failed; to the device in {} (p50), {} (p99), slowest rank", requested,
                   applied, failed, report::text_of(Seconds(p50_s)), report::text_of(Seconds(p99_s)))},
      {"planned clocks",
       m.at_planned_clock_pct
           ? fmt::format("{:.2f} % of the computations ended at the clock of their plan", *m.at_planned_clock_pct)
           : std::string("not compared: the plan's clocks are not those of the profile, or no computation was timed")},
      {"energy counter",
       m.server_saving_pct
           ? fmt::format("a saving of {} by the ranks' readings, {} in truth", pct(*m.server_saving_pct),
                         pct(replay::saving_pct(m.plan.energy_j, m.baseline.energy_j)))
           : std::string("the server has not measured the saving")},
      {"host", fmt::format("processes woke up {:.2f} ms late in the sum of an iteration, of which {:.2f} ms were not "
                           "compensated",
                           m.plan.late_ms, m.plan.lost_ms)},
  };
}

/// One replica's part of an iteration, as measured.
report::Timeline measured_timeline(const model::ComputationDag& dag, const replay::JobIteration& iteration,
                                   int replica) {
  report::Timeline timeline;
  timeline.bars.resize(dag.computations.size());
  const int ranks = dag.num_ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    const replay::RankReport& report = iteration.workers[static_cast<std::size_t>(replica) * ranks + rank];
    for (const replay::ComputationStamp& stamp : report.stamps) {
      report::TimelineBar& bar = timeline.bars[stamp.computation];
      bar.start = Seconds(stamp.start_s - report.start_s);
      bar.end = Seconds(stamp.end_s - report.start_s);
      bar.energy = Joules(stamp.energy_j);
      bar.power = bar.energy / (bar.end - bar.start);
    }
    timeline.makespan = Seconds(report.end_s - report.start_s);
    timeline.energy += Joules(report.energy_j);
  }
  return timeline;
}

std::string svg_of(const model::ComputationDag& dag, const std::vector<report::DrawnTimeline>& timelines) {
  std::string svg;
  report::write_timeline_svg(dag, timelines, [&](std::string_view text) { svg += text; });
  return svg;
}

std::string main_timelines(const model::ComputationDag& dag, const DemoMeasurement& m) {
  std::vector<report::DrawnTimeline> drawn{
      {"everything at maximum clock, measured", measured_timeline(dag, m.baseline.typical, 0)}};
  if (m.planned) drawn.push_back({"the plan, as planned", report::timeline_of(dag, *m.planned)});
  drawn.push_back({"the plan, measured", measured_timeline(dag, m.plan.typical, 0)});
  return svg_of(dag, drawn);
}

std::string result_in_words(const DemoMeasurement& m) {
  const double slower_pct = rounded(slowdown_pct(m.plan.time_s, m.baseline.time_s));
  std::string text =
      fmt::format("{:.1f} % less energy, {:.2f} % {}", replay::saving_pct(m.plan.energy_j, m.baseline.energy_j),
                  std::abs(slower_pct), slower_pct < 0 ? "faster" : "slower");
  if (!m.straggler) return text;
  const StragglerMeasurement& s = *m.straggler;
  return text +
         fmt::format("; with a straggler {:.1f} % less", replay::saving_pct(s.reaction.energy_j, s.all_max.energy_j));
}

std::vector<report::ReportFact> events_of(const DemoMeasurement& m) {
  std::vector<report::ReportFact> steps;
  if (m.known_profile) {
    steps.push_back({"profile", "given to the server"});
  } else {
    steps.push_back({"profile", fmt::format("measured while the job trained: {} iterations, {:.1f} s",
                                            m.profiling_iterations, m.profiling_s)});
  }
  steps.push_back({"plan", fmt::format("in force on all ranks {:.1f} s later", m.characterizing_s)});
  if (m.straggler) {
    steps.push_back({"straggler", fmt::format("the others had their new plan after {} more iterations, and after {} "
                                              "when it was gone",
                                              m.straggler->iterations_to_react, m.straggler->iterations_to_recover)});
  }
  steps.push_back({"all of it", fmt::format("{:.0f} s", m.took_s)});
  return steps;
}

report::StaticPage page_of(const model::ComputationDag& dag, const DemoMeasurement& m) {
  report::StaticPage page{"Perseus demo: " + m.title, result_in_words(m), m.facts, {}};
  page.facts.insert(page.facts.end(), m.origin.begin(), m.origin.end());
  page.sections.push_back({.heading = "What was measured",
                           .table = cost_rows(m),
                           .note = "Per iteration of the whole job, medians. The GPUs are simulated: their time and "
                                   "power come from the profile; "
                                   "processes, sockets, client, helpers and server are real. Slowdown and saving are "
                                   "against everything at maximum "
                                   "clock, with a straggler against the same with that straggler."});
  page.sections.push_back({.heading = "Predicted and measured",
                           .table = comparison_rows(m),
                           .note = m.known_profile
                                       ? "Predicted by the server from the profile that it was given."
                                       : "Predicted by the server from what the clients measured in vivo."});
  page.sections.push_back(
      {.heading = "One iteration of replica 0",
       .drawings = {main_timelines(dag, m)},
       .note =
           "Each bar is one computation: as it ran, and in the plan as the plan checker computes it. Both are drawn "
           "from the moment when all ranks may start."});
  if (m.straggler) {
    const StragglerMeasurement& s = *m.straggler;
    page.sections.push_back(
        {.heading = fmt::format("Replica {} straggles: its GPUs are capped at {:.0f} W", s.replica, s.power_limit_w),
         .drawings = {svg_of(
             dag,
             {{fmt::format("replica {}, capped", s.replica), measured_timeline(dag, s.reaction.typical, s.replica)},
              {"replica 0 before the notice to the server", measured_timeline(dag, s.no_reaction.typical, 0)},
              {"replica 0 with the plan for it", measured_timeline(dag, s.reaction.typical, 0)}})},
         .note = fmt::format("The server received the notice that replica {} is {:.3f} times slower.", s.replica,
                             s.degree)});
  }
  page.sections.push_back({.heading = "Events", .list = events_of(m)});
  page.sections.push_back({.heading = "Overhead", .list = overheads(m)});
  return page;
}

}  // namespace

Status check_demo_output(const std::filesystem::path& directory) { return check_output(directory, files_of_a_demo()); }

Result<bool> write_demo_output(const std::filesystem::path& directory, const model::ComputationDag& dag,
                               const DemoMeasurement& m) {
  return write_guarded_output(
      directory, files_of_a_demo(),
      {{"summary.json", demo_summary_json(m)},
       {"details.json", formats::json_text(details_of(m)) + "\n"},
       {"timeline.svg", main_timelines(dag, m)},
       {"report.html", [&](const report::Sink& sink) { report::write_static_page(page_of(dag, m), sink); }}});
}

std::string demo_table(const DemoMeasurement& m) {
  std::string text = "Simulated GPUs; per iteration of the whole job, medians:\n\n" +
                     report::text_of(cost_rows(m), output_columns()) + "\n" +
                     report::text_of(comparison_rows(m), output_columns()) + "\n";
  return text + lines_of(overheads(m));
}

std::string demo_summary_json(const DemoMeasurement& m) { return formats::json_text(summary_of(m)) + "\n"; }

}  // namespace perseus::cli
