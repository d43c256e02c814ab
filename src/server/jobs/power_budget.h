// What a job may draw under the limits of its site, and what its ranks are known to follow.
//
// Problem: a rank follows a plan some time after it was sent, and the log must say what it may still draw.
// Input:   a job, whose log has its grants (PowerGranted), its plans with their budgets, and the versions that
//          its ranks named in requests (VersionHeld).
// Output:  counted_power(): the greatest budget of the plans that some rank may still follow. Nothing: a rank may run
//          everything at maximum clock.
// Errors:  none.
// Cost:    O(ranks + versions not held by all ranks).
// Threads: plain values, pure functions.
// Source:  docs/decisions/0052.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"

namespace perseus::jobs {

struct Job;

/// What a budget will be from a time on.
struct LaterBudget {
  double at_s = 0;               ///< since 1970
  double watts = 0;              ///< mean power of the job at most
  int ceiling_mhz = 0;           ///< highest clock of a rank that has no plan of that time
  double paced_iteration_s = 0;  ///< as in PowerBudget, of a rank that has no plan of that time
  bool operator==(const LaterBudget&) const = default;
};
/// Of a plan, and of the answer to a rank.
struct PowerBudget {
  double watts = 0;                     ///< mean power of the job at most
  double lease_s = 0;                   ///< how long the plan is valid after the last answer of the server
  int ceiling_mhz = 0;                  ///< highest clock of a rank without a valid plan
  bool at_once = false;                 ///< the ranks may still draw more: they switch at the next computation
  std::vector<LaterBudget> ahead = {};  ///< falls that are known already, in order of time
  double paced_iteration_s = 0;  ///< below the slowest plan: each iteration takes this long, see pacing.h; 0: none
  bool operator==(const PowerBudget&) const = default;
};

/// The versions that ranks named, as the log of a job has them.
class HeldVersions {
 public:
  void deployed(std::int64_t version, const std::optional<PowerBudget>& budget);
  /// All ranks hold this version or a later one.
  void held_by_all(std::int64_t version);
  /// The greatest budget of the versions from `first` to `last`; nothing: one of them has none.
  [[nodiscard]] std::optional<Watts> most(std::int64_t first, std::int64_t last) const;
  /// At `at_s` the ranks hold a period, but the iteration under way began without it: until `from_s` they count as
  /// before too. An earlier such time that is not over is kept in it.
  void acts_from(double from_s, double at_s, std::optional<Watts> before);
  [[nodiscard]] bool acts(double now_s) const { return now_s >= acts_from_s_; }
  [[nodiscard]] std::optional<Watts> before() const { return before_; }
  bool operator==(const HeldVersions&) const = default;

 private:
  std::map<std::int64_t, double> watts_of_;  ///< without gaps from the first version that a rank may hold
  double acts_from_s_ = 0;
  std::optional<Watts> before_;
};

/// The ranks (empty: all) named this version or a later one at that time.
void note_held(Job& job, std::int64_t version, const std::vector<int>& ranks, double at_s);

std::optional<Watts> counted_power(const Job& job, double now_s);
/// Those of the ranks that have registered; once a rank has reported iterations, which need all ranks, all of them.
int counted_accelerators(const Job& job);
/// True if every rank that has registered waits where it is asked to.
bool paces(const Job& job);
/// True if every rank that has registered can keep a budget: it sets clocks, and its client has said that it obeys
/// budgets.
bool keeps_budgets(const Job& job);
/// The least version that all ranks hold; 0: a rank holds none.
std::int64_t version_held_by_all(const Job& job);

}  // namespace perseus::jobs
