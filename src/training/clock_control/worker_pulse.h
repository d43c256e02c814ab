// The supervisor's view of the worker: when it last looked for requests, and since when a device call has been
// running.
//
// Both processes share it; the training process does not, so it cannot forge it.
//
// Output:  times of monotonic_ns().
// Cost:    two stores per device call, one per look.
// Threads: the worker writes, the supervisor reads.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "training/clock_control/mailbox.h"
#include "training/clock_control/watchdog.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

struct WorkerPulse {
  std::atomic<std::int64_t> looked_ns{0};
  std::atomic<std::int64_t> call_began_ns{0};  ///< 0: no device call is running
  std::atomic<std::int64_t> calls{0};          ///< number of completed calls
  int bell = -1;                               ///< eventfd: a clock is being locked while the supervisor sleeps
  std::atomic<std::uint32_t> supervisor_sleeps{0};
};

/// Marks the begin and end of every call that the worker makes.
class PulsedGpu final : public device::ForwardingGpu {
 public:
  PulsedGpu(std::unique_ptr<device::Gpu> gpu, WorkerPulse& pulse)
      : device::ForwardingGpu(std::move(gpu)), pulse_(pulse) {}
  device::DeviceResult<std::vector<Megahertz>> supported_clocks() override {
    return during([this] { return device::ForwardingGpu::supported_clocks(); });
  }
  device::DeviceResult<Megahertz> clock() override {
    return during([this] { return device::ForwardingGpu::clock(); });
  }
  device::DeviceResult<device::ClockEvents> clock_events() override {
    return during([this] { return device::ForwardingGpu::clock_events(); });
  }
  device::DeviceStatus lock_clock(Megahertz clock) override {
    if (pulse_.supervisor_sleeps.exchange(0) != 0) {
      const std::uint64_t one = 1;
      (void)!::write(pulse_.bell, &one, sizeof one);
    }
    return during([this, clock] { return device::ForwardingGpu::lock_clock(clock); }, longer());
  }
  device::DeviceStatus unlock_clock() override {
    return during([this] { return device::ForwardingGpu::unlock_clock(); }, longer());
  }

 private:
  static constexpr std::int64_t kLonger_ns = Watchdog::kPatience - Watchdog::kCallLimit;
  [[nodiscard]] std::int64_t longer() const { return identity().by_daemon ? kLonger_ns : 0; }
  template <class Call>
  auto during(Call call, std::int64_t longer_ns = 0) -> decltype(call()) {
    pulse_.call_began_ns.store(monotonic_ns() + longer_ns, std::memory_order_relaxed);
    auto result = call();
    pulse_.looked_ns.store(monotonic_ns(), std::memory_order_relaxed);
    pulse_.calls.fetch_add(1, std::memory_order_relaxed);
    pulse_.call_began_ns.store(0, std::memory_order_relaxed);
    return result;
  }
  WorkerPulse& pulse_;
};

}  // namespace perseus::clock_control
