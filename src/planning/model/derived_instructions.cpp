#include "planning/model/derived_instructions.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::model {
namespace {

Error failure(int stage, const std::string& what) {
  return {ErrorCode::invalid_input, fmt::format("profile: stage {}: {}", stage, what)};
}

ProfileEntry scaled(const ProfileEntry& entry, const char* instruction, double factor) {
  ProfileEntry part{entry.stage, instruction, entry.measurements};
  for (Measurement& m : part.measurements) {
    m.time = m.time * factor;
    m.energy = m.energy * factor;
    m.time_stddev = Seconds();
    m.energy_stddev = Joules();
  }
  return part;
}

}  // namespace

Result<RecomputeSplit> split_recompute(const Profile& profile, int stage) {
  const ProfileEntry* forward = profile.find(stage, "forward");
  const ProfileEntry* backward = profile.find(stage, "backward");
  if (forward == nullptr || backward == nullptr) {
    return failure(stage, fmt::format("has no {}, which recompute and pure_backward are derived from",
                                      forward == nullptr ? "forward" : "backward"));
  }
  RecomputeSplit split{*forward, {stage, "pure_backward", {}}};
  split.recompute.instruction = "recompute";
  for (const Measurement& whole : backward->measurements) {
    const auto again = std::ranges::find(forward->measurements, whole.clock, &Measurement::clock);
    if (again == forward->measurements.end()) continue;
    Measurement rest = whole;
    rest.time = whole.time - again->time;
    rest.energy = whole.energy - again->energy;
    rest.time_stddev = Seconds();
    rest.energy_stddev = Joules();
    if (rest.time <= Seconds() || rest.energy < Joules()) {
      return failure(stage,
                     fmt::format("pure_backward = backward - forward at {} MHz would take {} s and {} J; must be "
                                 "positive, so measure recompute and pure_backward apart",
                                 whole.clock.value(), rest.time.value(), rest.energy.value()));
    }
    split.pure_backward.measurements.push_back(rest);
  }
  if (split.pure_backward.measurements.empty()) {
    return failure(stage, "forward and backward share no clock, so pure_backward = backward - forward has no options");
  }
  return split;
}

Result<Profile> split_backward(Profile profile, double input_gradient_fraction) {
  if (!(input_gradient_fraction > 0 && input_gradient_fraction < 1)) {
    return Error{ErrorCode::usage, fmt::format("the input gradient's fraction of backward is {}; must be > 0 and < 1",
                                               input_gradient_fraction)};
  }
  std::vector<ProfileEntry> entries;
  for (std::size_t i = 0; i < profile.entries.size();) {
    const int stage = profile.entries[i].stage;
    bool is_split = false;
    const ProfileEntry* backward = nullptr;
    std::size_t end = i;
    for (; end < profile.entries.size() && profile.entries[end].stage == stage; ++end) {
      const std::string& name = profile.entries[end].instruction;
      is_split = is_split || name == "input_gradient" || name == "weight_gradient";
      if (name == "backward") backward = &profile.entries[end];
    }
    if (!is_split && backward == nullptr) return failure(stage, "has no backward to split");
    entries.insert(entries.end(), profile.entries.begin() + i, profile.entries.begin() + end);
    if (!is_split) {
      entries.push_back(scaled(*backward, "input_gradient", input_gradient_fraction));
      entries.push_back(scaled(*backward, "weight_gradient", 1 - input_gradient_fraction));
    }
    i = end;
  }
  profile.entries = std::move(entries);
  return profile;
}

}  // namespace perseus::model
