// Blocking power on a host that runs ahead of its GPU, on one hand-turned clock: the truth must lie within the
// interval that the client reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <random>

#include "tests/training/client/hand_turned_rank.h"
#include "training/client/cuda_events.h"
#include "training/device/gpu.h"

namespace perseus::client {
namespace {

/// A CUDA device whose stream advances when the test calls go_on(). Its other streams are idle: an event recorded
/// there is done at once.
class HandTurnedCuda {
 public:
  static std::shared_ptr<const CudaDriver> driver(double* now_s) {
    now_s_ = now_s;
    visible_late_s = 0;
    stream_.clear();
    auto driver = std::make_shared<CudaDriver>();
    driver->event_create = [](void** event, unsigned) { return *event = &events_.emplace_back(), 0; };
    driver->event_record = [](void* event, void* stream) {
      auto& one = *static_cast<Event*>(event);
      one.at_s = stream == nullptr ? 1e300 : *now_s_;
      if (stream == nullptr) stream_.push_back(&one);
      return 0;
    };
    driver->event_query = [](void* event) {
      return static_cast<Event*>(event)->at_s + visible_late_s <= *now_s_ ? CudaDriver::kSuccess
                                                                          : CudaDriver::kNotReady;
    };
    driver->event_elapsed = [](float* ms, void* from, void* to) {
      *ms = static_cast<float>(1e3 * (static_cast<Event*>(to)->at_s - static_cast<Event*>(from)->at_s));
      return 0;
    };
    driver->event_destroy = [](void*) { return 0; };
    driver->context_current = [](void** context) { return *context = &events_, 0; };
    driver->context_set = [](void*) { return 0; };
    driver->stream_create = [](void** stream, unsigned) { return *stream = &stream_, 0; };
    return driver;
  }
  /// Advances the stream to its next event.
  static void pass() {
    stream_.front()->at_s = *now_s_;
    stream_.pop_front();
  }
  static inline double visible_late_s = 0;

 private:
  struct Event {
    double at_s = 1e300;
  };
  static inline double* now_s_ = nullptr;
  static inline std::deque<Event> events_;
  static inline std::deque<Event*> stream_;
};

/// Enqueues each step two steps ahead of the running one.
class HostAhead : public ::testing::Test {
 protected:
  void SetUp() override { open(HandTurnedCuda::driver(&rank.now_s)); }
  void open(std::shared_ptr<const CudaDriver> driver) {
    events_ = std::move(CudaEvents::open(std::move(driver), nullptr, 256, [this] { return rank.now_s; }).value());
  }
  void enqueue() {
    Step step;
    step.iteration = iteration_++;
    step.followed = true;
    step.begin_ns = host_ns();
    step.begin_mark = events_->mark();
    for (int i = 0; i < 8; ++i) {
      RecordedComputation& c = step.computations.emplace_back();
      c.instruction = i % 2 == 0 ? model::Instruction::forward : model::Instruction::backward;
      c.begin = events_->mark();
      c.end = events_->mark();
      c.end_position = ++position_;
    }
    step.count = step.computations.size();
    step.end_mark = events_->mark();
    step.end_ns = host_ns();
    steps_.push_back(std::move(step));
  }
  void run_oldest() {
    const Step& step = steps_.front();
    HandTurnedCuda::pass();
    began_s_ = rank.now_s;
    for (std::size_t i = 0; i < step.count; ++i) {
      go_on(0.002 + std::uniform_real_distribution<double>(0, i % 4 == 3 ? 0.05 : 0.01)(dice_));  // waits for its input
      HandTurnedCuda::pass();
      rank.gpu->begin(static_cast<int>(step.computations[i].instruction));
      go_on(rank.gpu->remaining().value() + 1e-9);
      rank.gpu->wait();
      HandTurnedCuda::pass();
      if (positions_seen_late_s >= 0) {
        events_->reached_by(step.computations[i].end_position,
                            host_ns() + static_cast<std::uint64_t>(1e9 * positions_seen_late_s));
      }
    }
    go_on(0.02);
    HandTurnedCuda::pass();
  }
  void go_on(double seconds) {
    rank.wait(seconds);
    events_->probe();
  }
  /// The client's estimate of when the oldest step began, minus the truth.
  double take_oldest() {
    const Step& step = steps_.front();
    rank.wait(HandTurnedCuda::visible_late_s);
    EXPECT_TRUE(events_->finished(step));
    const Step timed = events_->on_host(step);
    rank.meter->take(timed, rank.now_s);
    rank.collect();
    events_->release(step);
    steps_.pop_front();
    return static_cast<double>(timed.begin_ns) * 1e-9 - began_s_;
  }
  void train(int iterations) {
    while (steps_.size() < 2) enqueue();
    for (int i = 0; i < iterations; ++i) {
      enqueue();
      run_oldest();
      shift_s = take_oldest();
    }
  }
  void expect_the_truth() {
    const PowerEstimate blocking = rank.meter->facts().blocking;
    ASSERT_GT(blocking.power_w, 0) << "not known";
    EXPECT_LE(std::abs(blocking.power_w - 80), 2 * blocking.stddev_w) << blocking.power_w << " W";
    EXPECT_LT(blocking.stddev_w, 2);
  }

