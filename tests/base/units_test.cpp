#include "base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace perseus {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};

TEST(Units, ProductsThatMeanSomething) {
  EXPECT_EQ(Watts(300) * Seconds(2), Joules(600));
  EXPECT_EQ(Seconds(2) * Watts(300), Joules(600));
  EXPECT_EQ(Joules(600) / Seconds(2), Watts(300));
  EXPECT_EQ(Joules(600) / Watts(300), Seconds(2));
  EXPECT_EQ(Seconds(3) / Seconds(2), 1.5);
}

TEST(Units, MixturesDoNotCompile) {
  static_assert(Addable<Seconds, Seconds>);
  static_assert(!Addable<Seconds, Joules>);
  static_assert(!Addable<Seconds, double>);
  static_assert(!Multipliable<Joules, Seconds>);
  static_assert(!Multipliable<Seconds, Seconds>);
  static_assert(!std::is_convertible_v<double, Watts>);
  static_assert(!std::is_convertible_v<int, Megahertz>);
}

TEST(Units, OrderAndArithmetic) {
  Seconds t(1);
  t += Seconds(2);
  t -= Seconds(0.5);
  EXPECT_EQ(t, Seconds(2.5));
  EXPECT_LT(t, Seconds(3));
  EXPECT_EQ(-t, Seconds(-2.5));
  EXPECT_EQ(2 * t - t / 2, Seconds(3.75));
  EXPECT_GT(Megahertz(1410), Megahertz(1395));
}

}  // namespace
}  // namespace perseus
