#include <fmt/format.h>

#include <map>
#include <string>

#include "plan/pipeline.h"
#include "planning/model/boundary_count.h"

namespace perseus::cli {

Status check_transfer_count(const model::TransferLatency& latency, const std::vector<model::Schedule>& schedules,
                            const Error& given_in) {
  const int given = static_cast<int>(latency.boundaries.size());
  if (given == 0 || schedules.empty()) return Ok{};
  std::map<int, std::string> allowed;
  for (const model::Schedule& schedule : schedules) {
    const int count = model::boundary_count(schedule), ranks = schedule.num_ranks();
    allowed[count] = fmt::format("{} (one per boundary of {} ranks{})", count, ranks,
                                 count == ranks ? ", and one between the last and the first" : "");
  }
  if (allowed.contains(given)) return Ok{};
  std::string text = "one for all";
  for (const auto& [count, meaning] : allowed) text += " or " + meaning;
  return Error{given_in.code, fmt::format("{}: {} entries; allowed: {}", given_in.message, given, text)};
}

Error latency_origin(const PipelineOptions& options) {
  if (options.constants.empty()) return {ErrorCode::usage, "--transfer-latency"};
  return {ErrorCode::invalid_input, options.constants + ": transfer_latency_s"};
}

}  // namespace perseus::cli
