// Which of two servers on one database sends an alert.
#include "server/service/alert_claims.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using jobs::Alert;

class AlertClaimsTest : public ::testing::Test {
 protected:
  struct Server {
    Server(const std::string& name, std::shared_ptr<store::MemoryDatabase> database)
        : base(std::move(database)), claims(std::make_shared<AlertClaims>(name, base.access_to_store(), base.clock())) {
      claims->send = [this](const Alert& alert) { sent.emplace_back(alert.resolved_s ? "resolved" : "firing"); };
      claims->enable(true);
    }
    testing::JobsInMemory base;
    std::shared_ptr<AlertClaims> claims;
    std::vector<std::string> sent;
  };
  using Sent = std::vector<std::string>;

  void raise(Server& server) { change(server, std::nullopt); }
  void resolve(Server& server) { change(server, server.base.clock().now_s()); }
  static void change(Server& server, std::optional<double> resolved_s) {
    server.claims->changed({jobs::AlertKind::over_power, "job", "gpt", "much power", 0, 1, resolved_s});
    server.base.settle();
  }
  /// Each server ticks at its wakes for that long.
  static void pass(std::vector<Server*> servers, double seconds) {
    for (double passed = 0; passed < seconds; passed += 1) {
      for (Server* server : servers) {
        server->base.clock().advance(1);
        server->claims->tick(server->base.clock().now_s());
        server->base.settle();
      }
    }
  }

  std::shared_ptr<store::MemoryDatabase> database = std::make_shared<store::MemoryDatabase>();
  Server one{"one", database}, other{"other", database};
};

TEST_F(AlertClaimsTest, OneOfTwoServersSendsTheBeginAndTheEnd) {
  raise(other);
  raise(one);
  pass({&one, &other}, 1000);
  EXPECT_EQ(other.sent, Sent{"firing"});
  resolve(one);
  pass({&one, &other}, 20);
  resolve(other);
  pass({&one, &other}, 1000);
  EXPECT_EQ(other.sent, (Sent{"firing", "resolved"}));
  EXPECT_EQ(one.sent, Sent{});
  EXPECT_TRUE(database->claims.empty());
}

TEST_F(AlertClaimsTest, AServerThatResolvesItLaterSendsNothing) {
  raise(one);
  raise(other);
  pass({&one, &other}, 100);
  resolve(one);
  pass({&one, &other}, 50);
  resolve(other);
  pass({&one, &other}, 1000);
  EXPECT_EQ(one.sent, (Sent{"firing", "resolved"}));
  EXPECT_EQ(other.sent, Sent{});
}

TEST_F(AlertClaimsTest, TheAlertOfAServerThatEndsIsSentByAnother) {
  raise(one);
  raise(other);
  pass({&one, &other}, 100);
  EXPECT_EQ(one.sent, Sent{"firing"});
  pass({&other}, AlertClaims::kLease_s * 3);
  EXPECT_EQ(other.sent, Sent{"firing"});
  resolve(other);
  EXPECT_EQ(other.sent, (Sent{"firing", "resolved"}));
}

TEST_F(AlertClaimsTest, WhileTheStoreDoesNotAnswerAlertsWait) {
  database->write_failure = Error{ErrorCode::unavailable, "no answer"};
  raise(one);
  pass({&one}, 100);
  EXPECT_EQ(one.sent, Sent{});
  database->write_failure.reset();
  pass({&one}, 10);
  EXPECT_EQ(one.sent, Sent{"firing"});
  database->write_failure = Error{ErrorCode::unavailable, "no answer"};
  pass({&one}, 1000);
  resolve(one);
  EXPECT_EQ(one.sent, (Sent{"firing", "resolved"}));
}

TEST_F(AlertClaimsTest, AnAlertThatEndsBeforeTheStoreAnswersIsSentWithItsEnd) {
  one.claims->changed({jobs::AlertKind::over_power, "job", "", "", 0, 1, {}});
  one.claims->changed({jobs::AlertKind::over_power, "job", "", "", 0, 1, 2.0});
  one.base.settle();
  EXPECT_EQ(one.sent, (Sent{"firing", "resolved"}));
}

TEST_F(AlertClaimsTest, AnAlertThatComesBackIsSentAgain) {
  for (int k = 0; k < 2; ++k) {
    raise(one);
    pass({&one}, 10);
    resolve(one);
    pass({&one}, 10);
  }
  EXPECT_EQ(one.sent, (Sent{"firing", "resolved", "firing", "resolved"}));
}

TEST_F(AlertClaimsTest, WithoutAReceiverNothingIsClaimedUntilThereIsOne) {
  one.claims->enable(false);
  raise(one);
  pass({&one}, 100);
  EXPECT_TRUE(database->claims.empty());
  one.claims->enable(true);
  pass({&one}, 10);
  EXPECT_EQ(one.sent, Sent{"firing"});
}

}  // namespace
}  // namespace perseus::service
