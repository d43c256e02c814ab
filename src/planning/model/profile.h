// A profile: time and energy of every computation of one training iteration at each clock, as measured.
//
// Shape:   one entry per (stage, instruction), entries unique, ordered by stage, then by first appearance; within an
//          entry one measurement per clock, highest clock first, clocks unique. Measurements stay as measured, with
//          dominated clocks and noise; the planner filters them. A clock measured only for a stage's forward or only
//          for its backward stays: the planner treats the two separately.
// Units:   seconds, joules, MHz of ONE accelerator. If a stage's tensor- or data-parallel ranks were profiled
//          separately, times are their maximum and energies their sum, and `accelerators` of that stage is their number
//          (blocking power counts that often).
// Errors:  validate() names stage, instruction, value and what is allowed. A stage with forward but without any form of
//          backward, or the reverse, is an error.
// Threads: plain value.
// Source:  paper section 5 (Profiler).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace perseus::model {

struct Measurement {
  Megahertz clock;       ///< 0 for a constant-time operation that no clock affects
  Seconds time;          ///< > 0
  Joules energy;         ///< >= 0
  Seconds time_stddev;   ///< of the averaged samples; 0 for a single sample
  Joules energy_stddev;  ///< of the averaged samples; 0 for a single sample
  int samples = 1;
};

struct ProfileEntry {
  int stage = 0;
  std::string instruction;  ///< planning/model/instruction.h lists the names that schedules use
  std::vector<Measurement> measurements;
};

struct Profile {
  std::vector<ProfileEntry> entries;
  std::vector<int> accelerators;  ///< per stage, all 1 unless ranks were merged; size() is the number of stages

  [[nodiscard]] int num_stages() const { return static_cast<int>(accelerators.size()); }
  /// The entry, or null. O(entries).
  [[nodiscard]] const ProfileEntry* find(int stage, std::string_view instruction) const;
  /// Ok, or the first violation of the shape above (times positive and finite, clocks unique and descending, ...).
  [[nodiscard]] Status validate() const;
};

/// Blocking power of ONE accelerator where it was not measured: a fifth of the highest average power of any
/// computation; 0 without computations. GPUs that wait on a transfer spin, and draw about that.
Watts guessed_blocking_power(const Profile& profile);

}  // namespace perseus::model
