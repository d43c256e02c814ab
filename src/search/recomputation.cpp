#include "search/recomputation.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::search {
namespace {

bool recomputes_within(const ProfileEntry& entry) {
  return entry.instruction == "backward" || entry.instruction == "input_gradient";
}

/// `entry` plus sign * forward at each clock that both have.
Result<ProfileEntry> plus_forward(const Profile& profile, const ProfileEntry& entry, int sign) {
  const auto failure = [&](const std::string& what) {
    return Error{ErrorCode::invalid_input, fmt::format("profile: stage {}: {}", entry.stage, what)};
  };
  const ProfileEntry* forward = profile.find(entry.stage, "forward");
  if (forward == nullptr) return failure("has no forward, which a backward with recomputation runs again");
  ProfileEntry sum{entry.stage, entry.instruction, {}};
  for (const Measurement& m : entry.measurements) {
    const auto again = std::ranges::find(forward->measurements, m.clock, &Measurement::clock);
    if (again == forward->measurements.end()) continue;
    Measurement both = m;
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

Result<Profile> changed(Profile profile, const std::vector<bool>& stages, int sign) {
  std::vector<ProfileEntry> entries = profile.entries;
  for (ProfileEntry& entry : entries) {
    if (!stages[entry.stage] || !recomputes_within(entry)) continue;
    Result<ProfileEntry> sum = plus_forward(profile, entry, sign);
    if (!sum) return sum.error();
    entry = *std::move(sum);
  }
  profile.entries = std::move(entries);
  return profile;
}

}  // namespace

Result<Profile> without_recomputation(Profile profile) {
  const std::vector<bool> all(profile.num_stages(), true);
  return changed(std::move(profile), all, -1);
}

Result<Profile> with_recomputation(Profile profile, const std::vector<bool>& recomputes) {
  return changed(std::move(profile), recomputes, 1);
}

}  // namespace perseus::search
