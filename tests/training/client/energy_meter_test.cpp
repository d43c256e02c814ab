// Energies against the truth of a simulated GPU on a hand-turned clock: a counter with a period of 100 ms,
// computations of 20 to 100 ms, and a clock per computation as in online profiling.
#include "training/client/energy_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "simulation/simulated_gpu/simulated_driver.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "training/client/counter_edges.h"
#include "training/device/gpu.h"

namespace perseus::client {
namespace {

class ScratchFile {
 public:
  ScratchFile() {
    std::string name = (std::filesystem::temp_directory_path() / "perseus_client_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/gpu"; }

 private:
  std::string folder_;
};

/// Like an A100: time falls and power rises with the clock; the power curve bends where the voltage begins to rise.
simulated_gpu::SimulatedGpuSpec a100(double forward_s, double refresh_s) {
  simulated_gpu::SimulatedGpuSpec spec;
  for (int mhz = 1410; mhz >= 900; mhz -= 15) spec.clocks.emplace_back(mhz);
  simulated_gpu::SimulatedComputation forward{"forward", {}, {}}, backward{"backward", {}, {}};
  for (const Megahertz clock : spec.clocks) {
    const double f = clock.value() / 1410.0;
    const double rise = std::max(0.0, f - 0.75);
    forward.time.emplace_back(forward_s * (0.25 + 0.75 / f));
    forward.power.emplace_back(90 + 130 * f + 700 * rise * rise);
    backward.time.emplace_back(2 * forward_s * (0.3 + 0.7 / f));
    backward.power.emplace_back(95 + 150 * f + 900 * rise * rise);
    spec.blocking_power.emplace_back(60 + 30 * f);
  }
  spec.computations = {forward, backward};
  spec.counter_refresh = Seconds(refresh_s);
  spec.power_limit = Watts(10000);
  return spec;
}

/// A rank that trains on a simulated GPU and the client's meter, on one hand-turned clock.
class Rank {
 public:
  Rank(const simulated_gpu::SimulatedGpuSpec& spec, unsigned seed) : spec_(spec), dice_(seed) {
    const auto now = [this] { return now_; };
    gpu_ = std::move(simulated_gpu::SimulatedGpu::create(file_.path(), spec, now).value());
    driver_ = std::move(simulated_gpu::SimulatedDriver::attach(file_.path(), now).value());
    meter_.emplace(2, spec.clocks.back().value(), spec.clocks.front().value());
    go_to(2.5);  // the meter learns the counter's period while the job starts
  }

  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(dice_); }

  /// Advances time and makes each due reading, a little late.
  void go_to(double until) {
    while (edges_.next_read_s() + lateness_ <= until) {
      now_ = std::max(now_, edges_.next_read_s() + lateness_);
      const double before = now_;
      const double energy = std::floor(driver_->counter().value() * 1000) / 1000;  // mJ
      now_ += 20e-6;
      if (const auto edge = edges_.read(before, now_, energy)) meter_->edge(*edge);
      lateness_ = late_ ? between(5e-5, between(0, 1) < 0.1 ? 5e-3 : 3e-4) : 1e-5;
      ++readings_;
    }
    now_ = std::max(now_, until);
  }

  /// A pending clock switch changes the computation's end, so the loop computes the end again after each step.
  void compute(int computation, int clock) {
    const Megahertz target = spec_.clocks[static_cast<std::size_t>(clock)];
    driver_->lock_clocks(target, target);
    meter_->clock(now_, target.value(), latency_of(clock));
    const double from = now_;
    gpu_->begin(computation);
    for (double left = gpu_->remaining().value(); left > 0; left = gpu_->remaining().value())
      go_to(now_ + std::max(left, 1e-9));
    gpu_->wait();
    spans_.push_back({computation, from, now_});
  }

  double latency_of(int clock) const {
    return spec_.switch_latency.empty() ? 0 : spec_.switch_latency[static_cast<std::size_t>(clock)].value();
  }

  /// The steady state of 1F1B: forward, wait, backward, wait; each at its own clock.
  void iterate(int microbatches, int lowest_clock) {
    const double begin = now_;
    const double energy = gpu_->energy().value();
    spans_.clear();
    for (int i = 0; i < microbatches; ++i) {
      for (const int computation : {0, 1}) {
        compute(computation, static_cast<int>(between(0, lowest_clock + 0.999)));
        go_to(now_ + between(0.0005, between(0, 1) < 0.2 ? 0.04 : 0.002));
      }
    }
    meter_->step(static_cast<std::int64_t>(truth_.size()), begin, now_, spans_);
    truth_.push_back(gpu_->energy().value() - energy);
    go_to(now_ + 1e-4);
    for (MeteredStep& step : meter_->take()) metered_.push_back(std::move(step));
  }

  /// The largest and the mean error of the model's energies over all clocks used, in %.
  std::pair<double, double> errors(int lowest_clock) const {
    double worst = 0, sum = 0;
    int count = 0;
    for (int computation = 0; computation < 2; ++computation) {
      for (int clock = 0; clock <= lowest_clock; ++clock) {
        const double truth =
            spec_.computations[static_cast<std::size_t>(computation)].power[static_cast<std::size_t>(clock)].value();
        const double found =
            meter_->model().power(computation, spec_.clocks[static_cast<std::size_t>(clock)].value()).power_w;
        const double error = 100 * std::abs(found / truth - 1);
        worst = std::max(worst, error);
        sum += error;
        ++count;
      }
    }
    return {worst, sum / count};
  }

