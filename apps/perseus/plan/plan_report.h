// What `perseus plan` prints of a frontier: as text and as JSON.
//
// Input:   the pipeline, its frontier, the frontier's summary, and the figures of each point in the frontier's order.
// Output:  text: a table of representative points, and the plans to choose among; JSON: all points.
// Cost:    O(points).
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "io/report/summary.h"
#include "plan/pipeline.h"
#include "plan/point_figures.h"
#include "planning/model/frontier.h"

namespace perseus::cli {

std::string plan_text(const Pipeline& pipeline, const model::Frontier& frontier, const report::ReportSummary& summary,
                      const std::vector<PointFigures>& figures);
boost::json::object plan_json(const Pipeline& pipeline, const report::ReportSummary& summary,
                              const std::vector<PointFigures>& figures);

}  // namespace perseus::cli
