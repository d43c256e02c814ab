// A rank that trains on a simulated GPU and the client's iteration meter, on one hand-turned clock.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulation/simulated_gpu/simulated_gpu.h"
#include "tests/training/client/scripted_server.h"
#include "training/client/iteration_meter.h"
#include "training/device/backends.h"

namespace perseus::client {

class HandTurnedRank {
 public:
  explicit HandTurnedRank(const simulated_gpu::SimulatedGpuSpec& spec, bool with_device = true) : spec_(spec) {
    std::string name = (std::filesystem::temp_directory_path() / "perseus_client_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    const auto clock = [this] { return now_s; };
    gpu = std::move(simulated_gpu::SimulatedGpu::create(folder_ + "/gpu", spec, clock).value());
    device = std::move(device::open_simulated(folder_ + "/gpu", clock).value());
    std::vector<int> clocks;
    for (const Megahertz mhz : spec.clocks) clocks.push_back(mhz.value());
    clocks_ = clocks;
    meter = std::make_unique<IterationMeter>(with_device ? device.get() : nullptr, true, clocks, 1, complaints, clock);
  }
  /// Call before the first computation.
  template <class Wrap>
  void replace_device(const Wrap& wrap) {
    device = wrap(std::move(device));
    meter = std::make_unique<IterationMeter>(device.get(), true, clocks_, 1, complaints, [this] { return now_s; });
  }
  HandTurnedRank(const HandTurnedRank&) = delete;
  HandTurnedRank& operator=(const HandTurnedRank&) = delete;
  ~HandTurnedRank() { std::filesystem::remove_all(folder_); }

  /// Advances time; the meter runs whenever it is due.
  void go_to(double until_s) {
    while (true) {
      if (!look_at_s_) look_at_s_ = std::max(now_s, meter->next_look_s()) + (reads_late ? reads_late() : 0);
      if (*look_at_s_ > until_s) break;
      now_s = std::max(now_s, *std::exchange(look_at_s_, std::nullopt));
      meter->look(now_s);
      now_s += 2e-5;
    }
    now_s = std::max(now_s, until_s);
  }

  void begin_step(int window = -1, int iterations = 0) {
    step_ = {};
    step_.iteration = iteration_++;
    step_.window = window;
    step_.window_iterations = iterations;
    step_.followed = true;
    step_.begin_ns = step_.begin_mark = ns();
  }
  Step& step() { return step_; }
  /// Requests the clock; the GPU sets it one latency later.
  void ask(int clock_mhz) {
    if (clock_mhz == asked_) return;
    asked_ = clock_mhz;
    ASSERT_TRUE(device->lock_clock(Megahertz(clock_mhz)));
    meter->clock_set(now_s, clock_mhz);
  }
  /// Returns the duration.
  double compute(model::Instruction instruction) {
    const double from_s = now_s;
    RecordedComputation computation;
    computation.begin = ns();
    computation.clock = asked_;
    computation.instruction = instruction;
    if (const double late_s = lateness ? lateness() : 0; late_s > 0) {
      go_to(from_s + late_s);
      computation.begin =
          static_cast<std::uint64_t>(std::llround(1e9 * gpu->begin_in_the_past(static_cast<int>(instruction), from_s)));
    } else {
      gpu->begin(static_cast<int>(instruction));
    }
    for (double left = gpu->remaining().value(); left > 0; left = gpu->remaining().value())
      go_to(now_s + std::max(left, 1e-9));
    gpu->wait();
    computation.end = ns();
    step_.computations.push_back(computation);
    step_.count = step_.computations.size();
    return now_s - from_s;
  }
  void wait(double seconds) { go_to(now_s + seconds); }
  void end_step() {
    step_.end_ns = step_.end_mark = ns();
    meter->take(step_, now_s);
    collect();
  }
  /// Iterations completed since the last call.
  void collect() {
    for (MeasuredIteration& one : meter->measured(now_s, false)) measured.push_back(std::move(one));
  }

  double now_s = 1;
  /// Delay until the simulation notices that a computation can begin, s.
  std::function<double()> lateness;
  /// Delay of the thread that reads the device, s.
  std::function<double()> reads_late;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu;
  std::unique_ptr<device::Gpu> device;
  Said said;
  Complaints complaints{said.log(), no_pause()};
  std::unique_ptr<IterationMeter> meter;
  std::vector<MeasuredIteration> measured;

 private:
  [[nodiscard]] std::uint64_t ns() const { return static_cast<std::uint64_t>(std::llround(now_s * 1e9)); }

  simulated_gpu::SimulatedGpuSpec spec_;
  std::string folder_;
  std::vector<int> clocks_;
  Step step_;
  std::int64_t iteration_ = 0;
  int asked_ = 0;
  std::optional<double> look_at_s_;  ///< the next reading
};

/// Forward and backward times in proportion to 1 / clock; waiting draws 80 W.
inline simulated_gpu::SimulatedGpuSpec two_computations(double forward_s, double refresh_s) {
  simulated_gpu::SimulatedGpuSpec spec;
  simulated_gpu::SimulatedComputation forward{"forward", {}, {}}, backward{"backward", {}, {}};
  for (const int mhz : {1410, 1200, 1050, 900}) {
    const double slower = 1410.0 / mhz;
    spec.clocks.emplace_back(mhz);
    forward.time.emplace_back(forward_s * slower);
    forward.power.emplace_back(300 / slower);
    backward.time.emplace_back(2 * forward_s * (0.3 + 0.7 * slower));
    backward.power.emplace_back(340 / slower);
    spec.blocking_power.emplace_back(80);
  }
  spec.computations = {forward, backward};
  spec.counter_refresh = Seconds(refresh_s);
  return spec;
}

}  // namespace perseus::client
