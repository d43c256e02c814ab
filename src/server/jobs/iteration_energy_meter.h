// What an iteration of the whole job takes, from the energies and times that its ranks report.
//
// Input:   reports of ranks: which plan version the iterations followed (0: the highest clock), their energies and
//          times.
// Output:  take(): the median iteration of a version once all ranks have reported it, and again whenever twice as
//          many iterations are known. At the highest clock, with fewer than 8 iterations: the least one, since the
//          first ones of a training were measured up to 0.9 % too high, and savings are credited against it. Energies
//          are sums over ranks; the time is that of the slowest rank.
// Errors:  none; values that are not positive numbers are left out.
// Cost:    O(values); take() O(1), amortized over as many reports as there are ranks.
// Threads: plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/jobs/event.h"

namespace perseus::jobs {

class IterationEnergyMeter {
 public:
  void report(std::int64_t version, int rank, const std::vector<Joules>& energies, const std::vector<Seconds>& times);
  std::optional<EnergyMeasured> take(std::int64_t version, int ranks);
  /// Versions before it, but 0, are forgotten.
  void forget_before(std::int64_t version);

 private:
  struct OfRank {
    std::int64_t iterations = 0;
    std::vector<double> energies_j, times_s;  ///< the last ones
  };
  struct OfVersion {
    std::map<int, OfRank> ranks;
    std::int64_t reports = 0;  ///< since take() last looked at all ranks
    std::int64_t taken = 0;    ///< iterations of the rank with the fewest, when it was taken last
  };
  std::map<std::int64_t, OfVersion> versions_;
};

}  // namespace perseus::jobs
