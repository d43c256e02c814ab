#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "base/linear_algebra.h"

namespace perseus {
namespace {

/// Rows of standard normals: rows' rows is positive semidefinite, of rank at most the number of rows.
Matrix random_rows(int rows, int columns, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Matrix result(rows, columns);
  for (double& value : result.reshaped()) value = normal(engine);
  return result;
}

RC_GTEST_PROP(LinearAlgebra, TheFactorTimesItsTransposeIsTheMatrix, ()) {
  const int n = *rc::gen::inRange(1, 80);
  const Matrix rows = random_rows(2 * n, n, *rc::gen::arbitrary<unsigned>());
  const Matrix a = rows.transpose() * rows;
  const Cholesky factor(a);
  RC_ASSERT(factor.lower().isLowerTriangular());
  RC_ASSERT((factor.lower() * factor.lower().transpose()).isApprox(a, 1e-12));
  const Vector b = rows.row(0);
  RC_ASSERT((a * factor.solve(b)).isApprox(b, 1e-9));
  RC_ASSERT((factor.lower() * factor.solve_lower(b)).isApprox(b, 1e-9));
}

RC_GTEST_PROP(LinearAlgebra, ASingularMatrixIsChangedByNoMoreThanItsJitter, ()) {
  const int n = *rc::gen::inRange(2, 60), rank = *rc::gen::inRange(1, n);
  const Matrix rows = random_rows(rank, n, *rc::gen::arbitrary<unsigned>());
  const Matrix a = rows.transpose() * rows;
  const Cholesky factor(a);
  RC_ASSERT(factor.lower().allFinite());
  const Matrix change = factor.lower() * factor.lower().transpose() - a;
  RC_ASSERT(change.cwiseAbs().maxCoeff() <= 2e-12 * a.diagonal().maxCoeff());
}

/// What no row determines stays small: rounding errors do not decide it.
RC_GTEST_PROP(LinearAlgebra, UndeterminedUnknownsStayNearTheOthers, ()) {
  const int n = *rc::gen::inRange(2, 20);
  Matrix rows = random_rows(3 * n, n, *rc::gen::arbitrary<unsigned>());
  rows.col(1) = 2 * rows.col(0);  // only x0 + 2 x1 is determined
  const Vector x = random_rows(n, 1, *rc::gen::arbitrary<unsigned>()).col(0);
  const Vector b = rows.transpose() * (rows * x);
  const Vector found = NormalEquations(rows.transpose() * rows).solve(b);
  RC_ASSERT((rows * found).isApprox(rows * x, 1e-3));
  RC_ASSERT(found.cwiseAbs().maxCoeff() <= 10 * x.cwiseAbs().maxCoeff());
}

RC_GTEST_PROP(LinearAlgebra, UnitsOfUnknownsDoNotMatter, ()) {
  const int n = *rc::gen::inRange(1, 20);
  const Matrix rows = random_rows(3 * n, n, *rc::gen::arbitrary<unsigned>());
  const Vector x = random_rows(n, 1, *rc::gen::arbitrary<unsigned>()).col(0);
  Vector unit(n);
  for (double& u : unit) u = std::pow(10, *rc::gen::inRange(-9, 10));
  const Matrix scaled = rows * unit.asDiagonal();
  const NormalEquations equations(scaled.transpose() * scaled);
  const Vector found = equations.solve(scaled.transpose() * (rows * x));
  RC_ASSERT(unit.cwiseProduct(found).isApprox(x, 1e-8));
  const Matrix covariance = equations.covariance();
  RC_ASSERT(std::abs(equations.variance(unit) / unit.dot(covariance * unit) - 1) < 1e-8);
}

TEST(LinearAlgebra, AnUnknownInNoRowIsZero) {
  Matrix a = Matrix::Zero(2, 2);
  a(0, 0) = 4;
  const Vector found = NormalEquations(a).solve(Vector::Unit(2, 0) * 8);
  EXPECT_DOUBLE_EQ(found[0], 2);
  EXPECT_EQ(found[1], 0);
}

TEST(LinearAlgebra, AMatrixOfZerosHasAFactorNearZero) {
  EXPECT_LT(Cholesky(Matrix::Zero(3, 3)).lower().norm(), 1e-100);
}

}  // namespace
}  // namespace perseus
