// A profile completed from its highest clock alone, against the published profile that it was taken from: how often the
// error bars cover the truth, of times, of energies, and of the saving of the plan. docs/advise.md has the figures.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <iostream>

#include "io/formats/profile_csv.h"
#include "planning/model/build_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/realize.h"
#include "server/profiling/modeled_profile.h"
#include "tests/support/shared_data.h"

namespace perseus::profiling {
namespace {

struct Published {
  const char *name, *path;
  double blocking_power_w;
};
// No blocking power was published for the last four; any value will do.
constexpr std::array kPublished{
    Published{"GPT-3 175B, A100 SXM", "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", 83.64},
    Published{"GPT-3 175B, A40", "emulation/stage_profile/gpt3-175b+a40_bf16.csv", 70.38},
    Published{"Bloom 3B, A40", "measured/A40_bloom-3b_pp8.profile.csv", 60},
    Published{"GPT-3 XL, A100 PCIe", "measured/A100_gpt3-xl_pp4.profile.csv", 60},
    Published{"BERT huge, A100 PCIe", "measured/A100_bert-huge-uncased_pp4.profile.csv", 60},
    Published{"Wide-ResNet101, A40", "measured/A40_wide-resnet101_8_pp8.profile.csv", 60}};

model::Profile published(const std::filesystem::path& data, const Published& one) {
  Result<model::Profile> profile = formats::read_profile_csv((data / one.path).string());
  EXPECT_TRUE(profile) << profile.error().message;
  return *std::move(profile);
}

model::Profile at_highest_clock(model::Profile profile) {
  for (model::ProfileEntry& entry : profile.entries) entry.measurements.resize(1);
  return profile;
}

std::vector<Megahertz> every_15_mhz() {
  std::vector<Megahertz> clocks;
  for (int mhz = 1980; mhz >= 210; mhz -= 15) clocks.emplace_back(mhz);
  return clocks;
}

struct Coverage {
  int values = 0, within_1 = 0, within_2 = 0;
  void add(double error, double stddev) {
    ++values;
    within_1 += std::abs(error) <= stddev ? 1 : 0;
    within_2 += std::abs(error) <= 2 * stddev ? 1 : 0;
  }
  [[nodiscard]] double share_1() const { return static_cast<double>(within_1) / values; }
  [[nodiscard]] double share_2() const { return static_cast<double>(within_2) / values; }
};

/// Of the plan that is no slower than everything at the highest clock.
double saving_of(const model::Profile& profile, double blocking_power_w) {
  const model::Schedule schedule = model::make_schedule("1f1b", {profile.num_stages(), 8, 1}).value();
  const model::PipelineCosts costs{Watts(blocking_power_w), model::TransferLatency(), false};
  const model::ComputationDag dag = model::build_dag(profile, schedule, costs).value();
  planner::PlannerOptions options;
  options.effort = planner::Effort::low;
  const model::Frontier frontier = planner::plan_exact(dag, options);
  const auto highest = planner::Realizer(dag).realize(model::all_maximum_clock(dag));
  const model::FrontierPoint& chosen =
      frontier.points[model::slowest_within(frontier, model::time_without_straggler(frontier, highest.time))];
  return 1 - chosen.energy / (highest.effective_energy + dag.total_blocking_power() * highest.time);
}

struct Saving {
  double share = 0, stddev = 0;
};

/// Each draw planned by itself, as perseus advise does.
Saving saving_over(const std::vector<model::Profile>& draws, double blocking_power_w) {
  const auto count = static_cast<double>(draws.size());
  double mean = 0, square = 0;
  for (const model::Profile& draw : draws) {
    const double share = saving_of(draw, blocking_power_w);
    mean += share / count;
    square += share * share / count;
  }
  return {mean, std::sqrt(square - mean * mean)};
}

TEST(ModeledProfile, BarsCoverPublishedTimesAndEnergies) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  Coverage times, energies;
  for (const Published& one : kPublished) {
    const model::Profile truth = published(data, one);
    const ModeledProfile modeled = model_clocks(at_highest_clock(truth), every_15_mhz()).value();
    Coverage own_times, own_energies;
    for (const model::ProfileEntry& entry : truth.entries) {
      const model::ProfileEntry& claimed = *modeled.profile.find(entry.stage, entry.instruction);
      for (const model::Measurement& m : entry.measurements) {
        for (const model::Measurement& bar : claimed.measurements) {
          if (bar.clock != m.clock || bar.clock == entry.measurements.front().clock) continue;
          for (Coverage* const c : {&times, &own_times}) c->add((m.time - bar.time).value(), bar.time_stddev.value());
          for (Coverage* const c : {&energies, &own_energies})
            c->add((m.energy - bar.energy).value(), bar.energy_stddev.value());
        }
      }
    }
    std::cout << one.name << ": " << own_times.values << " values; times " << own_times.share_1() << " within one, "
              << own_times.share_2() << " within two standard deviations, energies " << own_energies.share_1() << ", "
              << own_energies.share_2() << "\n";
  }
  std::cout << "all: times " << times.share_1() << ", " << times.share_2() << ", energies " << energies.share_1()
            << ", " << energies.share_2() << "\n";
  for (const Coverage& c : {times, energies}) {
    EXPECT_GT(c.values, 1000);
    EXPECT_GT(c.share_1(), 0.6);
    EXPECT_GT(c.share_2(), 0.95);
  }
}

TEST(ModeledProfile, TheBarOfTheSavingCoversThatOfThePublishedProfile) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  Coverage coverage;
  for (const Published& one : kPublished) {
    const model::Profile truth = published(data, one);
    const ModeledProfile modeled = model_clocks(at_highest_clock(truth), every_15_mhz()).value();
    const double real = saving_of(truth, one.blocking_power_w);
    const Saving claimed = saving_over(modeled.draws, one.blocking_power_w);
    std::cout << one.name << ": modeled " << 100 * claimed.share << " +- " << 100 * claimed.stddev << " %, published "
              << 100 * real << " %\n";
    coverage.add(claimed.share - real, claimed.stddev);
    EXPECT_GT(claimed.stddev, 0.01) << one.name << ": the bar is wide";
  }
  EXPECT_EQ(coverage.within_2, coverage.values);
}

