// Days of a cluster, by the seed. PERSEUS_SIMULATED_DAYS: how many in all; PERSEUS_SIMULATION_SEED: only that cluster,
// with all that happens.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "tests/server/simulation/simulated_cluster.h"

namespace perseus::testing {
namespace {

constexpr double kDaysOfACluster = 10;

const SimulatedCluster* running = nullptr;
std::uint64_t running_seed = 0;

/// A failed check of the server ends the process: what led to it comes first.
extern "C" void print_trace(int /*signal*/) {
  if (running == nullptr) return;
  std::fprintf(stderr, "seed %llu:\n%s", static_cast<unsigned long long>(running_seed),
               running->trace().text().c_str());
}

double from_environment(const char* name, double otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtod(text, nullptr);
}

struct Lived {
  std::string broken;
  std::uint64_t hash = 0;
  std::size_t lines = 0;
  SimulatedCluster::Figures figures;
};

Lived live(std::uint64_t seed) {
  SimulatedCluster cluster(seed);
  running = &cluster;
  running_seed = seed;
  const auto before = std::signal(SIGABRT, print_trace);
  Lived lived;
  try {
    cluster.live(kDaysOfACluster);
  } catch (const BrokenPromise& promise) {
    lived.broken =
        fmt::format("seed {}: {}\nWhat happened last:\n{}Again: PERSEUS_SIMULATION_SEED={} perseus_simulation_tests",
                    seed, promise.what(), cluster.trace().text(), seed);
  }
  (void)std::signal(SIGABRT, before);
  running = nullptr;
  lived.hash = cluster.trace().hash();
  lived.lines = cluster.trace().count();
  lived.figures = cluster.figures();
  return lived;
}

TEST(Simulation, KeepsEveryPromise) {
  if (const char* seed = std::getenv("PERSEUS_SIMULATION_SEED")) {
    Trace::prints = true;
    const Lived lived = live(std::strtoull(seed, nullptr, 10));
    Trace::prints = false;
    ASSERT_EQ(lived.broken, "");
    return;
  }
  const double days = from_environment("PERSEUS_SIMULATED_DAYS", 1000);
  const auto first = static_cast<std::uint64_t>(from_environment("PERSEUS_FIRST_SEED", 1));
  SimulatedCluster::Figures sum;
  double lived_days = 0;
  std::size_t lines = 0, steps = 0;
  for (std::uint64_t seed = first; lived_days < days; ++seed) {
    const Lived lived = live(seed);
    ASSERT_EQ(lived.broken, "");
    lived_days += kDaysOfACluster;
    lines += lived.lines;
    steps += lived.figures.steps;
    sum.actions += lived.figures.actions;
    sum.kills += lived.figures.kills;
    sum.jobs += lived.figures.jobs;
    sum.slept_s += lived.figures.slept_s;
  }
  fmt::print("{:.0f} days: {} steps, {} actions, {} restarts, {} jobs, {:.0f} days asleep, {} lines; {:.1f} s of CPU\n",
             lived_days, steps, sum.actions, sum.kills, sum.jobs, sum.slept_s / 86'400, lines,
             static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
}

TEST(Simulation, ASeedReplays) {
  std::uint64_t before = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const Lived once = live(seed), again = live(seed);
    EXPECT_EQ(once.hash, again.hash) << seed;
    EXPECT_EQ(once.lines, again.lines) << seed;
    EXPECT_NE(once.hash, std::exchange(before, once.hash)) << seed;
  }
}

}  // namespace
}  // namespace perseus::testing
