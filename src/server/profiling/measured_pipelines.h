// Assembles a pipeline's iterations from its ranks' results and estimates its links.
//
// Problem: results arrive per rank and replica, while an iteration's messages need those of all ranks. Tensor
//          parallel copies of a pipeline send at the same time; the slowest one counts.
// Input:   results of profiling windows; those without begins and ends are ignored.
// Output:  links(): see link_times.h; of several replicas the largest latency of each boundary.
// Errors:  none.
// Cost:    O(values) per result; a window's times are kept until all ranks of a replica have reported them.
// Threads: plain value.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "server/profiling/link_times.h"

namespace perseus::profiling {
struct RankResult;
}

namespace perseus::profiling {

class MeasuredPipelines {
 public:
  explicit MeasuredPipelines(model::Schedule schedule) : schedule_(std::move(schedule)) {}
  void add(const RankResult& result);
  [[nodiscard]] std::optional<MeasuredLinks> links() const;

 private:
  using OfWindow = std::map<int, std::vector<std::vector<RunTime>>>;  ///< by rank: [iteration][action]

  model::Schedule schedule_;
  std::map<int, LinkTimes> replicas_;
  std::map<std::pair<int, int>, OfWindow> waiting_;  ///< by replica and window
};

}  // namespace perseus::profiling
