// Edges of an energy counter, on a hand-turned clock: idle and busy machines, counters of every kind.
#include "training/client/counter_edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
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

}  // namespace
}  // namespace perseus::client