  ScratchFile file_;
  simulated_gpu::SimulatedGpuSpec spec_;
  std::mt19937 dice_;
  double now_ = 0;
  bool late_ = true;
  double lateness_ = 1e-5;
  int readings_ = 0;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::unique_ptr<simulated_gpu::SimulatedDriver> driver_;
  CounterEdges edges_;
  std::optional<EnergyMeter> meter_;
  std::vector<WorkSpan> spans_;
  std::vector<double> truth_;
  std::vector<MeteredStep> metered_;
};

TEST(CounterEdges, FindsThePeriodAndTheMomentsWithFewReadings) {
  Rank rank(a100(0.03, 0.1), 1);
  EXPECT_NEAR(rank.edges_.period_s(), 0.1, 0.0005);
  const int before = rank.readings_;
  const double from = rank.now_;
  rank.iterate(100, 20);
  EXPECT_LT((rank.readings_ - before) / (rank.now_ - from), 50);
}

TEST(Energy, PerComputationWithinOnePercentOfTheTruth) {
  for (const double forward_s : {0.02, 0.05}) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      Rank rank(a100(forward_s, 0.1), seed);
      for (int i = 0; i < 20; ++i) rank.iterate(24, 25);
      const auto [worst, mean] = rank.errors(25);
      EXPECT_LT(mean, 1) << forward_s << " s, seed " << seed;
      EXPECT_LT(worst, 3) << forward_s << " s, seed " << seed;
      RecordProperty("worst_pct", std::to_string(worst));
      std::printf("%g s: worst %.3f %%, mean %.3f %%\n", forward_s, worst, mean);
    }
  }
}

TEST(Energy, OfIterationsWithinHalfAPercent) {
  Rank rank(a100(0.02, 0.1), 5);
  for (int i = 0; i < 20; ++i) rank.iterate(12, 25);
  ASSERT_GE(rank.metered_.size(), 15U);
  double worst = 0;
  for (const MeteredStep& step : rank.metered_) {
    if (step.tag < 3) continue;  // the model has few observations
    const double truth = rank.truth_[static_cast<std::size_t>(step.tag)];
    worst = std::max(worst, std::abs(step.energy_j / truth - 1));
  }
  std::printf("iteration: worst %.3f %%\n", worst * 100);
  EXPECT_LT(worst, 0.005);
}

TEST(Energy, OfTheLastIterationWithoutWaitingForTheNextOneToEnd) {
  double worst = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Rank rank(a100(0.03, 0.1), seed);
    for (int i = 0; i < 6; ++i) rank.iterate(12, 25);
    rank.metered_.clear();
    for (int i = 0; i < 4; ++i) rank.compute(i % 2, 3);  // the next step has begun and has not ended
    const auto steps = rank.meter_->take();
    ASSERT_EQ(steps.size(), 1U) << seed;
    ASSERT_EQ(steps[0].tag, 5);
    worst = std::max(worst, std::abs(steps[0].energy_j / rank.truth_[5] - 1));
    EXPECT_TRUE(rank.meter_->take().empty());
    rank.iterate(12, 25);
    for (const MeteredStep& step : rank.metered_) EXPECT_EQ(step.tag, 6);  // no step is reported twice
  }
  std::printf("last iteration: worst %.3f %%\n", worst * 100);
  EXPECT_LT(worst, 0.01);
}

TEST(Energy, ADriverLoadedAgainSpoilsOneIterationOnly) {
  EnergyMeter meter(2, 900, 1410);
  double energy = 1000;
  for (int i = 0; i < 40; ++i) {
    meter.edge({0.1 * i, 1e-4, i == 20 ? energy = 0 : energy += 20});
    if (i % 4 == 3) meter.step(i / 4, 0.1 * i - 0.35, 0.1 * i - 0.01, {{0, 0.1 * i - 0.3, 0.1 * i - 0.1}});
  }
  int unknown = 0;
  for (const MeteredStep& step : meter.take()) {
    if (step.energy_j < 0) {
      ++unknown;
    } else {
      EXPECT_NEAR(step.energy_j, 68, 5);
    }
  }
  EXPECT_LE(unknown, 3);  // the first begins before the first edge
  EXPECT_EQ(meter.intervals_rejected(), 1);
}

TEST(Energy, ComputationsBetweenMissedReadingsTeachNothing) {
  EnergyMeter meter(2, 900, 1410);
  const auto edge_at = [&](double at_s) { meter.edge({at_s, 1e-4, 200 * at_s}); };
  const auto step_at = [&](double from_s) { meter.step(1, from_s, from_s + 0.4, {{0, from_s, from_s + 0.4}}); };
  for (int i = 0; i < 20; ++i) edge_at(0.1 * i);
  step_at(0);
  step_at(0.4);
  meter.take();
  for (int i = 0; i < 5; ++i) step_at(2 + 0.4 * i);
  EXPECT_EQ(meter.flush().back().energy_j, -1);  // no edge for too long
  const int before = meter.model().intervals();
  edge_at(4.5);
  edge_at(4.6);
  step_at(4.55);
  meter.take();
  EXPECT_EQ(meter.model().intervals(), before + 1);  // from 4.5 to 4.6
}

}  // namespace
}  // namespace perseus::client
