// Iterations of the whole job, as its ranks measured them, from their reports.
//
// Input:   reports of ranks: iteration numbers, times, energies, the plan followed.
// Output:  each iteration once, as soon as every rank has reported it. Its time is that of the slowest rank, its energy
//          the sum over ranks.
// Errors:  none; an iteration that the rank has already reported, or one before the last that all ranks have
//          reported, is ignored. Beyond 4096 iterations the oldest are dropped.
// Cost:    O(log) per iteration of a report.
// Threads: plain value.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/units.h"

namespace perseus::savings {

struct WholeIteration {
  std::int64_t iteration = 0;
  double time_s = 0;
  double energy_j = -1;      ///< < 0: a rank reported none
  std::int64_t version = 0;  ///< of the plan that all ranks with a plan followed; 0: none, or not the same one
  bool straggles = false;
  int shape = 0;  ///< microbatches; 0: not known; -1: ranks differ
  bool operator==(const WholeIteration&) const = default;
};

class MeasuredIterations {
 public:
  struct Report {
    int rank = 0, ranks = 0;   ///< `ranks`: of the job
    bool has_plan = true;      ///< false: the plan has no clocks for this rank, which follows any plan
    std::int64_t version = 0;  ///< of the plan followed; 0: none
    std::int64_t last = 0;     ///< number of the last iteration in the lists
    std::span<const Seconds> times;
    std::span<const Joules> energies;  ///< of the first ones of `times`; not positive: none
    bool straggles = false;
    std::span<const int> shapes = {};  ///< likewise, microbatches
  };
  /// How many of these `count` iterations up to `last` the rank has reported before: a client repeats a report whose
  /// answer was lost.
  [[nodiscard]] std::int64_t repeated(int rank, std::int64_t last, std::int64_t count) const;
  /// The iterations that this report completes, in order.
  std::vector<WholeIteration> report(const Report& report);

 private:
  static constexpr std::size_t kMostKept = 4096;
  static constexpr std::int64_t kNotOnePlan = -1;
  struct Partial {
    int ranks = 0;             ///< number that reported
    std::int64_t version = 0;  ///< 0: no rank with a plan has reported
    double time_s = 0, energy_j = 0;
    bool unmeasured = false, straggles = false;
    int shape = 0;
  };
  static void add(Partial& partial, const Report& report, std::size_t index);

  std::map<std::int64_t, Partial> partial_;
  std::vector<std::int64_t> reported_to_;  ///< by rank
  std::int64_t closed_ = -1;
};

}  // namespace perseus::savings
