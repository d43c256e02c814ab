#include "planning/search/recomputation.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::search {
namespace {

bool recomputes_within(const model::ProfileEntry& entry) {
  return entry.instruction == "backward" || entry.instruction == "input_gradient";
}

/// `entry` plus sign * forward at each clock that both have.
Result<model::ProfileEntry> plus_forward(const model::Profile& profile, const model::ProfileEntry& entry, int sign) {
  const auto failure = [&](const std::string& what) {
    return Error{ErrorCode::invalid_input, fmt::format("profile: stage {}: {}", entry.stage, what)};
  };
  const model::ProfileEntry* forward = profile.find(entry.stage, "forward");
  if (forward == nullptr) return failure("has no forward, which a backward with recomputation runs again");
  model::ProfileEntry sum{entry.stage, entry.instruction, {}};
  for (const model::Measurement& m : entry.measurements) {
    const auto again = std::ranges::find(forward->measurements, m.clock, &model::Measurement::clock);
    if (again == forward->measurements.end()) continue;
    model::Measurement both = m;
    both.time = m.time + double(sign) * again->time;
    both.energy = m.energy + double(sign) * again->energy;
    both.time_stddev = Seconds(), both.energy_stddev = Joules();
    if (both.time <= Seconds() || both.energy < Joules()) {
      return failure(fmt::format(
          "{} at {} MHz takes {} s and {} J, forward {} s and {} J; with recomputation it must take longer and need at "
          "least as much, so this profile was measured without it",
          entry.instruction, m.clock.value(), m.time.value(), m.energy.value(), again->time.value(),
          again->energy.value()));
    }
    sum.measurements.push_back(both);
  }
  if (sum.measurements.empty()) return failure("forward and " + entry.instruction + " share no clock");
  return sum;
}

Result<model::Profile> changed(model::Profile profile, const std::vector<bool>& stages, int sign) {
  std::vector<model::ProfileEntry> entries = profile.entries;
  for (model::ProfileEntry& entry : entries) {
    if (!stages[entry.stage] || !recomputes_within(entry)) continue;
    Result<model::ProfileEntry> sum = plus_forward(profile, entry, sign);
    if (!sum) return sum.error();
    entry = *std::move(sum);
  }
  profile.entries = std::move(entries);
  return profile;
}

}  // namespace

Result<model::Profile> without_recomputation(model::Profile profile) {
  const std::vector<bool> all(profile.num_stages(), true);
  return changed(std::move(profile), all, -1);
}

Result<model::Profile> with_recomputation(model::Profile profile, const std::vector<bool>& recomputes) {
  return changed(std::move(profile), recomputes, 1);
}

}  // namespace perseus::search
