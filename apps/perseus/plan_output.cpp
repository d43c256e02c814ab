#include "plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "interrupt.h"
#include "output_directory.h"
#include "report/report.h"
#include "report/summary.h"
#include "wire/frequency_plan.h"

namespace perseus {
namespace {

constexpr std::array<std::string_view, 6> single_files{"frontier.csv", "plans.json",   "report.html",
                                                       "frontier.svg", "timeline.svg", "trace.json"};
constexpr std::string_view plan_prefix = "plans/freqs_pipeline_";

bool is_part_of_a_plan(std::string_view name) {
  return std::ranges::find(single_files, name) != single_files.end() ||
         (name.starts_with(plan_prefix) && name.ends_with(".py"));
}

Status write_frequency_plans(const OutputDirectory& directory, const ComputationDag& dag, const Frontier& frontier) {
  FrequencyPlanWriter writer(dag);
  for (std::size_t i = 0; i < frontier.points.size() && !InterruptGuard::interrupted(); ++i) {
    const FrontierPoint& point = frontier.points[i];
    OutputFile file(directory, "plans/" + frequency_plan_file_name(static_cast<int>(i)));
    file.append(
        writer.write(point.plan, fmt::format("Point {}: time {:.9g} s, energy {:.9g} J, lower bound {:.9g} J", i,
                                             point.time.value(), point.energy.value(), point.bound.value())));
    if (Status closed = file.close(); !closed) return closed;
  }
  return Ok{};
}

}  // namespace

Status check_plan_output(const std::filesystem::path& directory) {
  const Result<OutputDirectory> probe = OutputDirectory::create(directory, is_part_of_a_plan);
  if (!probe) return probe.error();
  return Ok{};
}

Status write_plan_output(const std::filesystem::path& directory, const Pipeline& pipeline, const Frontier& frontier,
                         const std::vector<PointFigures>& figures, std::optional<Seconds> straggler,
                         const DefaultRule& rule, const Metadata& metadata) {
  const InterruptGuard guard;
  Result<OutputDirectory> out = OutputDirectory::create(directory, is_part_of_a_plan);
  if (!out) return out.error();

  const ComputationDag& dag = pipeline.dag;
  const ReportInput report{dag, frontier, pipeline.title, pipeline.facts, straggler, rule};
  const int chosen = default_point(frontier, t_max_of(dag, frontier), rule);
  const Plan before = all_maximum_clock(dag);
  const std::vector<DrawnPlan> drawn{{"everything at maximum clock", before},
                                     {"the default plan", frontier.points[chosen].plan}};
  const auto file = [&](std::string_view name, const std::function<void(const Sink&)>& fill) -> Status {
    if (InterruptGuard::interrupted()) return Ok{};
    return write_output_file(*out, name, fill);
  };
  for (const auto& written : {
           write_frequency_plans(*out, dag, frontier),
           file("frontier.csv", [&](const Sink& sink) { sink(frontier_csv(figures)); }),
           file("plans.json", [&](const Sink& sink) { sink(format_plan_file(dag, frontier, metadata)); }),
           file("report.html", [&](const Sink& sink) { write_html(report, sink); }),
           file("frontier.svg", [&](const Sink& sink) { write_frontier_svg(report, sink); }),
           file("timeline.svg", [&](const Sink& sink) { write_timeline_svg(dag, drawn, sink); }),
           file("trace.json", [&](const Sink& sink) { write_trace(dag, drawn, sink); }),
       }) {
    if (!written) return written.error();
  }
  // An interrupted result is not committed; its destructor removes it, and the caller dies of the signal.
  return InterruptGuard::interrupted() ? Status(Ok{}) : out->commit();
}

}  // namespace perseus
