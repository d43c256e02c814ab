// Sets a GPU's clock from a training process, at the device's moment, without ever waiting: the training process's
// side.
//
// Setting a clock takes milliseconds and privileges; a training step has neither to spare. So a helper process per GPU,
// perseus-clockd, does it. The training process queues changes in shared memory, each with the position of the device
// from which on it holds; the device itself writes its position there (see training/client/device_progress.h), so the
// host may run ahead without bound. The helper holds a lease on the clock: when this process exits, crashes or is
// killed, or the helper itself dies, the GPU's clock goes back to the driver's choice; a GPU that was never set is
// never touched.
//
// Input:   a device selector (training/device/gpu.h) and where the helper's program is; then clocks.
// Output:  the clocks that the device has really taken and when; latencies.
//          Where the node has a daemon (clock_daemon.h), the helper is the daemon's, outside of this container: it
//          gives back when the container ends all at once. When this process exits, clocks are given back before its
//          end, within two seconds.
// Errors:  start() says why there is no control; after that nothing fails: once the device refuses or the helper is
//          gone, state() says so, and changes are only queued. With RestartLimits a helper that is gone, could not
//          start or was refused is started again, when the one before has ended and given the clock back; the new one
//          begins with the newest due clock. Then start() fails only where there is no memory.
// Cost:    queueing the newest clock again a few ns, another one a few dozen, and one write to an eventfd (a
//          microsecond) if the helper sleeps; one thread that sleeps; 180 KB.
// Threads: set, set_from and begin_step one at a time, any thread, also a signal handler; the rest any thread; in a
//          forked child all of it does nothing.
// Source:  paper section 5 (Frequency controller); docs/clock_control.md, docs/decisions/0016 and 0030.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "training/clock_control/applied_clocks.h"
#include "training/clock_control/restart_pause.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

struct ClockControllerOptions {
  std::string device;        ///< selector
  std::string helper;        ///< path of perseus-clockd; empty: $PERSEUS_CLOCKD, beside this library (or in its
                             ///< ../bin), beside the program, then $PATH
  double start_limit_s = 5;  ///< for the helper to open the device
  RestartLimits restart;
  std::string daemon = {};       ///< socket of the node's daemon; empty: see daemon_socket() (daemon_protocol.h)
  Megahertz ceiling = {};        ///< an administrator's limit, kept and restored; 0: $PERSEUS_CEILING_MHZ, else none
  device::GpuIdentity gpu = {};  ///< the device, to say who holds its clock if the helper has no time to; may be empty
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
  /// From the begin of the device's call until the device ran at the new clock, seen now and then by looking every
  /// 0.25 ms. 0: never seen yet.
  double call_to_clock_p50_s = 0, call_to_clock_p99_s = 0;
  std::int64_t clock_changes_watched = 0;
  std::int64_t merged = 0;  ///< changes that found the queue full
  double helper_cpu_s = 0;  ///< processor time of the helper's processes so far
};

class ClockController {
 public:
  static device::DeviceResult<std::unique_ptr<ClockController>> start(ClockControllerOptions options);
  ClockController(const ClockController&) = delete;
  ClockController& operator=(const ClockController&) = delete;
  ~ClockController();  ///< stop()
  /// Unlocks what was locked and waits for the helper, at most a second. Later calls of set() are harmless, also one
  /// that runs on another thread at this moment.
  void stop() noexcept;

  /// The device is to run at `clock` as soon as it can; changes that still wait for the device are dropped.
  /// 0: back to the driver's own choice.
  [[gnu::hot]] void set(Megahertz clock) noexcept;
  /// The device is to run at `clock` once it has come to `position`. Positions grow by one per boundary and may wrap.
  [[gnu::hot]] void set_from(std::uint32_t position, Megahertz clock) noexcept;

  /// Shared memory that holds the device's position: where the device writes it.
  struct SharedMemory {
    void* begin = nullptr;
    std::size_t bytes = 0;
    std::atomic<std::uint32_t>* position = nullptr;
    /// The device has come to that position, says a CPU: any thread, never blocks.
    std::function<void(std::uint32_t)> reached;
  };
  /// It stays mapped for the life of the process, and `reached` callable, since a device and its driver may write later
  /// than anybody here knows.
  [[nodiscard]] SharedMemory share_memory();
  /// The position is written by `reached` alone, which wakes the helper: it need not look for it.
  void position_comes_from_cpu(bool does) noexcept;
  [[nodiscard]] std::uint32_t position() const noexcept;

  /// Calls `use` for each clock that the device has taken since `read`, which it moves on (begin with 0).
  void applied_since(std::uint64_t& read, const std::function<void(const AppliedClock&)>& use) const;

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

}  // namespace perseus::clock_control
