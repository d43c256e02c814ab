// Iterations that every rank reported, each with the plan that it followed and its energy.
//
// Input:   reports of ranks: iteration numbers, plan version (0: no plan from beginning to end), energies.
// Output:  whole(): iterations that all ranks have reported and that all ranks with a plan followed, in order. Only
//          an iteration with an energy from every rank has an energy. kept(): the state that the next server needs;
//          take() reads it.
// Errors:  none; an iteration that the rank has already reported, or one before the last that all ranks have
//          reported, is ignored. Beyond 4096 iterations the oldest are dropped.
// Cost:    O(log) per iteration of a report; kept() and take() O(iterations x ranks).
// Threads: plain value.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/units.h"
#include "server/jobs/event.h"

namespace perseus::savings {

class FollowedIterations {
 public:
  static constexpr std::size_t kMostKept = 4096;

  struct Whole {
    std::int64_t iteration = 0;
    std::int64_t version = 0;  ///< of the plan
    double energy_j = -1;      ///< sum over ranks; < 0: not known
    bool straggles = false;    ///< its energy cannot be compared with iterations without a straggler
    int shape = 0;             ///< microbatches; 0: not known; -1: ranks differ
  };
  struct Report {
    int rank = 0, ranks = 0;  ///< `ranks`: of the job
    bool has_plan = true;     ///< false: the plan has no clocks for this rank, which follows any plan
    std::int64_t version = 0;
    std::int64_t last = 0, count = 0;  ///< the report covers `count` iterations up to `last`
    std::vector<Joules> energies = {};
    bool straggles = false;
    std::vector<int> shapes = {};  ///< microbatches
  };
  void report(const Report& report);
  /// Drops the iterations that have been counted.
  void counted_to(std::int64_t iteration);

  /// The state that remains if every iteration up to that one is counted.
  [[nodiscard]] jobs::ReportsKept kept(std::int64_t counted_to) const;
  /// Goes on from the state that a server has kept.
  void take(const jobs::ReportsKept& kept, int ranks);

  [[nodiscard]] const std::deque<Whole>& whole() const { return whole_; }
  /// True if reports name the plan that the iterations followed.
  [[nodiscard]] bool known() const { return known_; }
  /// Every rank has reported an energy.
  [[nodiscard]] bool measures(int ranks) const { return static_cast<int>(measure_.size()) == ranks; }
  /// From this iteration on, no rank reported a plan, neither for the iteration nor just before it.
  [[nodiscard]] std::int64_t settled_from() const { return last_followed_ < 0 ? 0 : last_followed_ + kSettling + 1; }

 private:
  static constexpr std::int64_t kSettling = 2;  ///< iterations that a switch to the highest clock may still affect
  static constexpr std::int64_t kNotOnePlan = -1;
  struct Partial {
    std::vector<bool> reported;  ///< by rank
    int ranks = 0;               ///< number that reported
    std::int64_t version = 0;    ///< 0: no rank with a plan has reported
    double energy_j = 0;
    bool unmeasured = false, straggles = false;
    int shape = 0;
  };
  using Partials = std::map<std::int64_t, Partial>;
  void close(Partials::iterator partial);
  void forget_oldest();

  Partials partial_;
  std::deque<Whole> whole_;
  std::int64_t closed_ = -1;  ///< no reports are awaited up to here: ranks report in order
  std::set<int> measure_;
  std::int64_t last_followed_ = -1;
  bool known_ = false;
};

}  // namespace perseus::savings
