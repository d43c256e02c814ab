#include "server/profiling/curve_family.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace perseus::profiling {
namespace {

constexpr int kClocks = 30, kMembers = 6;

double position(int clock) { return std::log(1 - 0.015 * clock); }

/// A curve with a step of 3 % in the middle, and half a percent of its own at each clock.
double truth(int clock) { return -0.4 * position(clock) + (clock < 15 ? 0.03 : 0) + (clock % 3 == 0 ? 0.005 : 0); }

/// Samples of 1 % noise: the first members at each clock, the last, which is 5 % higher, at every tenth.
CurveFamily family(std::mt19937_64& engine) {
  std::vector<CurvePosition> positions;
  for (int c = 0; c < kClocks; ++c) positions.push_back({position(c), 0});
  std::vector<Observations> members;
  for (int m = 0; m < kMembers; ++m) {
    const bool last = m == kMembers - 1;
    const int apart = last ? 10 : 1, samples = last ? 400 : 40;
    Observations observations{Matrix::Zero(kClocks / apart, kClocks), {}, {}};
    for (int c = 0; c < kClocks; c += apart) {
      observations.design(c / apart, c) = 1;
      const double stddev = 0.01 / std::sqrt(samples);
      observations.value.push_back(truth(c) + (last ? 0.05 : 0) + stddev * standard_normal(engine));
      observations.variance.push_back(stddev * stddev);
    }
    members.push_back(std::move(observations));
  }
  return {std::move(positions), std::move(members), RareSteps::none};
}

TEST(CurveFamily, AStageThatDiffersInHeightBorrowsTheOthersShape) {
  std::mt19937_64 engine(1);
  double squares = 0;
  int runs = 0;
  for (; runs < 10; ++runs) {
    const CurveFamily::Posterior last = family(engine).posterior(kMembers - 1);
    for (int c = 0; c < kClocks; ++c) {
      squares += std::pow(last.mean[c] - truth(c) - 0.05, 2);
      EXPECT_LT(std::sqrt(last.covariance(c, c)), 0.003) << "clock " << c;
    }
  }
  EXPECT_LT(std::sqrt(squares / (runs * kClocks)), 0.0012);
}

TEST(CurveFamily, DrawsHaveTheSpreadOfThePosterior) {
  std::mt19937_64 engine(2);
  const CurveFamily known = family(engine);
  const CurveFamily::Posterior posterior = known.posterior(2);
  constexpr int kDraws = 2000;
  const auto draws = known.draws(kDraws, engine);
  for (const int c : {0, 7, 14, 29}) {
    double mean = 0, squares = 0;
    for (const auto& draw : draws) mean += draw[2][c] / kDraws;
    for (const auto& draw : draws) squares += std::pow(draw[2][c] - mean, 2) / (kDraws - 1);
    const double stddev = std::sqrt(posterior.covariance(c, c));
    EXPECT_NEAR(mean, posterior.mean[c], 5 * stddev / std::sqrt(kDraws));
    EXPECT_NEAR(std::sqrt(squares) / stddev, 1, 0.1);
  }
}

/// A smooth curve of 0.3 % noise, 2.5 % lower at clock 20; clock 10 has no sample.
CurveFamily with_a_rare_step(RareSteps rare, std::mt19937_64& engine) {
  std::vector<CurvePosition> positions;
  Observations observations{Matrix::Zero(kClocks - 1, kClocks), {}, {}};
  for (int c = 0; c < kClocks; ++c) {
    positions.push_back({position(c), 0});
    if (c == 10) continue;
    observations.design(static_cast<Eigen::Index>(observations.value.size()), c) = 1;
    observations.value.push_back(-0.4 * position(c) - (c == 20 ? 0.025 : 0) + 0.003 * standard_normal(engine));
    observations.variance.push_back(0.003 * 0.003);
  }
  return {std::move(positions), {std::move(observations)}, rare};
}

TEST(CurveFamily, AClockWithoutSamplesMayBeFarFromItsNeighbors) {
  for (const RareSteps rare : {RareSteps::none, RareSteps::possible}) {
    std::mt19937_64 engine(4);
    const CurveFamily known = with_a_rare_step(rare, engine);
    const CurveFamily::Posterior posterior = known.posterior(0);
    int far = 0, far_where_measured = 0;
    for (const auto& draw : known.draws(2000, engine)) {
      far += std::abs(draw[0][10] - posterior.mean[10]) > 0.025 ? 1 : 0;
      far_where_measured += std::abs(draw[0][5] - posterior.mean[5]) > 0.025 ? 1 : 0;
    }
    EXPECT_EQ(far > 0, rare == RareSteps::possible) << far;
    EXPECT_LT(far, 40);
    EXPECT_EQ(far_where_measured, 0);
  }
}

}  // namespace
}  // namespace perseus::profiling
