// Policies that decide a job's plan: a limit on power, a fixed iteration time, or an accepted slowdown.
//
// Threads: plain values.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"

namespace perseus::jobs {

/// Limit on the average power of the job (all pipelines together): the fastest iteration within it.
struct PowerCap {
  Watts average;
  bool operator==(const PowerCap&) const = default;
};
/// This iteration time, regardless of stragglers and other policies; or the time of that point of pipeline 0's
/// frontier.
struct Pin {
  std::optional<Seconds> time;
  std::optional<int> point;
  bool operator==(const Pin&) const = default;
};
/// Accepts `slowdown` times T_max: always, or where there is a signal (a price, a carbon intensity), while the signal
/// is above the threshold.
struct MaxSlowdown {
  struct Sample {
    double from_s = 0;  ///< valid until the next entry's; the last one has no end
    double value = 0;
    bool operator==(const Sample&) const = default;
  };
  double slowdown = 1;
  std::optional<double> threshold;  ///< of the signal, and only with one; nothing: 0
  std::vector<Sample>
      signal;        ///< by increasing time; before the first, the policy is not in force; empty: always in force
  std::string unit;  ///< for people: "EUR/MWh"
  bool operator==(const MaxSlowdown&) const = default;
};
using Policy = std::variant<PowerCap, Pin, MaxSlowdown>;
inline constexpr std::array<std::string_view, std::variant_size_v<Policy>> kPolicyKinds{"power_cap", "pinned",
                                                                                        "max_slowdown"};
/// One of kPolicyKinds.
inline std::string_view kind_of(const Policy& policy) { return kPolicyKinds[policy.index()]; }

}  // namespace perseus::jobs
