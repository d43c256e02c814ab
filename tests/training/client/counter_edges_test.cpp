// Edges of an energy counter, on a hand-turned clock: idle and busy machines, counters of every kind.
#include "training/client/counter_edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace perseus::client {
namespace {

/// A counter at 300 W that refreshes at the moments of `refresh`; its reader wakes up late.
struct Watch {
  explicit Watch(std::function<double(int)> moment_of, double lateness_s = 5e-5, double lasts_s = 20)
      : refresh(std::move(moment_of)), mean_lateness_s(lateness_s), until_s(lasts_s) {}
  std::function<double(int)> refresh;  ///< the moment of the n-th refresh, s
  double mean_lateness_s, until_s;

  struct Found {
    double error_s = 0, stddev_s = 0;
  };
  CounterEdges edges;
  std::vector<Found> found;
  int readings = 0;
  double first_edge_s = -1, learned_s = -1;

  void run() {
    std::mt19937 dice(7);
    std::exponential_distribution<double> lateness(1 / mean_lateness_s);
    int n = 0;
    double now = 0.003;
    while (now < until_s) {
      const double before = now;
      while (refresh(n + 1) <= now) ++n;
      const double energy = 300 * refresh(n);
      now += 2e-5;
      if (const auto edge = edges.read(before, now, energy)) {
        found.push_back({std::abs(edge->at_s - refresh(n)), edge->stddev_s});
        if (first_edge_s < 0) first_edge_s = now;
      }
      if (learned_s < 0 && !edges.learning()) learned_s = now;
      if (learned_s >= 0) ++readings;
      now = std::max(now, edges.next_read_s()) + lateness(dice);
    }
  }
  double readings_a_second() const { return readings / (until_s - learned_s); }
  double edges_a_second() const { return static_cast<double>(found.size()) / until_s; }
  /// The share of edges within three times their own standard deviation.
  double honest() const {
    const auto within = std::ranges::count_if(found, [](const Found& f) { return f.error_s <= 3 * f.stddev_s; });
    return static_cast<double>(within) / static_cast<double>(found.size());
  }
  double median_error_s() {
    std::ranges::sort(found, {}, &Found::error_s);
    return found[found.size() / 2].error_s;
  }
};

std::function<double(int)> every(double period_s) {
  return [period_s](int n) { return period_s * n; };
}

TEST(CounterEdges, AreFoundFromFewReadingsForEveryPeriod) {
  for (const double period_s : {0.01, 0.02, 0.033, 0.05, 0.0601, 0.1, 0.4}) {
    Watch watch(every(period_s));
    watch.run();
    EXPECT_NEAR(watch.edges.period_s(), period_s, 0.001 * period_s) << period_s;
    EXPECT_LT(watch.learned_s, std::max(8.0 * period_s, 0.6)) << period_s;
    EXPECT_LE(watch.readings_a_second(), 52) << period_s;
    EXPECT_GT(watch.edges_a_second(), std::min(10.0, 0.8 / period_s)) << period_s;
    EXPECT_GT(watch.honest(), 0.99) << period_s;
    EXPECT_LT(watch.median_error_s(), 1e-4) << period_s;
  }
}

TEST(CounterEdges, AreFoundOnABusyMachineToo) {
  for (const double period_s : {0.02, 0.05, 0.1}) {
    for (const double lateness_s : {0.001, 0.004, 0.01}) {
      Watch watch(every(period_s), lateness_s, 60);
      watch.run();
      EXPECT_NEAR(watch.edges.period_s(), period_s, 0.01 * period_s) << period_s << " " << lateness_s;
      EXPECT_GT(watch.edges_a_second(), 3) << period_s << " " << lateness_s;
      EXPECT_GT(watch.honest(), 0.95) << period_s << " " << lateness_s;
      EXPECT_LT(watch.median_error_s(), 0.05 * period_s) << period_s << " " << lateness_s;
    }
  }
}

TEST(CounterEdges, ACounterThatMovesAllTheTimeNeedsNoPeriod) {
  Watch watch(every(2e-4), 0.0005);
  watch.run();
  EXPECT_EQ(watch.edges.period_s(), 0);
  EXPECT_GT(watch.edges_a_second(), 10);
  EXPECT_LT(watch.median_error_s(), 1e-3);
}

TEST(CounterEdges, APeriodThatChangesIsLearnedAgain) {
  Watch watch([](int n) { return n < 100 ? 0.1 * n : 10 + 0.033 * (n - 100); }, 5e-5, 40);
  watch.run();
  EXPECT_NEAR(watch.edges.period_s(), 0.033, 0.0003);
}

TEST(CounterEdges, IrregularRefreshesGetHonestEdges) {
  std::mt19937 dice(3);
  std::vector<double> moments(1000);
  for (std::size_t n = 1; n < moments.size(); ++n) {
    moments[n] = 0.1 * static_cast<double>(n) + std::uniform_real_distribution<double>(-0.004, 0.004)(dice);
  }
  Watch watch([&](int n) { return moments[static_cast<std::size_t>(n)]; }, 5e-5, 60);
  watch.run();
  EXPECT_NEAR(watch.edges.period_s(), 0.1, 0.001);
  EXPECT_GT(watch.edges_a_second(), 5);
  EXPECT_GT(watch.honest(), 0.95);
}

/// Readings within each second.
struct Readings {
  std::vector<int> per_second;
  CounterEdges edges;
  double rested_s = 0;

