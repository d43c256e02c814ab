#include "plan/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "command_line/interrupt.h"
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
    file.append(writer.write(point.plan, plan_comment(static_cast<int>(i), point)));
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

std::vector<PlanPage> plan_pages(const report::ReportInput& report, const DrawnPlans& drawn) {
  using report::Sink;
  return {
      {"report.html", [&report](const Sink& sink) { report::write_html(report, sink); }},
      {"frontier.svg", [&report](const Sink& sink) { report::write_frontier_svg(report, sink); }},
      {"timeline.svg", [&drawn](const Sink& sink) { report::write_timeline_svg(drawn.dag(), drawn.plans(), sink); }},
      {"trace.json", [&drawn](const Sink& sink) { report::write_trace(drawn.dag(), drawn.plans(), sink); }},
  };
}

std::string plan_comment(int number, const model::FrontierPoint& point) {
  return fmt::format("Point {}: time {:.9g} s, energy {:.9g} J, lower bound {:.9g} J", number, point.time.value(),
                     point.energy.value(), point.bound.value());
}

Status check_plan_output(const std::filesystem::path& directory) {
  const Result<OutputDirectory> probe = OutputDirectory::create(directory, is_plan_output);
  if (!probe) return probe.error();
  return Ok{};
}

Status write_plan_files(const OutputDirectory& out, const std::string& folder, const Pipeline& pipeline,
                        const model::Frontier& frontier, const std::vector<PointFigures>& figures,
                        std::optional<Seconds> straggler, const model::DefaultRule& rule, Seconds switch_latency,
                        const formats::Metadata& metadata) {
  const model::ComputationDag& dag = pipeline.dag;
  formats::Metadata described = metadata;
  for (const report::ReportFact& fact : pipeline.origin) described[fact.name] = fact.value;
  const report::ReportInput report{dag,       frontier, pipeline.title, described_inputs(pipeline),
                                   straggler, rule,     switch_latency};
  const DrawnPlans drawn = default_drawing(dag, frontier, rule, switch_latency);
  if (Status written = write_frequency_plans(out, folder, dag, frontier); !written) return written.error();
  std::vector<PlanPage> files = plan_pages(report, drawn);
  files.push_back({"frontier.csv", [&](const report::Sink& sink) { sink(frontier_csv(figures)); }});
  files.push_back(
      {"plans.json", [&](const report::Sink& sink) { sink(formats::format_plan_file(dag, frontier, described)); }});
  for (const PlanPage& file : files) {
    if (InterruptGuard::interrupted()) return Ok{};
    if (Status written = write_output_file(out, folder + file.name, file.write); !written) return written.error();
  }
  return Ok{};
}

Status write_plan_output(const std::filesystem::path& directory, const Pipeline& pipeline,
                         const model::Frontier& frontier, const std::vector<PointFigures>& figures,
                         std::optional<Seconds> straggler, const model::DefaultRule& rule, Seconds switch_latency,
                         const formats::Metadata& metadata) {
  const InterruptGuard guard;
  Result<OutputDirectory> out = OutputDirectory::create(directory, is_plan_output);
  if (!out) return out.error();
  const Status written =
      write_plan_files(*out, "", pipeline, frontier, figures, straggler, rule, switch_latency, metadata);
  if (!written) return written.error();
  // An interrupted result is not committed; its destructor removes it, and the caller ends by the signal.
  return InterruptGuard::interrupted() ? Status(Ok{}) : out->commit();
}

}  // namespace perseus::cli
