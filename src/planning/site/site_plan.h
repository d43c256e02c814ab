// The plan of a site over time, and what its operator asks before signing for watts.
//
// Input:   a valid site, and limits of its accelerators over time per domain.
// Output:  plan_site(): an allocation for every interval within which all limits are constant, from 0 to `end`. A job
//          with a deadline needs at least its remaining work over the remaining time: at a constant price a constant
//          rate is cheapest. throughput_over_watts(): the best total at fractions of what the jobs of a domain draw at
//          maximum clock, all other limits absent. headroom_at(): how many more accelerators of the same mix the same
//          watts feed at a given rate.
// Errors:  none.
// Cost:    an allocation per interval or fraction.
// Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planning/model/site.h"
#include "planning/model/site_description.h"
#include "planning/model/site_objective.h"
#include "planning/site/window_guard.h"

namespace perseus::site {

/// Work that a job must have done by a time: seconds at full speed.
struct DueWork {
  Seconds at, work;
};

struct TimedSite {
  model::Site site;
  std::vector<std::vector<model::LimitStep>>
      limits;                               ///< per domain, the first step at 0 s; below 0 W: watts are missing
  std::vector<std::optional<DueWork>> due;  ///< per job
  Seconds end;                              ///< 0: one interval without an end
  /// Per domain: over which its meter averages; nullopt: over minutes, and no guard. Empty: no domain has one.
  std::vector<std::optional<Seconds>> windows{};
  /// How a job at a point of its curve swings within a window; needed where a domain has one.
  std::function<WindowSwing(std::size_t job, int point, Seconds window)> swing_of{};

  [[nodiscard]] std::optional<Seconds> window_of(int domain) const {
    return windows.empty() ? std::nullopt : windows[domain];
  }
};

struct Interval {
  Seconds from, until;
  std::vector<Watts> limits, used;  ///< per domain
  std::vector<double> least_rates;  ///< per job: its tier's, or more for its deadline
  model::Allocation allocation;     ///< under the limits less the guards
  std::vector<Watts> guards{};      ///< per domain: of its window
  std::vector<Watts> below{};  ///< per domain: of the missing watts, what is not for floors: the limit is below 0 W

  [[nodiscard]] std::vector<Watts> guarded_limits() const;
};

/// Called with the part of the intervals that is done, 0 to 1.
using SiteProgress = std::function<void(double)>;
std::vector<Interval> plan_site(const TimedSite& timed, model::SiteObjective objective,
                                const SiteProgress& progress = {});

/// Sum of weight x rate over that at full speed, and the least rate.
struct Speed {
  double throughput = 1, least_rate = 1;
};
Speed speed_of(const model::Site& site, const std::vector<int>& chosen);
std::vector<Watts> power_of(const model::Site& site, const std::vector<int>& chosen);

struct WhatIf {
  double fraction = 1;  ///< of the power at maximum clock
  Watts limit;
  Speed best;          ///< the allocation
  Speed equal_shares;  ///< every job gets the same fraction of its own power at maximum clock, at its best plan
  Watts missing{};     ///< for the floors
};
std::vector<WhatIf> throughput_over_watts(const model::Site& site, model::SiteObjective objective, int domain,
                                          std::span<const double> fractions);

/// Accelerators over the present number, relative: 0.24 is 24 % more.
double headroom_at(const model::Site& site, double rate);

}  // namespace perseus::site
