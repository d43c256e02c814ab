// A profile: time and energy of every computation of one training iteration at each clock, as measured.
//
// Shape: one entry per (stage, instruction), entries unique, ordered by stage then by first appearance; within an entry
// one measurement per clock, highest clock first, clocks unique. Units: seconds, joules, MHz, of ONE accelerator; where
// a stage's tensor/data-parallel ranks were profiled apart, times are their maximum, energies their sum, and
// `accelerators` of that stage says how many they are (blocking power counts that often).
// Measurements are kept as they are: dominated clocks and noise included. Filtering is the planner's business.
// A clock without its pair (measured for a stage's forward but not for its backward, or the reverse) is kept: the two
// are planned apart. A stage that has forward but no form of backward, or the reverse, is an error. Errors: validate()
// names stage, instruction, value and what was allowed. Threads: plain value. Source: paper section 5 (Profiler).
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
  Seconds time_stddev;   ///< spread of the averaged samples, 0 if there was one
  Joules energy_stddev;  ///< likewise
  int samples = 1;
};

struct ProfileEntry {
  int stage = 0;
  std::string instruction;  ///< see planning/model/instruction.h for the names the schedules use
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

}  // namespace perseus::model
