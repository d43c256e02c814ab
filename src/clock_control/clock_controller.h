// Setting a GPU's clock from a training process without ever waiting for it: the training process's side.
//
// Problem: setting a clock takes milliseconds and privileges; a training step has neither to spare. So a helper process
// per GPU, perseus-clockd, does it: set() writes the newest target into a mailbox in shared memory and wakes the
// helper; older targets that were not applied yet are forgotten. The helper holds a lease on the clock: when this
// process exits, crashes or is killed, or the helper itself dies, the GPU's clock goes back to the driver's choice; a
// GPU that was never set is never touched. Input: a device selector (device/gpu.h) and where the helper's program is;
// then clocks. Output: an acknowledgement with the clock that the device has really taken, and latencies. Errors:
// start() says why there is no control; after that nothing fails: once the device refuses or the helper is gone,
// state() says so, and set() does no more than note the newest clock. With RestartLimits a helper that is gone, could
// not start or was refused is started again, when the one before has ended and given the clock back; the new one begins
// with the newest clock. Then start() fails only where there is no memory. Cost: set() of the same clock a few ns, of
// another a few dozen, and one write to an eventfd (a microsecond) if the helper sleeps; one thread that sleeps; 8 KB.
// Threads: set() one at a time, any thread, also a signal handler; the rest any thread; in a forked child all of it
// does nothing. Source: paper section 5 (Frequency controller); docs/clock_control.md, docs/decisions/0016.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "clock_control/restart_pause.h"
#include "device/gpu.h"

namespace perseus {

struct ClockControllerOptions {
  std::string device;        ///< selector
  std::string helper;        ///< path of perseus-clockd; empty: $PERSEUS_CLOCKD, beside this library (or in its
                             ///< ../bin), beside the program, then $PATH
  double start_limit_s = 5;  ///< for the helper to open the device
  RestartLimits restart;
};

enum class ControlState {
  working,
  refused,  ///< the device takes no clock (permission); what had been set is given back
  gone      ///< no helper, or no GPU
};

struct ControlStatistics {
  std::int64_t requested = 0;   ///< calls of set() that changed the target
  std::int64_t applied = 0;     ///< that the device was told
  std::int64_t superseded = 0;  ///< that a newer one overtook
  std::int64_t failed = 0;
  bool pending = false;      ///< the newest is not done with yet
  std::int64_t helpers = 0;  ///< that got to work, one after the other
  std::int64_t woken = 0;    ///< requests that came when the helper slept and did not expect them: these cost more
  Megahertz last_set;        ///< that the device was told and took; 0: it has none of ours
  double request_to_device_p50_s = 0, request_to_device_p99_s = 0;  ///< until the device's call has returned
  double device_call_p50_s = 0, device_call_p99_s = 0;              ///< how long the device's call took
  /// Until the device ran at the new clock, seen now and then by looking every 0.25 ms: so much earlier than it is
  /// needed a clock should be asked for. 0: never seen yet.
  double request_to_clock_p50_s = 0, request_to_clock_p99_s = 0;
  std::int64_t clock_changes_watched = 0;
  double helper_cpu_s = 0;  ///< processor time of the helper's processes so far
};

class ClockController {
 public:
  static DeviceResult<std::unique_ptr<ClockController>> start(ClockControllerOptions options);
  ClockController(const ClockController&) = delete;
  ClockController& operator=(const ClockController&) = delete;
  ~ClockController();  ///< stop()
  /// Unlocks what was locked and waits for the helper, at most a second. Later calls of set() are harmless, also one
  /// that runs on another thread at this moment.
  void stop() noexcept;

  /// The device is to run at `clock`: now, or as soon as it can. 0: back to the driver's own choice.
  [[gnu::hot]] void set(Megahertz clock) noexcept;

  /// A training step begins. Steps resemble each other, so from the second on the helper expects their requests.
  void begin_step() noexcept;

  [[nodiscard]] ControlState state() const noexcept;
  [[nodiscard]] std::string why() const;  ///< of refused or gone; empty if it works
  /// Which helper is at work: the first, second, ...; 0: none is.
  [[nodiscard]] std::int64_t working_helper() const noexcept;
  [[nodiscard]] ControlStatistics statistics() const;
  [[nodiscard]] int helper_pid() const noexcept;      ///< of the process that sets the clock; 0: none
  [[nodiscard]] int supervisor_pid() const noexcept;  ///< of the one that watches it

 private:
  struct State;
  explicit ClockController(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perseus
