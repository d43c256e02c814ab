// Writes all reports of a synthetic pipeline, and the dashboard's page, for the browser tests.
// usage: perseus_report_sample DIR RANKS MICROBATCHES POINTS [STRAGGLER_S]
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/report/dashboard.h"
#include "io/report/report.h"
#include "io/report/timeline.h"
#include "tests/support/report_sample.h"

int main(int argc, char** argv) {
  using namespace perseus;
  using namespace perseus::report;
  if (argc < 5)
    return std::fputs("usage: perseus_report_sample DIR RANKS MICROBATCHES POINTS [STRAGGLER_S]\n", stderr), 2;
  const std::filesystem::path dir = argv[1];
  std::filesystem::create_directories(dir);
  const model::ComputationDag dag = sample_dag(std::atoi(argv[2]), std::atoi(argv[3]));
  const model::Frontier frontier = sample_frontier(dag, std::atoi(argv[4]));
  report::ReportInput input{dag, frontier, "sample <&> \"pipeline\" </script>", {}, {}};
  input.inputs = {{"schedule", "1f1b"}, {"ranks", argv[2]}, {"microbatches", argv[3]}, {"blocking power", "83 W"}};
  if (argc > 5) input.straggler = Seconds(std::atof(argv[5]));

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
  write("report.txt", [&](const report::Sink& sink) {
    sink(report::terminal_timeline(dag, plans[1], {120, report::TerminalColor::none}));
    sink(report::terminal_timeline(dag, plans[1], {120, report::TerminalColor::truecolor}));
  });
}
