#include "plan/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "io/formats/frequency_plan.h"
#include "io/report/report.h"
#include "io/report/summary.h"
#include "io/report/timeline_svg.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::cli {
namespace {

bool is_part_of_a_plan(std::string_view name) {
  static const OutputDirectory::IsOurs files = one_of({"frontier.csv", "plans.json", "report.html", "frontier.svg",
                                                       "timeline.svg", "trace.json", "plans/freqs_pipeline_*.py"});
  return files(name);
}

}  // namespace

bool is_plan_output(std::string_view name) {
  // Files of a search beside the folders of its configurations; it has a frontier.csv too.
  static const OutputDirectory::IsOurs of_a_search =
      one_of({"configurations.csv", "configurations.html", "configurations.svg"});
  if (is_part_of_a_plan(name) || of_a_search(name)) return true;
  const std::size_t slash = name.find('/');
  const std::string_view schedule = name.substr(0, name.find_first_of("+/"));
  return slash != std::string_view::npos &&
         std::ranges::find(model::schedule_names(), schedule) != model::schedule_names().end() &&
         is_part_of_a_plan(name.substr(slash + 1));
}

std::vector<ResultFile> plan_pages(const report::ReportInput& report, const DrawnPlans& drawn) {
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

Status check_plan_output(const std::filesystem::path& directory) { return check_output(directory, is_plan_output); }

std::vector<ResultFile> plan_files(const std::string& folder, const Pipeline& pipeline, const model::Frontier& frontier,
                                   const std::vector<PointFigures>& figures, std::optional<Seconds> straggler,
                                   const model::DefaultRule& rule, Seconds switch_latency,
                                   const formats::Metadata& metadata) {
  struct Shown {
    formats::FrequencyPlanWriter writer;
    report::ReportInput report;
    DrawnPlans drawn;
  };
  const model::ComputationDag& dag = pipeline.dag;
  const auto shown = std::make_shared<Shown>(
      Shown{formats::FrequencyPlanWriter(dag),
            {dag, frontier, pipeline.title, described_inputs(pipeline), straggler, rule, switch_latency},
            default_drawing(dag, frontier, rule, switch_latency)});
  std::vector<ResultFile> files;
  for (int i = 0; i < std::ssize(frontier.points); ++i) {
    files.emplace_back("plans/" + formats::frequency_plan_file_name(i), [=, &frontier](const report::Sink& sink) {
      sink(shown->writer.write(frontier.points[i].plan, plan_comment(i, frontier.points[i])));
    });
  }
  for (ResultFile& page : plan_pages(shown->report, shown->drawn)) {
    files.emplace_back(page.name, [shown, fill = std::move(page.fill)](const report::Sink& sink) { fill(sink); });
  }
  files.emplace_back("frontier.csv", points_of(figures).csv());
  formats::Metadata described = metadata;
  for (const report::ReportFact& fact : pipeline.origin) described[fact.name] = fact.value;
  files.emplace_back("plans.json", [=, &dag, &frontier](const report::Sink& sink) {
    sink(formats::format_plan_file(dag, frontier, described));
  });
  for (ResultFile& file : files) file.name = folder + file.name;
  return files;
}

}  // namespace perseus::cli