TEST(ModeledProfile, GoesThroughTheMeasurementAndIsTheMeanOfItsDraws) {
  model::Profile one;
  one.accelerators = {1};
  one.entries = {{0, "forward", {{Megahertz(1005), Seconds(0.02), Joules(6), {}, {}, 1}}},
                 {0, "backward", {{Megahertz(1005), Seconds(0.04), Joules(12), {}, {}, 1}}},
                 {0, "load", {{Megahertz(0), Seconds(0.001), Joules(0.1), {}, {}, 1}}}};
  const ModeledProfile modeled = model_clocks(one, every_15_mhz()).value();
  const auto& forward = modeled.profile.entries[0].measurements;
  ASSERT_EQ(forward.size(), 34U);
  EXPECT_EQ(forward.front().time, Seconds(0.02));
  EXPECT_EQ(forward.back().clock, Megahertz(510));
  EXPECT_EQ(modeled.profile.entries[2].measurements.size(), 1U) << "it has no clock";
  EXPECT_TRUE(modeled.profile.validate());
  EXPECT_EQ(modeled.draws.size(), static_cast<std::size_t>(kModelDraws));
  for (std::size_t i = 1; i < forward.size(); ++i) {
    Seconds sum;
    for (const model::Profile& draw : modeled.draws) {
      EXPECT_TRUE(draw.validate());
      sum += draw.entries[0].measurements[i].time;
    }
    EXPECT_NEAR(sum.value() / kModelDraws, forward[i].time.value(), 1e-12);
    EXPECT_GE(forward[i].time, forward[i - 1].time);
    EXPECT_GE(forward[i].time_stddev, forward[i - 1].time_stddev) << "less is known further from the measurement";
  }
}

TEST(ModeledProfile, RefusesAProfileOfSeveralClocks) {
  model::Profile two;
  two.accelerators = {1};
  two.entries = {{0,
                  "forward",
                  {{Megahertz(1005), Seconds(0.02), Joules(6), {}, {}, 1},
                   {Megahertz(990), Seconds(0.02), Joules(6), {}, {}, 1}}}};
  EXPECT_EQ(model_clocks(two, every_15_mhz()).error().message,
            "stage 0, forward: 2 clocks; only a profile of one clock is completed by a model");
  two.entries[0].measurements.resize(1);
  EXPECT_EQ(model_clocks(two, {Megahertz(1410)}).error().message,
            "stage 0, forward: measured at 1005 MHz; the GPU has no clock between that and its half");
}

}  // namespace
}  // namespace perseus::profiling
