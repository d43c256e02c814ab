// The rounding rule from measured latencies to those of plans.
#include "server/profiles/known_profile.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace perseus::profiles {
namespace {

TEST(RoundedLatency, TwoDigitsUpwards) {
  EXPECT_DOUBLE_EQ(rounded_latency(Seconds(0.00101)).value(), 0.0011);
  EXPECT_DOUBLE_EQ(rounded_latency(Seconds(0.0199)).value(), 0.02);
  EXPECT_DOUBLE_EQ(rounded_latency(Seconds(0.011)).value(), 0.011) << "has two digits";
  EXPECT_EQ(rounded_latency(Seconds(0)), Seconds(0));
  EXPECT_EQ(rounded_latency(Seconds(-1)), Seconds(0));
}

RC_GTEST_PROP(RoundedLatency, NoLessThanWasMeasuredAndLittleMore, ()) {
  const double measured_s = *rc::gen::inRange(1, 10'000'000) * 1e-7;
  const double rounded_s = rounded_latency(Seconds(measured_s)).value();
  RC_ASSERT(rounded_s >= measured_s * (1 - 1e-6));
  RC_ASSERT(rounded_s <= measured_s * 1.1);
  const double digits = rounded_s / std::pow(10.0, std::floor(std::log10(rounded_s) + 1e-9) - 1);
  RC_ASSERT(std::abs(digits - std::round(digits)) < 1e-6);
  RC_ASSERT(std::abs(rounded_latency(Seconds(rounded_s)).value() - rounded_s) < 1e-9 * rounded_s);
}

}  // namespace
}  // namespace perseus::profiles
