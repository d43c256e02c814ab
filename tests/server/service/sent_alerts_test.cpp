// The end of alerts whose server stopped before they ended.
#include "server/service/sent_alerts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/service/alert_claims.h"
#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using jobs::Alert;

class SentAlertsTest : public ::testing::Test {
 protected:
  /// Connected as the service does it.
  struct Server {
    Server(const std::string& name, std::shared_ptr<store::MemoryDatabase> database)
        : base(std::move(database)),
          claims(std::make_shared<AlertClaims>(name, base.access_to_store(), base.clock())),
          sent_alerts(std::make_shared<SentAlerts>(base.access_to_store(), base.clock())) {
      claims->send = [this](const Alert& alert) {
        sent.push_back((alert.resolved_s ? "resolved " : "firing ") + alert.job + " " + alert.text);
        sent_alerts->note(alert);
      };
      sent_alerts->check = [this](const Alert& alert) { claims->end_if_forgotten(alert); };
      claims->enable(true);
      sent_alerts->enable(true);
    }
    void raise(const std::string& job) {
      claims->changed({jobs::AlertKind::over_power, job, "gpt", "much power", 5, 10, {}});
      base.settle();
    }
    void pass(double seconds) {
      for (double passed = 0; passed < seconds; passed += 10) {
        base.clock().advance(10);
        claims->tick(base.clock().now_s());
        sent_alerts->tick(base.clock().now_s());
        base.settle();
      }
    }
    testing::JobsInMemory base;
    std::shared_ptr<AlertClaims> claims;
    std::shared_ptr<SentAlerts> sent_alerts;
    std::vector<std::string> sent;
  };
  using Sent = std::vector<std::string>;

  std::shared_ptr<store::MemoryDatabase> database = std::make_shared<store::MemoryDatabase>();
};

TEST_F(SentAlertsTest, AfterARestartTheEndOfAnAlertThatIsGoneIsSentOnce) {
  {
    Server before("server", database);
    before.raise("a");
    before.raise("b");
    EXPECT_EQ(before.sent.size(), 2U);
  }
  Server after("server", database);
  after.pass(600);
  after.raise("b");  // it still holds
  EXPECT_EQ(after.sent, Sent{"firing b much power"});
  after.pass(10'000);
  EXPECT_EQ(after.sent, (Sent{"firing b much power", "resolved a much power"}));
  EXPECT_EQ(database->blobs.size(), 1U);
}

TEST_F(SentAlertsTest, AnAlertOfAServerThatRunsIsNotForgotten) {
  Server one("one", database), other("other", database);
  one.raise("a");
  for (int k = 0; k < 500; ++k) {
    one.pass(10);
    other.pass(10);
  }
  EXPECT_EQ(one.sent, Sent{"firing a much power"});
  EXPECT_EQ(other.sent, Sent{});
}

TEST_F(SentAlertsTest, AnAlertThatEndedLeavesNothingInTheStore) {
  Server server("server", database);
  server.raise("a");
  EXPECT_EQ(database->blobs.size(), 1U);
  server.claims->changed({jobs::AlertKind::over_power, "a", "gpt", "much power", 5, 10, 20.0});
  server.base.settle();
  EXPECT_TRUE(database->blobs.empty());
  server.pass(5000);
  EXPECT_EQ(server.sent.size(), 2U);
}

TEST_F(SentAlertsTest, WhileTheStoreDoesNotAnswerItLooksAgain) {
  { Server("server", database).raise("a"); }
  Server after("server", database);
  database->failure = Error{ErrorCode::unavailable, "no answer"};
  after.pass(SentAlerts::kBetweenLooks_s + 100);
  EXPECT_EQ(after.sent, Sent{});
  database->failure.reset();
  after.pass(120);
  EXPECT_EQ(after.sent, Sent{"resolved a much power"});
}

}  // namespace
}  // namespace perseus::service
