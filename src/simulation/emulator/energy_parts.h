// A job's energy, split into parts that add up to the total.
//
// Of the energy of computing, sum(e), the avoidable part is bloat, measured in effective energy (e - P t, so that the
// waiting which a slower computation replaces is not counted twice) against the proven lower bound:
//   intrinsic bloat: avoidable without making the pipeline slower;
//   extrinsic bloat: avoidable in addition by slowing the pipeline down to the time that it waits for anyway;
//   useful: the rest of sum(e), and the optimizer's step.
// Blocking: waiting, within the pipeline and for the slowest one, for batches, and in gradient synchronization. Idle:
// GPUs that no pipeline uses, and all of them while the job restarts.
//
// Threads: plain value.
// Source:  paper section 2.2, eq. (1).
#pragma once

#include "base/units.h"

namespace perseus::emulator {

struct EnergyParts {
  Joules useful;
  Joules intrinsic_bloat;
  Joules extrinsic_bloat;
  Joules blocking;
  Joules idle;

  [[nodiscard]] Joules total() const { return useful + intrinsic_bloat + extrinsic_bloat + blocking + idle; }

  EnergyParts& operator+=(const EnergyParts& other) {
    useful += other.useful;
    intrinsic_bloat += other.intrinsic_bloat;
    extrinsic_bloat += other.extrinsic_bloat;
    blocking += other.blocking;
    idle += other.idle;
    return *this;
  }
  friend EnergyParts operator*(double times, const EnergyParts& parts) {
    return {times * parts.useful, times * parts.intrinsic_bloat, times * parts.extrinsic_bloat, times * parts.blocking,
            times * parts.idle};
  }
};

}  // namespace perseus::emulator
