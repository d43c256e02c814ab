// Sets a GPU's clock from a training process, at the device's moment, without ever waiting: the training process's
// side.
//
// Setting a clock takes milliseconds and privileges; a training step has neither to spare. So a helper process per
// GPU, perseus-clockd, sets it. The training process queues changes in shared memory, each with the position of the
// device from which on it holds; the device itself writes its position there (see training/client/device_progress.h),
// so the host may run ahead without bound. The helper holds a lease on the clock: when this process exits, crashes or
// is killed, or the helper itself dies, the GPU's clock goes back to the driver's choice; a GPU that was never set is
// never touched. Where the node has a daemon (clock_daemon.h), the daemon runs the helper outside of this container:
// the helper gives the clock back also when the container ends all at once. When this process exits, it gives the
// clocks back before its end, within two seconds.
//
// Input:   a device selector (training/device/gpu.h) and the path of the helper's program; then clocks.
// Output:  the clocks that the device has really accepted and when; latencies.
// Errors:  start() returns why there is no control; after that nothing fails: once the device refuses or the helper
//          is gone, state() reports it, and changes are only queued. With RestartLimits a helper that is gone, could
//          not start or was refused is started again, after the previous one has ended and given the clock back; the
//          new one begins with the newest due clock. Then start() fails only if memory runs out.
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
#include <span>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "training/clock_control/applied_clocks.h"
#include "training/clock_control/clock_limit.h"
#include "training/clock_control/device_clock.h"
#include "training/clock_control/restart_pause.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

struct ClockControllerOptions {
  std::string device;  ///< selector
  std::string helper;  ///< path of perseus-clockd; empty: $PERSEUS_CLOCKD, beside this library (or in its
                       ///< ../bin), beside the program, then $PATH
  /// Time for the helper to open the device, and at least for one that restores the clock in place of dead helpers.
  double start_limit_s = 5;
  RestartLimits restart;
  std::string daemon = {};       ///< socket of the node's daemon; empty: see daemon_socket() (daemon_protocol.h)
  Megahertz ceiling = {};        ///< an administrator's limit, respected and restored; 0: $PERSEUS_CEILING_MHZ, else
                                 ///< none
  device::GpuIdentity gpu = {};  ///< the device, to name the holder of its clock if the helper has no time to; may be
                                 ///< empty
};

enum class ControlState {
  working,
  refused,  ///< the device accepts no clock (permission); a clock set before was given back
  gone      ///< no helper, or no GPU
};

struct ControlStatistics {
  std::int64_t requested = 0;   ///< calls of set() that changed the target
  std::int64_t applied = 0;     ///< calls of the device
  std::int64_t superseded = 0;  ///< requests that a newer one overtook
  std::int64_t failed = 0;
  bool pending = false;      ///< the newest request is not completed yet
  std::int64_t helpers = 0;  ///< number of helpers that started to work, one after the other
  std::int64_t woken = 0;    ///< requests that came unexpectedly while the helper slept: these cost more
  Megahertz last_set;        ///< last clock that the device accepted; 0: it has none of ours
  double request_to_device_p50_s = 0, request_to_device_p99_s = 0;  ///< until the device's call has returned
  double device_call_p50_s = 0, device_call_p99_s = 0;              ///< duration of the device's call
  /// From the begin of the device's call until the device ran at the new clock, sampled occasionally by reading the
  /// clock every 0.25 ms. 0: never sampled yet.
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
  /// Unlocks a locked clock and waits for the helper, at most a second, or four while its clock stays locked; if both
  /// of its processes are dead, or could not unlock, for another one that restores the clock, at most the longer of 10
  /// s and start_limit_s; see left_locked(). Later calls of set() are harmless, also concurrent ones on another thread.
  void stop() noexcept;

  /// Sets the device to `clock` as soon as possible; changes that still wait for the device are dropped. 0: back to
  /// the driver's own choice.
  [[gnu::hot]] void set(Megahertz clock) noexcept;
  /// Sets the device to `clock` once it has reached `position`. Positions grow by one per boundary and may wrap.
  [[gnu::hot]] void set_from(std::uint32_t position, Megahertz clock) noexcept;

  /// A power budget holds: `ceiling` is the highest clock from `plan_until_ns` (monotonic_ns()) on, and wherever the
  /// clock would be the driver's choice. The helper enforces it also while this process is stopped, and leaves it on
  /// the GPU if it ends before this process does. 0: no budget. This function, extend_plan() and cap() one at a time.
  void set_budget(Megahertz ceiling, std::int64_t plan_until_ns) noexcept;
  /// Lower ceilings of the budget from later times on, which the helper enforces alone too; replaces the last ones.
  void set_falls(std::span<const CeilingFall> falls) noexcept;
  /// The plan is valid until then.
  void extend_plan(std::int64_t plan_until_ns) noexcept;
  /// Bounds every clock at once, the present one and queued ones, until lift_cap() with this ticket (never 0) or the
  /// end of the budget. Only while a budget holds.
  std::uint32_t cap(Megahertz clock) noexcept;
  /// The caller has replaced the changes that the cap was for. Does nothing if another cap() came since. Any thread.
  void lift_cap(std::uint32_t ticket) noexcept;
  [[nodiscard]] bool capped() const noexcept;

  /// Shared memory that holds the device's position: where the device writes it.
  struct SharedMemory {
    void* begin = nullptr;
    std::size_t bytes = 0;
    std::atomic<std::uint32_t>* position = nullptr;
    /// A CPU reports that the device has reached that position: any thread, never blocks.
    std::function<void(std::uint32_t)> reached;
  };
  /// The memory stays mapped for the life of the process, and `reached` callable, since a device and its driver may
  /// write at any later time.
  [[nodiscard]] SharedMemory share_memory();
  /// Only `reached` writes the position and wakes the helper: the helper need not poll it.
  void position_comes_from_cpu(bool does) noexcept;
  [[nodiscard]] std::uint32_t position() const noexcept;

  /// Calls `use` for each clock that the device has accepted since `read`, and advances `read` (begin with 0).
  void applied_since(std::uint64_t& read, const std::function<void(const AppliedClock&)>& use) const;

  /// A training step begins. Steps resemble each other, so from the second on the helper expects their requests.
  void begin_step() noexcept;

  [[nodiscard]] ControlState state() const noexcept;
  [[nodiscard]] std::string why() const;  ///< reason of refused or gone; empty if it works
  /// What is to be said of a clock that every helper so far has left locked, and how it is given back; empty: none is.
  [[nodiscard]] std::string left_locked() const;
  /// Number of the working helper: the first, second, ...; 0: none works.
  [[nodiscard]] std::int64_t working_helper() const noexcept;
  [[nodiscard]] ControlStatistics statistics() const;
  /// How the device follows its clocks.
  [[nodiscard]] DeviceClock device_clock() const;
  [[nodiscard]] int helper_pid() const noexcept;      ///< of the process that sets the clock; 0: none
  [[nodiscard]] int supervisor_pid() const noexcept;  ///< of the one that watches it

 private:
  struct State;
  explicit ClockController(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perseus::clock_control
