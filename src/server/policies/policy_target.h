// Policies: iteration times that an operator allows or requires beyond the slack that stragglers leave.
//
// Problem: a power cap, a pinned iteration time, and a slowdown accepted while energy is expensive all yield the same
//          result: an iteration time T to plan for.
// Input:   a job's policies, its pipelines' frontiers, T' of its slowest straggler.
// Output:  T >= T' (pinned: the pinned time) and one sentence with the reason. Without a policy, or with a tolerated
//          slowdown: the time of least total energy among those allowed, by planning/model/default_plan.h. Power cap:
//          from there on the *fastest* iteration time whose average power is under the cap; if even T* draws more,
//          T*, and the sentence states that. A pin overrides both. What the limits of the site grant bounds the result
//          like a power cap, whatever the policies. Where even T* draws more than the grant and waits are allowed
//          (pacing.h), T* and a longer time that an iteration takes with waits.
// Errors:  of check_policy(): usage: a value out of range, a signal out of order; conflict: a point that pipeline 0
//          does not have.
// Cost:    O(points) with a cap, otherwise O(log).
// Threads: pure functions.
// Source:  paper section 3.1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "server/jobs/requests.h"

namespace perseus::policies {

/// Pipelines with the same input, as policies see them.
struct PolicyScope {
  const jobs::CharacterizedPipeline* pipeline = nullptr;
  double scale = 1;    ///< accelerators of one pipeline divided by those that the frontier counts
  int count = 0;       ///< pipelines that follow T
  int stragglers = 0;  ///< pipelines that run their default plan
};

struct Target {
  Seconds time;
  std::string reason;            ///< empty: no policy changes anything
  bool kept = true;              ///< false: no plan can keep the policy, and the reason states that
  double straggler_stretch = 1;  ///< of the stragglers' own times, see PowerAtTime
  Seconds paced{};               ///< all ranks wait until each iteration has taken this long; 0: they do not
  Watts power{};                 ///< under a grant: what the job draws at most
};

/// Bounds of the chosen iteration time.
struct TimeBounds {
  Seconds straggler;            ///< T' of the slowest straggler; 0: there is none
  Seconds allowed;              ///< T_max of the slowest pipeline
  double default_slowdown = 0;  ///< tolerated by a job without a max_slowdown policy, relative to `allowed`
  std::optional<Watts> granted = std::nullopt;  ///< by the limits of the site
  double paced_to_rate = 0;                     ///< waits may slow the job to this part of its full speed; 0: no waits
};

Status check_policy(const jobs::Policy& policy);

/// `first`: index of pipeline 0's group (for a pinned point).
Target policy_target(const std::map<std::string, jobs::Policy>& policies, const std::vector<PolicyScope>& groups,
                     std::size_t first, const TimeBounds& bounds, double now_s);

/// Why the policy of that kind is not kept by policy_target(), as a sentence; empty: it is, or is not set. A pin is
/// blamed for a power cap that it exceeds.
std::string policy_not_kept(const std::map<std::string, jobs::Policy>& policies, std::string_view kind,
                            const std::vector<PolicyScope>& groups, std::size_t first, const TimeBounds& bounds,
                            double now_s);

/// What the job draws at most with its plans for an iteration time.
struct PowerAtTime {
  Seconds time;
  Watts power;                   ///< as if nothing delayed an iteration: an announced straggler may be over already
  double straggler_stretch = 1;  ///< of the time that stragglers would take without their delay
};
/// Point of the frontier that a straggler runs whose own time is stretched so much.
int straggling_point(const jobs::CharacterizedPipeline& pipeline, double stretch);
/// For `fastest` and the later times at which a plan changes. `straggler`: T', or 0. At `fastest` stragglers run their
/// default plan; at later times than T' they slow down with the others.
std::vector<PowerAtTime> powers_from(const std::vector<PolicyScope>& groups, Seconds fastest, Seconds straggler);

/// The fastest of these (fastest first, at least one) that draws no more; the last if all do.
const PowerAtTime& fastest_within(std::span<const PowerAtTime> powers, Watts most);

/// What the job draws with the plans of `at` if its ranks wait until each iteration has taken `time`.
Watts power_with_waits(const std::vector<PolicyScope>& groups, const PowerAtTime& at, Seconds time);

/// Average power of the whole job when every iteration takes `time`.
Watts average_power(const std::vector<PolicyScope>& groups, Seconds time);

/// When the signal next crosses its threshold; nothing if it never does.
std::optional<double> next_policy_change(const std::map<std::string, jobs::Policy>& policies, double now_s);

}  // namespace perseus::policies
