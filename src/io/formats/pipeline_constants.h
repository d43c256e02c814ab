// The inputs of a pipeline's DAG besides profile and schedule, as a small JSON file: calibration writes it, planning
// reads it.
//
// Format, documented in docs/formats.md; schedule is left out if it has no name, stddevs if nothing was fitted. A
// latency is a number, or a list with one entry per boundary, see io/formats/transfer_latency_text.h:
//
//   {"schedule": "1f1b", "microbatches": 128, "blocking_power_w": 106.2, "blocking_power_stddev_w": 4.1,
//    "transfer_latency_s": 0.00347, "transfer_latency_stddev_s": 1.1e-05, "blocking_transfers": false,
//    "serial_transfers": true,
//    "other_links": [{"transfer_latency_s": [0.002, 0.064, 0.002], "blocking_transfers": true}]}
//
// other_links: what the runs allow as well, if anything.
//
// Errors:  "file: JSON path: found; expected", including unknown keys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"

namespace perseus::formats {

struct PipelineConstants {
  std::optional<std::string> schedule;  ///< a name that make_schedule() knows
  int microbatches = 1;
  model::PipelineCosts costs;
  Watts blocking_power_stddev;
  model::TransferLatency transfer_latency_stddev;
  std::vector<model::OtherLinks> other_links = {};  ///< at most kMostOtherLinks
};
constexpr std::size_t kMostOtherLinks = 1000;

Result<PipelineConstants> parse_pipeline_constants(std::string_view text, const std::string& name);
Result<PipelineConstants> read_pipeline_constants(const std::string& path);
std::string format_pipeline_constants(const PipelineConstants& constants);

}  // namespace perseus::formats
