// Corrections by a meter over time, on servers that read their database again and again.
#include <gtest/gtest.h>

#include <string>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/scenario_site.h"

namespace perseus::testing {
namespace {

service::ServiceOptions options_of(const std::string& owner) {
  service::ServiceOptions options;
  options.owner = owner;
  options.site_poll_s = 5;
  return options;
}

class SiteMeter : public ::testing::Test {
 protected:
  SiteMeter() {
    PERSEUS_CHECK(one.set_site(R"({"domains":[{"name":"hall","constant_w":1000,)"
                               R"("limits":[{"limit_w":2000}]}]})")
                      .ok(),
                  "no site");
    pass(6);
  }

  double factor(InProcess& server) {
    return power_facts(server.site_power().value(), "hall").value().numbers["meter_factor"];
  }
  void read(double watts) {
    const std::string readings = R"({"readings":[{"domain":"hall","power_w":)" + std::to_string(watts) + "}]}";
    PERSEUS_CHECK(one.read_meter(readings).ok(), "no reading");
  }
  /// Second by second: servers look at the time then.
  void pass(double seconds) {
    for (const double until_s = now_s + seconds; now_s < until_s;) {
      one.go_to(++now_s);
      other.go_to(now_s);
    }
  }
  /// For so many minutes. Returns the least and the greatest factor of the last half of them.
  std::pair<double, double> read_for(int minutes, double watts) {
    std::pair<double, double> range{1e9, 0};
    for (int reading = 0; reading < 3 * minutes; ++reading) {
      read(watts);
      pass(20);
      if (reading < 3 * minutes / 2) continue;
      range = {std::min(range.first, factor(one)), std::max(range.second, factor(one))};
    }
    return range;
  }

  std::shared_ptr<store::MemoryDatabase> database = std::make_shared<store::MemoryDatabase>();
  InProcess one{options_of("one"), database};
  InProcess other{options_of("other"), database};
  double now_s = 0;
};

TEST_F(SiteMeter, AFactorThatRaisesALimitStaysWhileReadingsConfirmIt) {
  const auto [least, most] = read_for(40, 955);
  EXPECT_NEAR(least, most, 1e-9) << "the store must not bring an earlier factor back";
  EXPECT_LT(most, 0.966);
  EXPECT_GE(least, 0.955);
}

}  // namespace
}  // namespace perseus::testing
