// A reading of a meter that was refused, across a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/power/site_meters.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

std::vector<std::string> raised_alerts(InProcess& server) {
  std::vector<std::string> texts;
  for (const jobs::Alert* alert : server.service().watch.alerts().page({10, {}, {}}).alerts)
    texts.push_back(alert->text);
  return texts;
}

TEST(SiteMeter, ARefusedReadingRaisesItsAlertAlsoAfterARestart) {
  service::ServiceOptions options;
  options.alert_after_s = 30;
  InProcess server(options, std::make_shared<TestDatabase>());
  ASSERT_TRUE(server.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":1000}]}]})").ok());
  server.go_to(2);
  EXPECT_FALSE(server.read_meter(R"({"readings":[{"domain":"hall","power_w":9e6}]})").ok());
  server.restart();
  server.go_to(60);
  EXPECT_THAT(raised_alerts(server),
              ::testing::ElementsAre("the meter reads 9000 kW, which cannot be true: the reading is refused"));

  ASSERT_TRUE(server.read_meter(R"({"readings":[{"domain":"hall","power_w":900}]})").ok());
  server.restart();
  server.go_to(120);
  EXPECT_THAT(raised_alerts(server), ::testing::IsEmpty());
}

}  // namespace
}  // namespace perseus::testing
