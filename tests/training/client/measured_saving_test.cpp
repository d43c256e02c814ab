// From the steps of ranks to the saving that the server shows, against the counters of their simulated GPUs.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/savings/followed_iterations.h"
#include "server/savings/iteration_energy_meter.h"
#include "server/savings/job_savings.h"
#include "tests/training/client/hand_turned_rank.h"

namespace perseus::client {
namespace {

/// How a framework's step lies in an iteration of the pipeline.
struct Shape {
  const char* name;
  double before_s, after_s;  ///< waits within the step before the first computation, and after the step, of rank 0
  double reads_late_s = 0;   ///< mean delay of the threads that read the counters; then there may be no figure
};

/// A pipeline of two ranks. The plan runs rank 1 slower, which waits less.
class Pipeline {
 public:
  explicit Pipeline(const Shape& shape, unsigned seed = 7) : shape_(shape), random_(seed) {
    for (HandTurnedRank* const rank : ranks_) {
      rank->reads_late = [this] { return shape_.reads_late_s * std::exponential_distribution<double>()(random_); };
    }
  }
  /// Energies of both GPUs during these iterations, J an iteration.
  double iterate(int count, std::int64_t version) {
    const double from_j = drawn_j();
    for (int i = 0; i < count; ++i) {
      step(ranks_[0], version, 1410, shape_.before_s, shape_.after_s);
      const double less_s = version == 0 ? 0 : 0.012;
      step(ranks_[1], version, version == 0 ? 1410 : 1050, shape_.after_s - less_s / 2, shape_.before_s - less_s / 2);
    }
    return (drawn_j() - from_j) / count;
  }
  void wait_for_counters() {
    for (HandTurnedRank* const rank : ranks_) {
      rank->wait(0.3);
      rank->collect();
    }
  }
  const std::vector<MeasuredIteration>& measured(std::size_t rank) const { return ranks_[rank]->measured; }

 private:
  double drawn_j() { return a_.gpu->energy().value() + b_.gpu->energy().value(); }
  static void step(HandTurnedRank* rank, std::int64_t version, int clock_mhz, double before_s, double after_s) {
    rank->begin_step();
    rank->step().plan_version = version;
    rank->step().at_maximum = version == 0;
    rank->ask(clock_mhz);
    rank->wait(before_s);
    for (const model::Instruction instruction : {model::Instruction::forward, model::Instruction::backward}) {
      for (int i = 0; i < 3; ++i) rank->compute(instruction);
    }
    rank->end_step();
    rank->wait(after_s);
  }

  Shape shape_;
  std::mt19937 random_;
  HandTurnedRank a_{two_computations(0.03, 0.1)}, b_{two_computations(0.03, 0.1)};
  std::array<HandTurnedRank*, 2> ranks_{&a_, &b_};
};

class MeasuredSaving : public ::testing::TestWithParam<Shape> {};

TEST_P(MeasuredSaving, IsThatOfTheGpusCountersFromTheFirstIterationsOn) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Pipeline pipeline(GetParam(), seed);
    pipeline.iterate(2, 0);  // warm up, as the server assumes
    const double highest_j = pipeline.iterate(4, 0), planned_j = pipeline.iterate(60, 7);
    pipeline.wait_for_counters();
    savings::IterationEnergyMeter meter;
    savings::FollowedIterations followed;
    for (int rank = 0; rank < 2; ++rank) {
      for (const MeasuredIteration& one : pipeline.measured(static_cast<std::size_t>(rank))) {
        const std::vector<Joules> energy{Joules(one.energy_j)};
        if (one.iteration >= 2) meter.report(one.plan_version, 0, rank, energy, {Seconds(one.time_s)});
        followed.report({rank, 2, true, one.plan_version, one.iteration, 1, energy, false});
      }
    }
    jobs::Job job;
    if (const auto measured = meter.take(0, 0, 2)) job.measured_highest[0] = *measured;
    if (const auto measured = meter.take(7, 0, 2)) job.measured_plan[0] = *measured;
    const auto highest = savings::highest_measured(job, 0);
    EXPECT_TRUE(highest || GetParam().reads_late_s > 0) << "seed " << seed;
    if (!highest) continue;
    double saved_j = 0, all_j = 0;
    for (const auto& whole : followed.whole()) {
      if (whole.energy_j < 0) continue;
      saved_j += highest->energy_j - whole.energy_j;
      all_j += highest->energy_j;
    }
    EXPECT_NEAR(100 * saved_j / all_j, 100 * (1 - planned_j / highest_j), 0.3) << "seed " << seed;
  }
}

