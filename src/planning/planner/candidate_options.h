// The clocks of a computation that the published method considers, and the duration of each in units of tau.
//
// Problem: the method needs few, Pareto-optimal options with distinct whole durations.
// Input:   measurements, in any order; the unit of time tau > 0.
// Output:  candidates by falling duration, durations distinct. It drops options for which another is both faster and
//          takes less *raw* energy (without the energy of waiting), and, among options that floor to the same number of
//          units, all but the one with the most energy, which is the closest to the floored time.
// Errors:  none; there is always one candidate.
// Cost:    O(n log n).
// Source:  the published implementation (its text says "Pareto-optimal measurements", appendix "Continuous
// Relaxation").
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "planning/model/profile.h"

namespace perseus::planner {

struct CandidateOption {
  int option = 0;          ///< index into the measurements
  std::int64_t units = 0;  ///< floor(time / tau)
};

/// floor(time / unit); a time that differs from a whole multiple of the unit only by rounding counts as that multiple.
std::int64_t floor_to_units(Seconds time, Seconds unit);

std::vector<CandidateOption> candidate_options(const std::vector<model::Measurement>& measurements, Seconds unit);

}  // namespace perseus::planner
