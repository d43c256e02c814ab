// A worker's report to its launcher about one iteration.
//
// Input:   a RankReport, or its bytes (same program on the same machine: plain copies).
// Output:  the other of the two.
// Errors:  internal for bytes that are no report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulation/replay/iteration.h"

namespace perseus::replay {

/// Figures of the Perseus client in this worker; all 0 without a client.
struct ClientFigures {
  std::int32_t running = 0;  ///< 1: there is one
  std::int32_t state = 0;    ///< perseus_state
  std::int32_t controls_clock = 0, server_reached = 0;
  std::int64_t helper_restarts = 0;
  std::int64_t iteration = 0, plan_version = 0, plan_from_iteration = 0;
  std::int64_t clocks_requested = 0, clocks_applied = 0, clocks_failed = 0, server_failures = 0;
  std::int64_t samples = 0, samples_rejected = 0;
  double planned_iteration_time_s = 0;
  double blocking_power_w = 0;
  double request_to_device_p50_s = 0, request_to_device_p99_s = 0;
  double begin_end_ns = 0, set_speed_ns = 0;
  double client_cpu_s = 0;
};

struct RankReport {
  std::int32_t worker = 0;
  std::int64_t iteration = 0;
  double start_s = 0;    ///< device time; the same for all workers
  double end_s = 0;      ///< of the whole job: when the last worker was done
  double own_end_s = 0;  ///< of this worker's last computation
  double energy_j = 0;   ///< of this GPU from start to end, exactly
  double late_s = 0;     ///< how late this process woke up, summed over the iteration; not in any time above
  double lost_s = 0;     ///< of that: the uncompensated part, which is in the times above
  ClientFigures client;
  std::vector<ComputationStamp> stamps;  ///< in the rank's order
  std::string client_log;                ///< lines that the client logged since the last report
};

std::string bytes_of(const RankReport& report);
Result<RankReport> report_from(std::string_view bytes);

}  // namespace perseus::replay
