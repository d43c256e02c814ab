// The compact file of a whole frontier: all plans, and the data to look up, show and verify them without their
// inputs.
//
// Format: JSON, documented in docs/formats.md. Numbers are the shortest text that reads back as the same double, so
// reading a written file gives equal values. Plans are run-length encoded along each rank and type. Reading checks
// everything that needs no computation: shape, ranges, a valid DAG, plans that fit it, points in the order of
// planning/model/frontier.h; planning/checker checks times and energies. Unknown keys are ignored.
//
// Errors:  "name: JSON path: value; what is allowed". Limits: 256 MiB.
// Threads: any.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::formats {

/// Free text on the origin of the plans: profile, schedule, options, ...
using Metadata = std::map<std::string, std::string>;

struct PlanFile {
  model::ComputationDag dag;
  model::Frontier frontier;  ///< at least one point and one bound vertex
  Metadata metadata;
};

/// The file's content. `dag` and `frontier` must be valid and fit each other; metadata must be UTF-8 (bytes that are
/// not are replaced by '?').
std::string format_plan_file(const model::ComputationDag& dag, const model::Frontier& frontier,
                             const Metadata& metadata = {});

Result<PlanFile> parse_plan_file(std::string_view text, const std::string& name);
Result<PlanFile> read_plan_file(const std::string& path);

}  // namespace perseus::formats
