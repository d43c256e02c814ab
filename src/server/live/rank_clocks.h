// The clocks of a job's ranks as their processes last reported them, and what has gone wrong with them.
//
// Input:   the figures of reports, each counted by one process of the rank since it started.
// Output:  each rank's last figures; sums over the ranks; what each report adds to the counters of the server.
// Errors:  none.
// Cost:    O(1) per report; 56 bytes per rank.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <vector>

#include "server/jobs/job.h"
#include "server/jobs/requests.h"

namespace perseus::live {

struct ClockCounts {
  std::int64_t failed = 0, late = 0, throttled_iterations = 0;
  ClockCounts& operator+=(const ClockCounts& other);
  bool operator==(const ClockCounts&) const = default;
};

class RankClocks {
 public:
  struct Reported {
    jobs::ClockFigures figures;
    std::int64_t epoch = 0;  ///< of the process; 0: not known
    double at_s = 0;         ///< 0: never
  };
  /// Returns by how much the counts have grown since the rank's last report. The first report of a rank adds nothing:
  /// another server, or this one before its restart, may have counted it. That of a later process adds all it has.
  ClockCounts report(int rank, const jobs::ClockFigures& figures, std::int64_t epoch, double now_s);
  /// Null: the process that holds the rank has not reported to this server.
  [[nodiscard]] const Reported* of(int rank, const jobs::Rank& held) const;
  /// Sums of the last figures of all ranks.
  [[nodiscard]] const ClockCounts& sums() const { return sums_; }

 private:
  std::vector<Reported> ranks_;  ///< by rank; beyond the end: never
  ClockCounts sums_;
};

}  // namespace perseus::live
