#include "evaluation/calibration/least_squares.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace perseus::calibration {
namespace {

TEST(LeastSquares, FitsALine) {
  LeastSquares line(2);
  for (int x = 0; x < 5; ++x) {
    const std::array<Term, 2> row{Term{0, 1}, Term{1, static_cast<double>(x)}};
    line.add(row, 3 + 2.0 * x, 10);
  }
  const std::vector<double> found = line.solve_non_negative();
  EXPECT_NEAR(found[0], 3, 1e-9);
  EXPECT_NEAR(found[1], 2, 1e-9);
}

TEST(LeastSquares, NegativeUnknownsAreHeldAtZero) {
  LeastSquares line(2);
  for (int x = 0; x < 3; ++x) {  // falls: with a slope >= 0 the best is the mean
    const std::array<Term, 2> row{Term{0, 1}, Term{1, static_cast<double>(x)}};
    line.add(row, 5.0 - x, 1);
  }
  const std::vector<double> found = line.solve_non_negative();
  EXPECT_NEAR(found[0], 4, 1e-9);
  EXPECT_EQ(found[1], 0);
  EXPECT_NEAR(line.solve()[1], -1, 1e-9);
  const Matrix covariance = line.covariance(found);
  EXPECT_NEAR(covariance(0, 0), 1.0 / 3, 1e-9);
  EXPECT_EQ(covariance(1, 1), 0);
}

TEST(LeastSquares, CovarianceOfAMeanFallsWithTheNumberOfRows) {
  LeastSquares mean(1);
  const Term one{0, 1};
  for (int i = 0; i < 100; ++i) mean.add({&one, 1}, i % 2 == 0 ? 9 : 11, 1 / 1.0);
  const std::vector<double> found = mean.solve_non_negative();
  EXPECT_NEAR(found[0], 10, 1e-9);
  EXPECT_NEAR(std::sqrt(mean.covariance(found)(0, 0)), 0.1, 1e-9);
}

TEST(LeastSquares, AnUnknownThatNoRowMentionsStaysZero) {
  LeastSquares system(2);
  const Term one{0, 2};
  system.add({&one, 1}, 4, 1);
  const std::vector<double> found = system.solve_non_negative();
  EXPECT_NEAR(found[0], 2, 1e-9);
  EXPECT_EQ(found[1], 0);
}

TEST(LeastSquares, RowsBeyondTheRangeOfADoubleDetermineNothing) {
  LeastSquares system(2);
  const std::array<Term, 2> row{Term{0, 1e200}, Term{1, -1e200}};
  system.add(row, 1, 1);
  EXPECT_EQ(system.solve(), std::vector<double>(2));
  EXPECT_EQ(system.solve_non_negative(), std::vector<double>(2));
  EXPECT_EQ(system.covariance(std::vector<double>{1, 1}), Matrix::Zero(2, 2));
}

}  // namespace
}  // namespace perseus::calibration