  /// `energy_at`: what a reading shows; `call_s`: time that it takes.
  void run(
      double until_s, const std::function<double(double)>& energy_at,
      const std::function<double(double)>& call_s = [](double) { return 2e-5; }) {
    double now = 0.003;
    for (per_second.assign(static_cast<std::size_t>(until_s), 0); now < until_s;) {
      ++per_second[static_cast<std::size_t>(now)];
      const double before = now;
      const bool rested = edges.resting();
      now += call_s(before);
      (void)edges.read(before, now, energy_at(before));
      if (rested) rested_s += now - before;
      now = std::max(now, edges.next_read_s());
      if (rested) rested_s += now - before;
    }
  }
  [[nodiscard]] int from(int second, int seconds) const {
    return std::accumulate(per_second.begin() + second, per_second.begin() + second + seconds, 0);
  }
};

// In each state: learning, following, and where the period cannot be learned.
TEST(CounterEdges, AreReadSeldomOnceLearned) {
  Readings readings;
  readings.run(3600, [](double at_s) { return 30 * std::floor(at_s / 0.1); });
  EXPECT_LT(readings.from(0, 1), 800) << "learns";
  EXPECT_LE(readings.from(10, 3590), 50 * 3590) << "follows";
  EXPECT_EQ(readings.rested_s, 0);
}

TEST(CounterEdges, AreReadSeldomWhereTheyCannotBeLearned) {
  std::mt19937 dice(5);
  std::exponential_distribution<double> gap(1 / 0.1);
  double moves_s = 0, energy_j = 0;
  const std::vector<std::pair<const char*, std::function<double(double)>>> counters{
      {"stands still", [](double) { return 5.0; }},
      {"stands still after a while", [](double at_s) { return 30 * std::floor(std::min(at_s, 5.0) / 0.1); }},
      {"moves at random", [&](double at_s) {
         while (moves_s < at_s) {
           moves_s += gap(dice);
           energy_j += 30;
         }
         return energy_j;
       }}};
  for (const auto& [name, energy_at] : counters) {
    for (const double call_s : {2e-5, 0.005}) {
      Readings readings;
      moves_s = energy_j = 0;
      readings.run(3600, energy_at, [&](double) { return call_s; });
      for (const int seconds : {10, 60, 600}) {
        for (int second = 0; second + seconds <= 3600; ++second) {
          ASSERT_LE(readings.from(second, seconds),
                    CounterEdges::kReadingsAtOnce + CounterEdges::kMostReadings_hz * (seconds + 1))
              << name << " " << call_s;
        }
      }
      EXPECT_LE(readings.from(600, 3000), 60 * 3000) << name << " " << call_s;
    }
  }
}

TEST(CounterEdges, AreLearnedOnceCallsAreFastAgain) {
  Readings readings;
  readings.run(
      600, [](double at_s) { return 30 * std::floor(at_s / 0.1); },
      [](double at_s) { return at_s < 300 ? 0.005 : 2e-5; });
  EXPECT_GT(readings.rested_s, 60);
  EXPECT_FALSE(readings.edges.resting());
  EXPECT_NEAR(readings.edges.period_s(), 0.1, 0.001);
}

}  // namespace
}  // namespace perseus::client
