#include "planning/model/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "planning/model/instruction.h"

namespace perseus::model {
namespace {

Error violation(const ProfileEntry& entry, const std::string& what) {
  return {ErrorCode::invalid_input, fmt::format("profile: stage {}, {}: {}", entry.stage, entry.instruction, what)};
}

Status validate_entry(const ProfileEntry& entry) {
  const auto& measurements = entry.measurements;
  if (measurements.empty()) return violation(entry, "no measurements; at least one is needed");
  if (measurements.size() > 65535) {
    return violation(entry, fmt::format("{} clocks; at most 65535 are allowed", measurements.size()));
  }
  const auto instruction = instruction_named(entry.instruction);
  const bool constant = instruction && is_constant_time(*instruction);
  if (constant && measurements.size() > 1) {
    return violation(entry, fmt::format("{} clocks, but no clock affects it: exactly one measurement is allowed",
                                        measurements.size()));
  }
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const Measurement& m = measurements[i];
    if (m.clock.value() < 0) return violation(entry, fmt::format("clock {} MHz; must be >= 0", m.clock.value()));
    if (i > 0 && m.clock >= measurements[i - 1].clock) {
      return violation(entry, fmt::format("clock {} MHz follows {} MHz; clocks must be unique, highest first",
                                          m.clock.value(), measurements[i - 1].clock.value()));
    }
    const auto at = [&](const char* quantity, double value, const char* allowed) {
      return violation(entry, fmt::format("{} MHz: {} {}; must be {}", m.clock.value(), quantity, value, allowed));
    };
    if (!(std::isfinite(m.time.value()) && m.time.value() > 0)) {
      return at("time_s", m.time.value(), "finite and > 0");
    }
    if (!(std::isfinite(m.energy.value()) && m.energy.value() >= 0)) {
      return at("energy_j", m.energy.value(), "finite and >= 0");
    }
    if (!(std::isfinite(m.time_stddev.value()) && m.time_stddev.value() >= 0)) {
      return at("time_stddev_s", m.time_stddev.value(), "finite and >= 0");
    }
    if (!(std::isfinite(m.energy_stddev.value()) && m.energy_stddev.value() >= 0)) {
      return at("energy_stddev_j", m.energy_stddev.value(), "finite and >= 0");
    }
    if (m.samples < 1) return at("samples", m.samples, ">= 1");
  }
  return Ok{};
}

/// The instructions of one stage.
class StageInstructions {
 public:
  void add(Instruction i) { bits_ |= 1U << static_cast<unsigned>(i); }
  [[nodiscard]] bool has(Instruction i) const { return (bits_ >> static_cast<unsigned>(i) & 1U) != 0; }
  [[nodiscard]] bool any() const { return bits_ != 0; }

 private:
  unsigned bits_ = 0;
};

Status validate_pairs(int stage, const StageInstructions& stage_has) {
  using enum Instruction;
  const auto lacks = [&](const char* what, const char* needs) {
    return Error{ErrorCode::invalid_input, fmt::format("profile: stage {} has {} but no {}", stage, what, needs)};
  };
  const bool any_backward = stage_has.has(backward) || stage_has.has(input_gradient) ||
                            stage_has.has(weight_gradient) || stage_has.has(pure_backward);
  if (any_backward && !stage_has.has(forward)) return lacks("backward", "forward");
  if (stage_has.has(forward) && !any_backward) {
    return lacks("forward",
                 "backward (allowed: backward, input_gradient + weight_gradient, or recompute + "
                 "pure_backward)");
  }
  if (stage_has.has(input_gradient) && !stage_has.has(weight_gradient))
    return lacks("input_gradient", "weight_gradient");
  if (stage_has.has(weight_gradient) && !stage_has.has(input_gradient))
    return lacks("weight_gradient", "input_gradient");
  return Ok{};
}

}  // namespace

const ProfileEntry* Profile::find(int stage, std::string_view instruction) const {
  const auto found = std::ranges::find_if(
      entries, [&](const ProfileEntry& e) { return e.stage == stage && e.instruction == instruction; });
  return found == entries.end() ? nullptr : &*found;
}

Status Profile::validate() const {
  if (accelerators.empty()) return Error{ErrorCode::invalid_input, "profile: no stages"};
  for (int stage = 0; stage < num_stages(); ++stage) {
    if (accelerators[stage] < 1) {
      return Error{ErrorCode::invalid_input,
                   fmt::format("profile: stage {}: {} accelerators; must be >= 1", stage, accelerators[stage])};
    }
  }
  std::vector<StageInstructions> stages(accelerators.size());
  std::set<std::pair<int, std::string_view>> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ProfileEntry& entry = entries[i];
    if (entry.stage < 0 || entry.stage >= num_stages()) {
      return violation(entry, fmt::format("stage must be 0..{}", num_stages() - 1));
    }
    if (i > 0 && entry.stage < entries[i - 1].stage) {
      return violation(entry, fmt::format("follows stage {}; entries must be ordered by stage", entries[i - 1].stage));
    }
    if (!seen.emplace(entry.stage, entry.instruction).second) return violation(entry, "given twice");
    if (Status status = validate_entry(entry); !status) return status;
    if (const auto instruction = instruction_named(entry.instruction)) stages[entry.stage].add(*instruction);
  }
  for (int stage = 0; stage < num_stages(); ++stage) {
    if (!stages[stage].any()) {
      return Error{ErrorCode::invalid_input, fmt::format("profile: stages 0..{} expected, stage {} has no measurements",
                                                         num_stages() - 1, stage)};
    }
    if (Status status = validate_pairs(stage, stages[stage]); !status) return status;
  }
  return Ok{};
}

Watts guessed_blocking_power(const Profile& profile) {
  constexpr double share = 0.2;
  Watts highest;
  for (const ProfileEntry& entry : profile.entries) {
    for (const Measurement& m : entry.measurements) highest = std::max(highest, m.energy / m.time);
  }
  return share * highest;
}

}  // namespace perseus::model
