#include "verify/profile_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/derived_instructions.h"

namespace perseus {
namespace {

/// What the profile has for a type, derived where it was not measured; nothing if it cannot be had.
std::vector<Measurement> measured(const ComputationType& type, const Profile& profile) {
  if (const ProfileEntry* entry = profile.find(type.stage, type.instruction)) return entry->measurements;
  if (type.instruction == "recompute" || type.instruction == "pure_backward") {
    const Result<RecomputeSplit> split = split_recompute(profile, type.stage);
    if (!split) return {};
    return (type.instruction == "recompute" ? split->recompute : split->pure_backward).measurements;
  }
  const bool is_input = type.instruction == "input_gradient";
  if (!is_input && type.instruction != "weight_gradient") return {};
  const ProfileEntry* backward = profile.find(type.stage, "backward");
  if (backward == nullptr) return {};
  const double share = type.options.front().time / backward->measurements.front().time;
  const Result<Profile> split = split_backward(profile, is_input ? share : 1 - share);
  const ProfileEntry* entry = split ? split->find(type.stage, type.instruction) : nullptr;
  return entry == nullptr ? std::vector<Measurement>{} : entry->measurements;
}

}  // namespace

std::vector<std::string> check_against_profile(const ComputationDag& dag, const Profile& profile, double tolerance) {
  std::vector<std::string> findings;
  const auto differ = [&](double a, double b) {
    return std::abs(a - b) > tolerance * std::max(std::abs(a), std::abs(b));
  };
  for (const ComputationType& type : dag.types) {
    const std::string name = fmt::format("stage {} {}", type.stage, type.instruction);
    const std::vector<Measurement> wanted = measured(type, profile);
    if (wanted.empty()) {
      findings.push_back(fmt::format("{}: not in the profile", name));
      continue;
    }
    for (const Measurement& option : type.options) {
      const auto found = std::ranges::find(wanted, option.clock, &Measurement::clock);
      if (found == wanted.end()) {
        findings.push_back(fmt::format("{}: the profile has no measurement at {} MHz", name, option.clock.value()));
      } else if (differ(option.time.value(), found->time.value()) ||
                 differ(option.energy.value(), found->energy.value())) {
        findings.push_back(fmt::format("{} at {} MHz: {} s, {} J; the profile has {} s, {} J", name,
                                       option.clock.value(), option.time.value(), option.energy.value(),
                                       found->time.value(), found->energy.value()));
      }
    }
    for (const Measurement& m : wanted) {
      if (std::ranges::find(type.options, m.clock, &Measurement::clock) != type.options.end()) continue;
      findings.push_back(fmt::format("{}: the profile's {} MHz is not among the options", name, m.clock.value()));
    }
  }
  return findings;
}

}  // namespace perseus
