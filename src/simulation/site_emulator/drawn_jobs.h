// What is random about a day: where jobs begin, what they draw, how long grants take.
//
// Input:   a seed. Normal and uniform numbers are made here, since those of libraries differ.
// Output:  the same numbers for the same seed and day, whatever the method.
// Threads: one object, one thread.
#pragma once

#include <random>
#include <vector>

#include "simulation/site_emulator/site_day.h"

namespace perseus::site_emulator {

class DayDice {
 public:
  explicit DayDice(std::uint64_t seed) : engine_(seed) {}
  double uniform();  ///< in [0, 1)
  double normal();

 private:
  std::mt19937_64 engine_;
};

/// Per job: the part of its first iteration that is over at 0 s.
std::vector<double> draw_places(const SiteDay& day);
/// Per job: power over that of its profile, at least a tenth.
std::vector<double> draw_factors(const SiteDay& day);
/// Of one grant to one rank, in s.
double draw_delay_s(const GrantDelay& delay, DayDice& dice);

}  // namespace perseus::site_emulator
