// Energy and time of an iteration of the whole job, from what its ranks report.
//
// Input:   reports of ranks: the plan version that the iterations followed (0: the highest clock), their shape (number
//          of microbatches), energies and times.
// Output:  take(): an iteration of a version and shape once all ranks have reported it, again once they have reported
//          kFewestThatTell, and then each time the number of iterations doubles: a killed server loses fewer than it
//          has written. Energy and time are means of the iterations that took the median time, by 10 %: a counter's
//          refresh falls into an iteration, so that one takes from its neighbor, and only the mean is right, also of
//          the few iterations that some jobs run at the highest clock. The energy is the sum over ranks, the times are
//          those of the slowest rank. The standard deviation is that of the mean, by how the iterations differ.
// Errors:  none; values that are not positive numbers are left out.
// Cost:    O(values); take() O(1), amortized over the reports.
// Threads: plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "server/jobs/event.h"

namespace perseus::savings {

class IterationEnergyMeter {
 public:
  static constexpr std::int64_t kFewestThatTell = 3;  ///< iterations; fewer do not say how much they differ

  void report(std::int64_t version, int shape, int rank, const std::vector<Joules>& energies,
              const std::vector<Seconds>& times);
  std::optional<jobs::EnergyMeasured> take(std::int64_t version, int shape, int ranks);
  /// Drops all earlier versions except 0.
  void forget_before(std::int64_t version);

 private:
  struct OfRank {
    std::int64_t iterations = 0;
    std::vector<double> energies_j, times_s;  ///< the last ones
  };
  struct OfVersion {
    std::map<int, OfRank> ranks;
    std::int64_t wanted = 1;  ///< iterations of every rank, for the next take()
    int ready = 0;            ///< ranks that have so many
  };
  std::map<std::pair<std::int64_t, int>, OfVersion> versions_;  ///< by version and shape
};

}  // namespace perseus::savings