  HandTurnedRank rank{two_computations(0.0165, 0.1)};
  double shift_s = 0;  ///< of the last step
  double positions_seen_late_s = -1;

 private:
  [[nodiscard]] std::uint64_t host_ns() const { return static_cast<std::uint64_t>(std::llround(1e9 * rank.now_s)); }

  std::unique_ptr<CudaEvents> events_;
  std::deque<Step> steps_;
  std::int64_t iteration_ = 0;
  std::uint32_t position_ = 0;
  double began_s_ = 0;
  std::mt19937 dice_{3};
};

TEST_F(HostAhead, BlockingPowerIsRightBeforeAnyClockChanges) {
  train(60);
  EXPECT_NEAR(shift_s, 0, 1e-4);
  expect_the_truth();
}

TEST_F(HostAhead, PositionsAndEventsThatBecomeVisibleLateShiftNothing) {
  HandTurnedCuda::visible_late_s = positions_seen_late_s = 0.005;
  train(60);
  EXPECT_NEAR(shift_s, 0, 1e-4);
  expect_the_truth();
}

/// Without a second stream and without a position, the client cannot know how far the GPU is behind.
class HostAheadWithoutProbes : public HostAhead {
 protected:
  void SetUp() override {
    auto driver = std::make_shared<CudaDriver>(*HandTurnedCuda::driver(&rank.now_s));
    driver->stream_create = nullptr;
    open(std::move(driver));
  }
};

TEST_F(HostAheadWithoutProbes, PowerIsNotLearnedWhereTheDevicesTimesCannotBePlaced) {
  train(60);
  EXPECT_GT(std::abs(shift_s), 0.1);
  EXPECT_EQ(rank.meter->facts().blocking.power_w, 0);
}

/// A counter with uneven refresh intervals and noisy values.
class UnevenCounter final : public device::ForwardingGpu {
 public:
  UnevenCounter(std::unique_ptr<device::Gpu> gpu, simulated_gpu::SimulatedGpu& truth, const double& now_s,
                double jitter_s, double noise_j, unsigned seed)
      : device::ForwardingGpu(std::move(gpu)),
        truth_(truth),
        now_s_(now_s),
        jitter_s_(jitter_s),
        noise_j_(noise_j),
        dice_(seed) {}
  device::DeviceResult<Joules> energy() override {
    for (; next_s_ <= now_s_; next_s_ += 0.1 + std::uniform_real_distribution<double>(-jitter_s_, jitter_s_)(dice_)) {
      shown_ = truth_.energy(next_s_) + Joules(std::normal_distribution<double>(0, noise_j_)(dice_));
    }
    return shown_;
  }

 private:
  simulated_gpu::SimulatedGpu& truth_;
  const double& now_s_;
  double jitter_s_, noise_j_;
  std::mt19937 dice_;
  double next_s_ = 1;
  Joules shown_;
};

/// The error divided by its reported standard deviation, root mean square over ten jobs.
double error_in_deviations(double late_s, double jitter_s, double noise_j) {
  constexpr unsigned kJobs = 10;
  double squares = 0;
  for (unsigned seed = 1; seed <= kJobs; ++seed) {
    HandTurnedRank rank(two_computations(0.0165, 0.1));
    rank.replace_device([&](std::unique_ptr<device::Gpu> gpu) {
      return std::make_unique<UnevenCounter>(std::move(gpu), *rank.gpu, rank.now_s, jitter_s, noise_j, seed);
    });
    std::mt19937 dice(seed);
    rank.lateness = [&] { return late_s == 0 ? 0 : std::exponential_distribution<double>(1 / late_s)(dice); };
    for (int i = 0; i < 60; ++i) {
      rank.begin_step();
      rank.ask(1410);
      for (int k = 0; k < 8; ++k) {
        rank.compute(model::Instruction::forward);
        rank.wait(0.002 + 0.004 * (k % 3));
        rank.compute(model::Instruction::backward);
        rank.wait(k == 3 ? 0.04 : 0.001);
      }
      rank.wait(0.05);
      rank.end_step();
    }
    const PowerEstimate blocking = rank.meter->facts().blocking;
    squares += std::pow((blocking.power_w - 80) / blocking.stddev_w, 2) / kJobs;
  }
  return std::sqrt(squares);
}

TEST(BlockingPower, ErrorBarsAreAsLargeAsErrors) {
  EXPECT_LT(error_in_deviations(0, 0, 0.3), 1.5) << "noise";
  EXPECT_LT(error_in_deviations(0, 0.005, 0.02), 1.5) << "an uneven counter";
  EXPECT_LT(error_in_deviations(0.001, 0, 0.1), 1.5) << "computations whose begin the simulation hears of late";
}

}  // namespace
}  // namespace perseus::client
