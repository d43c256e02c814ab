// Writes all files of `perseus plan --out DIR`, whole or not at all.
//
// Where several configurations were planned (search_output.h), each has these files in a folder of its name. SIGINT,
// SIGTERM and SIGHUP tidy up first.
//
// Output:  the files
//           DIR/frontier.csv                   a line per point, 0 is the slowest
//           DIR/plans/freqs_pipeline_%05d.py   a plan per point, as Zeus's server loads them
//           DIR/plans.json                     all of it in one file: the input of lookup, verify and show
//           DIR/report.html                    charts and tables; frontier.svg and timeline.svg are its pictures
//           DIR/trace.json                     the timelines for ui.perfetto.dev
// Errors:  cannot_write.
#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "command_line/output_directory.h"
#include "io/formats/plan_file.h"
#include "io/report/report.h"
#include "io/report/summary.h"
#include "plan/pipeline.h"
#include "plan/point_figures.h"
#include "planning/model/frontier.h"

namespace perseus::cli {

/// Plans to draw, as they run with a switch latency.
/// Problem: pictures and traces draw each computation at the time and energy of its own option. With a switch latency
///          it runs in part at the clock of the computation before it.
/// Input:   a valid DAG, plans that fit it, the switch latency that they were made for.
/// Output:  a DAG with the same computations. Without a switch latency, it is the same DAG with the same plans. With
///          one, each computation has a type of its own with an option for each plan: its clock, and the time and
///          energy that the checker simulates (planning/checker/plan_run.h).
class DrawnPlans {
 public:
  DrawnPlans(const model::ComputationDag& dag, const std::vector<report::DrawnPlan>& plans, Seconds switch_latency);

  [[nodiscard]] const model::ComputationDag& dag() const { return dag_; }
  /// In the order given; valid as long as this object.
  [[nodiscard]] std::vector<report::DrawnPlan> plans() const;

 private:
  model::ComputationDag dag_;
  std::vector<std::pair<std::string, model::Plan>> plans_;
};

/// Everything at maximum clock, and the default plan.
DrawnPlans default_drawing(const model::ComputationDag& dag, const model::Frontier& frontier,
                           const model::DefaultRule& rule, Seconds switch_latency);

/// Checks that writing there would work. Call before the long work; leaves only parent directories behind.
Status check_plan_output(const std::filesystem::path& directory);

/// The files of a plan, with `folder` ("1f1b/") before their names if it is part of a larger result. They use
/// `pipeline` and `frontier` until they are written.
std::vector<ResultFile> plan_files(const std::string& folder, const Pipeline& pipeline, const model::Frontier& frontier,
                                   const std::vector<PointFigures>& figures, std::optional<Seconds> straggler,
                                   const model::DefaultRule& rule, Seconds switch_latency,
                                   const formats::Metadata& metadata);

/// report.html, frontier.svg, timeline.svg and trace.json, for readers or their tools. They use both arguments.
std::vector<ResultFile> plan_pages(const report::ReportInput& report, const DrawnPlans& drawn);

/// The comment at the end of a point's file in plans/.
std::string plan_comment(int number, const model::FrontierPoint& point);

/// True for names of files that `perseus plan --out` writes, of one plan or of several configurations.
bool is_plan_output(std::string_view name);

/// What `perseus plan` prints of a frontier: as text and as JSON.
/// Input:   the pipeline, its frontier, the frontier's summary, and the figures of each point in the frontier's order.
/// Output:  text: a table of representative points, and the plans to choose among; JSON: all points.
std::string plan_text(const Pipeline& pipeline, const model::Frontier& frontier, const report::ReportSummary& summary,
                      const std::vector<PointFigures>& figures);
boost::json::object plan_json(const Pipeline& pipeline, const report::ReportSummary& summary,
                              const std::vector<PointFigures>& figures);

}  // namespace perseus::cli
