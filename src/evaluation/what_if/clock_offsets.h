// Ranks whose clock differs from that of the same rank of other pipelines.
//
// Problem: files of different hosts have different clocks: each step then seems longer, by gaps that nobody had.
// Method:  data-parallel ranks end a collective together. A rank that ends it earlier or later than the usual pipeline,
//          in the median of all steps and by clearly more than it varies, has another clock: its times are moved. The
//          ranks of a pipeline that agree count as one; of two pipelines, single ranks are only reported: either may be
//          wrong. Without such collectives, a pipeline that begins later in every step is only reported: it may load
//          longer. (Clocks within a pipeline: ReplayErrors::early.)
// Output:  offsets of at least 0.2 % of a step, those by starts of at least 2 %, ordered by pipeline and rank.
// Cost:    O(spans).
// Threads: changes the job.
#pragma once

#include <vector>

namespace perseus::what_if {

struct TracedJob;

struct ClockOffset {
  int pipeline = 0, rank = -1;  ///< -1: all ranks
  double late_s = 0;
  bool aligned = true;  ///< its times were moved
};

std::vector<ClockOffset> align_clocks(TracedJob& job);

}  // namespace perseus::what_if