/// Mean delays of a host that learns late that a computation has ended, s: while the highest clock runs, and the plan.
struct Hosts {
  const char* name;
  double highest_s, plan_s;
  bool measurable;  ///< both are so much alike that there must be a figure
};

class BusyHosts : public ::testing::TestWithParam<Hosts> {
 protected:
  /// Mean energy of iterations of 4 microbatches, J.
  double iterate(HandTurnedRank& rank, int count, int clock_mhz, double late_s, std::int64_t version) {
    const double from_j = rank.gpu->energy().value();
    const auto late = [&] { return late_s * std::exponential_distribution<double>()(random_); };
    for (int i = 0; i < count; ++i) {
      rank.begin_step();
      rank.step().plan_version = version;
      rank.step().at_maximum = version == 0;
      rank.ask(clock_mhz);
      for (const model::Instruction instruction : {model::Instruction::forward, model::Instruction::backward}) {
        for (int m = 0; m < 4; ++m) {
          rank.wait(late());
          rank.compute(instruction);
        }
      }
      rank.end_step();
    }
    return (rank.gpu->energy().value() - from_j) / count;
  }
  double saving_pct(const jobs::Job& job, double plan_j) {
    return 100 * (1 - plan_j / savings::highest_measured(job, 0)->energy_j);
  }

 private:
  std::mt19937 random_{7};
};

TEST_P(BusyHosts, AreNoSavingOfAPlan) {
  for (const int planned_mhz : {1410, 1200}) {
    HandTurnedRank calm{two_computations(0.016 / 3, 0.1)}, rank{two_computations(0.016 / 3, 0.1)};
    const double calm_j = iterate(calm, 20, 1410, 0, 0);
    iterate(calm, 1, planned_mhz, 0, 7);
    const double truth_pct = 100 * (1 - iterate(calm, 20, planned_mhz, 0, 7) / calm_j);
    iterate(rank, 61, 1410, GetParam().highest_s, 0);
    iterate(rank, 130, planned_mhz, GetParam().plan_s, 7);
    rank.wait(0.3);
    rank.collect();
    savings::IterationEnergyMeter meter;
    for (const MeasuredIteration& one : rank.measured) {
      if (one.iteration < 2) continue;
      meter.report(one.plan_version, 0, 0, {Joules(one.energy_j)}, {Seconds(one.time_s)});
    }
    jobs::Job job;
    job.measured_highest[0] = *meter.take(0, 0, 1);
    job.measured_plan[0] = *meter.take(7, 0, 1);
    job.measured_plan[0].waiting_w = 80;
    const bool known = savings::highest_measured(job, 0).has_value();
    EXPECT_TRUE(known || !GetParam().measurable) << planned_mhz;
    if (!known) continue;
    EXPECT_NEAR(saving_pct(job, job.measured_plan[0].energy_j), truth_pct, 0.3) << planned_mhz;
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, BusyHosts,
                         ::testing::Values(Hosts{"Idle", 0, 0, true}, Hosts{"AlikeBusy", 5e-4, 5e-4, true},
                                           Hosts{"ALittleBusierBefore", 1.5e-4, 1e-4, true},
                                           Hosts{"ALittleBusierUnderThePlan", 1e-4, 1.5e-4, true},
                                           Hosts{"BusierBefore", 1.4e-3, 1e-4, false},
                                           Hosts{"BusierUnderThePlan", 1e-4, 1.4e-3, false}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

INSTANTIATE_TEST_SUITE_P(Steps, MeasuredSaving,
                         ::testing::Values(Shape{"EndBeforeTheWait", 0.001, 0.08}, Shape{"ContainTheWait", 0.08, 0.001},
                                           Shape{"WaitOnBothSides", 0.04, 0.05}, Shape{"ReadLate", 0.001, 0.08, 0.005},
                                           Shape{"ReadVeryLate", 0.001, 0.08, 0.02}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace perseus::client
