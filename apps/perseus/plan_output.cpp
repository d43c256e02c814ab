#include "plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "interrupt.h"
#include "io/formats/frequency_plan.h"
#include "io/report/frontier_svg.h"
#include "io/report/html.h"
#include "io/report/summary.h"
#include "io/report/timeline_svg.h"
#include "io/report/trace.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::cli {
namespace {

constexpr std::array<std::string_view, 6> kSingleFiles{"frontier.csv", "plans.json",   "report.html",
                                                       "frontier.svg", "timeline.svg", "trace.json"};
constexpr std::string_view kPlanPrefix = "plans/freqs_pipeline_";
/// Files of a search beside the folders of its configurations; it has a frontier.csv too.
constexpr std::array<std::string_view, 3> kSearchFiles{"configurations.csv", "configurations.html",
                                                       "configurations.svg"};

bool is_part_of_a_plan(std::string_view name) {
  return std::ranges::find(kSingleFiles, name) != kSingleFiles.end() ||
         (name.starts_with(kPlanPrefix) && name.ends_with(".py"));
}

Status write_frequency_plans(const OutputDirectory& directory, const std::string& folder,
                             const model::ComputationDag& dag, const model::Frontier& frontier) {
  formats::FrequencyPlanWriter writer(dag);
  for (std::size_t i = 0; i < frontier.points.size() && !InterruptGuard::interrupted(); ++i) {
    const model::FrontierPoint& point = frontier.points[i];
    OutputFile file(directory, folder + "plans/" + formats::frequency_plan_file_name(static_cast<int>(i)));
    file.append(
        writer.write(point.plan, fmt::format("Point {}: time {:.9g} s, energy {:.9g} J, lower bound {:.9g} J", i,
                                             point.time.value(), point.energy.value(), point.bound.value())));
    if (Status closed = file.close(); !closed) return closed;
  }
  return Ok{};
}

}  // namespace

bool is_plan_output(std::string_view name) {
  if (is_part_of_a_plan(name) || std::ranges::find(kSearchFiles, name) != kSearchFiles.end()) return true;
  const std::size_t slash = name.find('/');
  const std::string_view schedule = name.substr(0, name.find_first_of("+/"));
  return slash != std::string_view::npos &&
         std::ranges::find(model::schedule_names(), schedule) != model::schedule_names().end() &&
         is_part_of_a_plan(name.substr(slash + 1));
}

std::vector<report::DrawnPlan> trace_plans(const model::Plan& all_maximum, const model::Plan& chosen) {
  return {{"everything at maximum clock", all_maximum}, {"the default plan", chosen}};
}

Status check_plan_output(const std::filesystem::path& directory) {
  const Result<OutputDirectory> probe = OutputDirectory::create(directory, is_plan_output);
  if (!probe) return probe.error();
  return Ok{};
}

Status write_plan_files(const OutputDirectory& out, const std::string& folder, const Pipeline& pipeline,
                        const model::Frontier& frontier, const std::vector<PointFigures>& figures,
                        std::optional<Seconds> straggler, const model::DefaultRule& rule,
                        const formats::Metadata& metadata) {
  const model::ComputationDag& dag = pipeline.dag;
  formats::Metadata described = metadata;
  for (const report::ReportFact& fact : pipeline.origin) described[fact.name] = fact.value;
  const report::ReportInput report{dag, frontier, pipeline.title, described_inputs(pipeline), straggler, rule};
  const int chosen = model::default_point(frontier, report::t_max_of(dag, frontier), rule);
  const model::Plan before = model::all_maximum_clock(dag);
  const std::vector<report::DrawnPlan> drawn = trace_plans(before, frontier.points[chosen].plan);
  const auto file = [&](std::string_view name, const std::function<void(const report::Sink&)>& fill) -> Status {
    if (InterruptGuard::interrupted()) return Ok{};
    return write_output_file(out, folder + std::string(name), fill);
  };
  for (const auto& written : {
           write_frequency_plans(out, folder, dag, frontier),
           file("frontier.csv", [&](const report::Sink& sink) { sink(frontier_csv(figures)); }),
           file("plans.json",
                [&](const report::Sink& sink) { sink(formats::format_plan_file(dag, frontier, described)); }),
           file("report.html", [&](const report::Sink& sink) { report::write_html(report, sink); }),
           file("frontier.svg", [&](const report::Sink& sink) { report::write_frontier_svg(report, sink); }),
           file("timeline.svg", [&](const report::Sink& sink) { report::write_timeline_svg(dag, drawn, sink); }),
           file("trace.json", [&](const report::Sink& sink) { report::write_trace(dag, drawn, sink); }),
       }) {
    if (!written) return written.error();
  }
  return Ok{};
}

Status write_plan_output(const std::filesystem::path& directory, const Pipeline& pipeline,
                         const model::Frontier& frontier, const std::vector<PointFigures>& figures,
                         std::optional<Seconds> straggler, const model::DefaultRule& rule,
                         const formats::Metadata& metadata) {
  const InterruptGuard guard;
  Result<OutputDirectory> out = OutputDirectory::create(directory, is_plan_output);
  if (!out) return out.error();
  const Status written = write_plan_files(*out, "", pipeline, frontier, figures, straggler, rule, metadata);
  if (!written) return written.error();
  // An interrupted result is not committed; its destructor removes it, and the caller ends by the signal.
  return InterruptGuard::interrupted() ? Status(Ok{}) : out->commit();
}

}  // namespace perseus::cli
