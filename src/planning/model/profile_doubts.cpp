#include "planning/model/profile_doubts.h"

#include <fmt/format.h>

#include <algorithm>

#include "planning/model/instruction.h"

namespace perseus::model {
namespace {

constexpr Watts kMostPower(2000);         // more than any accelerator takes
constexpr Watts kLeastPower(5);           // less than any accelerator takes, even asleep
constexpr Megahertz kHighestClock(5000);  // above any accelerator's
constexpr Seconds kLongest(10);           // if every computation takes longer; published ones take up to 0.51 s
constexpr double kNoise = 0.05;           // of a time: a smaller excess at a higher clock may be noise

/// Cases of one kind of doubt.
struct Cases {
  int count = 0;
  std::string first;
  void add(const std::string& text) {
    if (count++ == 0) first = text;
  }
  [[nodiscard]] std::string others() const { return count > 1 ? fmt::format(" (and {} more)", count - 1) : ""; }
};

std::string place_of(const ProfileEntry& entry, const Measurement& m) {
  return fmt::format("stage {}, {}, {} MHz", entry.stage, entry.instruction, m.clock.value());
}

bool is_constant(const ProfileEntry& entry) {
  const auto instruction = instruction_named(entry.instruction);
  return instruction && is_constant_time(*instruction);
}

}  // namespace

std::vector<std::string> profile_doubts(const Profile& profile, std::optional<Watts> blocking_power) {
  Cases too_fast, too_long, too_much, too_little, below_blocking, slower, ends_below;
  int cells = 0;
  Megahertz highest(0);
  for (const ProfileEntry& entry : profile.entries) {
    if (!is_constant(entry)) highest = std::max(highest, entry.measurements.front().clock);
  }
  std::size_t clocks = 0;
  for (const ProfileEntry& entry : profile.entries) {
    if (is_constant(entry)) continue;
    clocks = std::max(clocks, entry.measurements.size());
    if (entry.measurements.front().clock < highest) ends_below.add(place_of(entry, entry.measurements.front()));
    for (std::size_t i = 0; i < entry.measurements.size(); ++i) {
      const Measurement& m = entry.measurements[i];
      const Watts power = m.energy / m.time / double(profile.accelerators[entry.stage]);
      const std::string text = fmt::format("{}: {:.4g} W", place_of(entry, m), power.value());
      ++cells;
      if (m.clock > kHighestClock) too_fast.add(place_of(entry, m));
      if (m.time > kLongest) too_long.add(fmt::format("{}: {:.4g} s", place_of(entry, m), m.time.value()));
      if (power > kMostPower) too_much.add(text);
      if (power < kLeastPower) too_little.add(text);
      if (blocking_power && power < *blocking_power) below_blocking.add(text);
      if (i == 0) continue;
      const Measurement& higher = entry.measurements[i - 1];
      if (higher.time > (1 + kNoise) * m.time) {
        slower.add(fmt::format("{}: {:.4g} s, at {} MHz {:.4g} s", place_of(entry, higher), higher.time.value(),
                               m.clock.value(), m.time.value()));
      }
    }
  }
  std::vector<std::string> doubts;
  const auto doubt = [&](const Cases& cases, const std::string& what) {
    if (cases.count > 0) doubts.push_back(fmt::format("{}{}: {}", cases.first, cases.others(), what));
  };
  doubt(too_fast, fmt::format("no GPU has a clock above {} MHz; are the clocks in kHz or Hz? They must be in MHz",
                              kHighestClock.value()));
  if (cells > 0 && too_long.count == cells && too_little.count < cells) {
    doubt(too_long, fmt::format("every computation takes over {:g} s; are the times in ms and the energies in mJ? They "
                                "must be in s and J, of one microbatch",
                                kLongest.value()));
  }
  doubt(too_much, fmt::format("no GPU takes more than {:g} W; times are in s, energies in J", kMostPower.value()));
  if (cells > 0 && too_little.count == cells) {
    doubt(too_little, "no GPU takes so little; are the times in ms? They must be in s, energies in J");
  } else if (blocking_power) {
    doubt(below_blocking,
          fmt::format("less than the blocking power of {:g} W, while it computes", blocking_power->value()));
  }
  if (too_fast.count == 0) {
    doubt(ends_below, fmt::format("its highest clock, below the {} MHz of others: plans take it for maximum clock, and "
                                  "are slower than the job at maximum clock if that GPU goes higher",
                                  highest.value()));
  }
  doubt(slower, "slower at a higher clock, by more than noise");
  if (cells > 0 && clocks == 1) doubts.emplace_back("the profile has one clock only: there is nothing to choose");
  return doubts;
}

}  // namespace perseus::model
