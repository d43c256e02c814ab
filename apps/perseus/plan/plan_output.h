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
// Cost:    proportional to the bytes written.
// Threads: one.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "command_line/output_directory.h"
#include "io/formats/plan_file.h"
#include "io/report/report.h"
#include "plan/drawn_plans.h"
#include "plan/pipeline.h"
#include "plan/point_figures.h"

namespace perseus::cli {

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

}  // namespace perseus::cli
