// Runs one training iteration of one rank, in real or virtual time.
//
// Time is the devices' time: a computation starts when the previous one of its rank was done on the device, or when
// the maker of its last message was, whichever is later, even if the process learns of it late: the process passes
// the start time to the device (as a GPU with work in its queue does not wait for its host).
//
// Problem: a worker process runs its computations in schedule order, each as soon as the rank is free and its inputs
//          are there, and operating systems wake sleepers late, by 0.1 ms or by 10. If that lateness went into the
//          iteration, it would add up along the critical path.
// Input:   a rank's script, links to its peers, a device.
// Output:  when each computation ran, in device time.
// Errors:  those of the links; a payload that is not what the peer must send is internal.
// Cost:    two messages a computation.
// Source:  paper section 5 (integration); docs/demo.md.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "simulation/replay/peer_links.h"
#include "simulation/replay/rank_script.h"

namespace perseus::replay {

/// A computation as measured. Plain data: reports contain it.
struct ComputationStamp {
  std::int32_t computation = 0;
  std::int32_t clock_mhz = 0;  ///< the device's clock when it was done
  double start_s = 0;
  double end_s = 0;
  double energy_j = 0;
};

class ReplayDevice {
 public:
  ReplayDevice() = default;
  ReplayDevice(const ReplayDevice&) = delete;
  ReplayDevice& operator=(const ReplayDevice&) = delete;
  virtual ~ReplayDevice() = default;
  virtual double now_s() = 0;
  /// Runs a computation of that type that starts at `start_s`, later or a little earlier than now; calls
  /// `started(when)` as soon as it has started, and returns when it is done. The result's `start_s` and `end_s` are
  /// its actual times.
  virtual ComputationStamp run(int type, double start_s, const std::function<void(double)>& started) = 0;
  /// Energy since the object's creation, up to a moment since which it has been waiting.
  virtual double energy_j(double until_s) = 0;

  /// Total lateness of this process at starts of computations and at observing their ends.
  struct Lateness {
    double made_up_s = 0;  ///< compensated: not in any stamp
    double lost_s = 0;     ///< beyond compensation: in the stamps
  };
  [[nodiscard]] virtual Lateness lateness() const { return {}; }
};

/// Calls of the training framework around its work: the Perseus client, or nothing.
class TrainingHooks {
 public:
  TrainingHooks() = default;
  TrainingHooks(const TrainingHooks&) = delete;
  TrainingHooks& operator=(const TrainingHooks&) = delete;
  virtual ~TrainingHooks() = default;
  virtual void set_speed(const ScriptStep& /*step*/) {}
  virtual void begin(const ScriptStep& /*step*/, double /*device_time_s*/) {}
  virtual void end(const ScriptStep& /*step*/, double /*device_time_s*/) {}
};

struct IterationPlace {
  std::int64_t iteration = 0;
  int first_worker = 0;  ///< worker of rank 0 of this pipeline: rank r is worker first_worker + r
  std::size_t payload_bytes = 4096;
};

/// The iteration starts at `start_s`. Calls set_speed as soon as the previous computation is done.
Result<std::vector<ComputationStamp>> run_iteration(const RankScript& script, const IterationPlace& place,
                                                    double start_s, PeerLinks& links, ReplayDevice& device,
                                                    TrainingHooks& hooks);

}  // namespace perseus::replay
