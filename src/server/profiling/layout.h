// The subject of a profile: the (stage, instruction) pairs of a job, their occurrences, and their clocks.
//
// Input:   a ProfilingJob.
// Output:  types ordered by stage, then by first appearance on their rank; constant-time types have the single clock
//          0.
// Errors:  build() names rank, stage and value.
// Cost:    O(actions).
// Threads: plain value.
#pragma once

#include <vector>

#include "base/result.h"
#include "server/profiling/online_profiler.h"

namespace perseus::profiling {

struct ProfiledType {
  int stage = 0;
  model::Instruction instruction = model::Instruction::forward;
  int rank = 0;
  std::vector<Megahertz> clocks;  ///< highest first
  int occurrences = 0;            ///< per iteration
  [[nodiscard]] bool has_clock() const { return clocks.front().value() != 0; }
  /// Index into `clocks`, or -1.
  [[nodiscard]] int index_of(Megahertz clock) const;
};

struct Layout {
  ProfilingJob job;
  std::vector<ProfiledType> types;
  std::vector<std::vector<int>> type_of;  ///< [rank][action]
  [[nodiscard]] int num_ranks() const { return static_cast<int>(type_of.size()); }
  [[nodiscard]] int num_types() const { return static_cast<int>(types.size()); }
  [[nodiscard]] int replicas(int rank) const { return job.replicas.empty() ? 1 : job.replicas[rank]; }

  static Result<Layout> build(ProfilingJob job);
};

}  // namespace perseus::profiling
