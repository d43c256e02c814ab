// The end of alerts whose server stopped before they ended.
#include "server/alerts/sent_alerts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::alerts {
namespace {

using jobs::Alert;

class SentAlertsTest : public ::testing::Test {
 protected:
  struct Server : AlertSink {
    explicit Server(std::shared_ptr<testing::TestDatabase> database, bool enabled = true)
        : base(std::move(database)),
          alerts(std::make_shared<SentAlerts>(base.access_to_store(), base.clock(), due, *this)) {
      alerts->enable(enabled);
    }
    void changed(const Alert& alert) override {
      sent.push_back((alert.resolved_s ? "resolved " : "firing ") + alert.job + " " + alert.text);
      if (alert.resolved_s) alerts->delivered(alert);  // at once
    }
    void raise(const std::string& job) {
      alerts->changed({jobs::AlertKind::over_power, job, "gpt", "much power", 5, 10, {}});
      base.settle();
    }
    void resolve(const std::string& job) {
      alerts->changed({jobs::AlertKind::over_power, job, "gpt", "much power", 5, 10, 20.0});
      base.settle();
    }
    void pass(double seconds) {
      for (double passed = 0; passed < seconds; passed += 10) {
        base.clock().advance(10);
        due.perform(base.clock().now_s());
        base.settle();
      }
    }
    testing::JobsInMemory base;
    work::Due due;
    std::shared_ptr<SentAlerts> alerts;
    std::vector<std::string> sent;
  };
  using Sent = std::vector<std::string>;

  std::shared_ptr<testing::TestDatabase> database = std::make_shared<testing::TestDatabase>();
};

TEST_F(SentAlertsTest, AfterARestartTheEndOfAnAlertThatIsGoneIsSentOnce) {
  {
    Server before(database);
    before.raise("a");
    before.raise("b");
    EXPECT_EQ(before.sent.size(), 2U);
  }
  Server after(database);
  after.pass(600);
  after.raise("b");  // it still holds
  EXPECT_EQ(after.sent, Sent{"firing b much power"});
  after.pass(10'000);
  EXPECT_EQ(after.sent, (Sent{"firing b much power", "resolved a much power"}));
  EXPECT_EQ(database->blobs().size(), 1U);
}

TEST_F(SentAlertsTest, AnAlertThatIsRaisedIsNotForgotten) {
  Server server(database);
  server.raise("a");
  server.pass(5000);
  EXPECT_EQ(server.sent, Sent{"firing a much power"});
}

TEST_F(SentAlertsTest, AnAlertThatComesBackIsSentAgain) {
  Server server(database);
  for (int k = 0; k < 2; ++k) {
    server.raise("a");
    server.resolve("a");
  }
  EXPECT_EQ(server.sent,
            (Sent{"firing a much power", "resolved a much power", "firing a much power", "resolved a much power"}));
}

TEST_F(SentAlertsTest, WithoutAReceiverNothingIsSentUntilThereIsOne) {
  Server server(database, false);
  server.raise("a");
  server.raise("b");
  server.resolve("b");
  server.pass(5000);
  EXPECT_EQ(server.sent, Sent{});
  EXPECT_TRUE(database->blobs().empty());
  server.alerts->enable(true);
  server.base.settle();
  EXPECT_EQ(server.sent, Sent{"firing a much power"});
}

TEST_F(SentAlertsTest, AnAlertThatEndedLeavesNothingInTheStore) {
  Server server(database);
  server.raise("a");
  EXPECT_EQ(database->blobs().size(), 1U);
  server.resolve("a");
  EXPECT_TRUE(database->blobs().empty());
  server.pass(5000);
  EXPECT_EQ(server.sent.size(), 2U);
}

TEST_F(SentAlertsTest, WhileTheStoreDoesNotAnswerItLooksAgain) {
  { Server(database).raise("a"); }
  Server after(database);
  database->failure = Error{ErrorCode::unavailable, "no answer"};
  after.pass(SentAlerts::kBetweenLooks_s + 100);
  EXPECT_EQ(after.sent, Sent{});
  database->failure.reset();
  after.pass(120);
  EXPECT_EQ(after.sent, Sent{"resolved a much power"});
}

}  // namespace
}  // namespace perseus::alerts
