// Writes all reports of a synthetic pipeline, and the dashboard's page, for the browser tests.
// usage: perseus_report_sample DIR RANKS MICROBATCHES POINTS [STRAGGLER_S [SWITCH_LATENCY_S]]
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/json_writer.h"
#include "io/report/dashboard.h"
#include "io/report/report.h"
#include "io/report/summary.h"
#include "io/report/timeline.h"
#include "io/report/timeline_svg.h"
#include "planning/checker/plan_run.h"
#include "tests/support/report_sample.h"

namespace {

using namespace perseus;

/// What summarize() chooses for deadlines from below T_min to past T*, as JSON: the page's script must choose the same.
std::string straggler_choices(const model::ComputationDag& dag, const model::Frontier& frontier) {
  // Each choice summarizes the whole pipeline anew: few of a large one, and still of half of its points.
  const int last = dag.computations.size() < 10'000 ? 60 : 12;
  const Seconds from = 0.9 * frontier.points.back().time, to = 1.3 * frontier.points.front().time;
  return json_object([&](JsonWriter& f) {
    std::vector<Seconds> deadlines;
    for (int k = 0; k <= last; ++k) deadlines.push_back(from + (double(k) / last) * (to - from));
    f.always("choices", JsonList{deadlines, [&](Seconds deadline) {
                                   const report::ReportSummary summary = report::summarize(dag, frontier, deadline);
                                   return JsonObject{[summary](JsonWriter& choice) {
                                     choice.always("deadline_s", summary.straggler->deadline);
                                     choice.always("point", summary.straggler->point);
                                     choice.always("energy_j", summary.straggler->energy);
                                     choice.always("all_max_energy_j", summary.straggler->all_max_energy);
                                     choice.always("saving_pct", summary.straggler->saving_pct);
                                   }};
                                 }});
  });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace perseus::report;
  if (argc < 5)
    return std::fputs("usage: perseus_report_sample DIR RANKS MICROBATCHES POINTS [STRAGGLER_S [SWITCH_LATENCY_S]]\n",
                      stderr),
           2;
  const std::filesystem::path dir = argv[1];
  std::filesystem::create_directories(dir);
  const model::ComputationDag dag = sample_dag(std::atoi(argv[2]), std::atoi(argv[3]));
  model::Frontier frontier = sample_frontier(dag, std::atoi(argv[4]));
  report::ReportInput input{dag, frontier, "sample <&> \"pipeline\" </script>", {}, {}};
  input.inputs = {{"schedule", "1f1b"}, {"ranks", argv[2]}, {"microbatches", argv[3]}, {"blocking power", "83 W"}};
  if (argc > 5) input.straggler = Seconds(std::atof(argv[5]));
  if (argc > 6) {
    input.switch_latency = Seconds(std::atof(argv[6]));
    for (model::FrontierPoint& point : frontier.points) {
      const checker::PlanRun run = checker::run_plan(dag, point.plan, {input.switch_latency});
      std::tie(point.time, point.energy, point.effective_energy) =
          std::tuple(run.makespan, run.energy, run.effective_energy);
    }
  }

  const auto write = [&](const char* name, const auto& writer) {
    std::ofstream out(dir / name, std::ios::binary);
    writer([&](std::string_view text) { out.write(text.data(), static_cast<std::streamsize>(text.size())); });
    out.close();
    std::printf("%s: %ju bytes\n", name, static_cast<std::uintmax_t>(std::filesystem::file_size(dir / name)));
  };
  const model::Plan before = model::all_maximum_clock(dag);
  const std::vector<report::DrawnPlan> plans = {{"everything at maximum clock", before},
                                                {"fastest point", frontier.points.back().plan}};
  write("report.html", [&](const report::Sink& sink) { report::write_html(input, sink); });
  write("frontier.svg", [&](const report::Sink& sink) { report::write_frontier_svg(input, sink); });
  write("timeline.svg", [&](const report::Sink& sink) { report::write_timeline_svg(dag, plans, sink); });
  write("trace.json", [&](const report::Sink& sink) { report::write_trace(dag, plans, sink); });
  write("dashboard.html", [&](const report::Sink& sink) { sink(report::dashboard_page()); });
  write("stragglers.json", [&](const report::Sink& sink) { sink(straggler_choices(dag, frontier)); });
  write("report.txt", [&](const report::Sink& sink) {
    sink(report::terminal_timeline(dag, plans[1], {120, report::TerminalColor::none}));
    sink(report::terminal_timeline(dag, plans[1], {120, report::TerminalColor::truecolor}));
  });
}
