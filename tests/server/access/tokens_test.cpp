#include "server/access/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "base/clock.h"
#include "server/routes/wrong_tokens.h"
#include "server/work/store_access.h"
#include "tests/support/test_store.h"

namespace perseus::access {
namespace {

using ::testing::HasSubstr;

class TokensTest : public ::testing::Test {
 protected:
  NewToken make(const std::string& role, double expires_s = 0, const std::string& team = "") {
    store::TokenRow wanted;
    wanted.role = role;
    wanted.expires_s = expires_s;
    wanted.team = team;
    NewToken made = make_token(wanted, 1000);
    tokens_.put(made.row, [](const Status& put) { EXPECT_TRUE(put.ok()); });
    return made;
  }
  Status revoke(const NewToken& token) {
    Status answer = Error{ErrorCode::internal, "no answer"};
    tokens_.revoke(token.row.hash, [&](const Status& revoked) { answer = revoked; });
    return answer;
  }
  static std::string bearer(const NewToken& token) { return "Bearer " + token.secret; }

  std::shared_ptr<testing::TestDatabase> database_ = std::make_shared<testing::TestDatabase>();
  testing::TestStore store_{[](const std::function<void()>& work) { work(); }, database_};
  Tokens tokens_{store_};
};

/// Work that the test runs piece by piece.
struct ByHand final : work::Executor {
  void submit(Kind, Work work) override { queue.push_back(std::move(work)); }
  std::deque<Work> queue;
};

TEST_F(TokensTest, AreRefreshedWithoutLosingConcurrentChanges) {
  ByHand executor;
  const HandTurnedClock clock;
  work::Gate gate(executor);
  work::Due due;
  work::StoreAccess access(store_, clock, due, gate, 10);
  tokens_.serve(access);
  const NewToken before = make("infrastructure");
  tokens_.refresh([](const Error&) { FAIL(); });
  const auto read = executor.queue.front()();  // the read is done, and its completion has not reached the I/O thread
  executor.queue.pop_front();
  const NewToken meanwhile = make("job");
  read();
  EXPECT_TRUE(tokens_.identify(bearer(before), 1000).ok());
  EXPECT_TRUE(tokens_.identify(bearer(meanwhile), 1000).ok());
  ASSERT_EQ(executor.queue.size(), 1) << "it is read again";
  executor.queue.front()()();
  EXPECT_TRUE(tokens_.identify(bearer(meanwhile), 1000).ok());
}

TEST_F(TokensTest, HoldWhileTheStoreDoesNotAnswer) {
  ByHand executor;
  HandTurnedClock clock;
  work::Gate gate(executor);
  work::Due due;
  work::StoreAccess access(store_, clock, due, gate, 10);
  tokens_.serve(access);
  const NewToken boss = make("infrastructure");
  int failed = 0;
  tokens_.refresh([&](const Error& error) { failed += error.code == ErrorCode::unavailable ? 1 : 0; });
  clock.turn_to(10);
  due.perform(10);
  EXPECT_EQ(failed, 1);
  EXPECT_TRUE(tokens_.identify(bearer(boss), 1000).ok());
}

TEST_F(TokensTest, StayRequiredWhenTheLastOneIsGone) {
  EXPECT_FALSE(tokens_.required());
  const NewToken boss = make("infrastructure");
  EXPECT_TRUE(tokens_.required());
  database_->stored().revoke_token(boss.row.hash, [](const Result<Ok>&) {});  // an operator removed it in the database
  EXPECT_TRUE(tokens_.load().ok());
  EXPECT_TRUE(tokens_.required());
  EXPECT_EQ(tokens_.identify("", 1000).error().code, ErrorCode::unauthorized);
  EXPECT_EQ(tokens_.identify(bearer(boss), 1000).error().code, ErrorCode::unauthorized);
  Tokens again(store_);
  EXPECT_TRUE(again.load().ok());
  EXPECT_TRUE(again.required());
}

TEST_F(TokensTest, OfAnOlderDatabaseAreRequired) {
  database_->put_token(store::TokenRow{"hash", "infrastructure", "", "", 1, 0, ""});
  EXPECT_TRUE(tokens_.load().ok());
  EXPECT_TRUE(tokens_.required());
  EXPECT_EQ(database_->blob("setting/tokens"), "on");
}

TEST_F(TokensTest, AreOffOnlyWhereThisMachineAloneReachesTheServer) {
  make("infrastructure");
  require_tokens(store_, false, [](const Result<Ok>&) {});
  EXPECT_TRUE(tokens_.load().ok());
  EXPECT_FALSE(tokens_.required());
  Tokens beyond(store_, false);
  EXPECT_TRUE(beyond.load().ok());
  EXPECT_TRUE(beyond.required());
}

TEST_F(TokensTest, TheLastOneThatMakesOthersIsNotRevoked) {
  const NewToken boss = make("infrastructure"), job = make("job");
  EXPECT_EQ(revoke(boss).error().code, ErrorCode::conflict);
  EXPECT_TRUE(revoke(job).ok());
  make("infrastructure", 5000);  // limited in time
  EXPECT_EQ(revoke(boss).error().code, ErrorCode::conflict);
  make("infrastructure");
  EXPECT_TRUE(revoke(boss).ok());
}

TEST_F(TokensTest, AreAcceptedAsBearerAndAsPasswordInAnyCase) {
  const NewToken boss = make("infrastructure");
  for (const std::string& header : {"Bearer " + boss.secret, "bearer " + boss.secret, "BEARER   " + boss.secret}) {
    EXPECT_TRUE(tokens_.identify(header, 1000).ok()) << header;
  }
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer "), boss.secret, "Digest " + boss.secret,
        std::string("Basic !!!"), std::string("Basic YTpi"), "Basic " + boss.secret, "Bearer " + boss.secret + " "}) {
    EXPECT_EQ(tokens_.identify(header, 1000).error().code, ErrorCode::unauthorized) << header;
  }
}

TEST_F(TokensTest, KnowsThePasswordOfBasic) {
  // "any:perseus_0123456789abcdef0123456789abcdef" in base64, and the SHA-256 of its password, computed with another
  // program
  const std::string hash = "8a341500d9217389c26af2a3e7db1a4d00be9085e1de7ac33c687cbf34176761";
  database_->put_token(store::TokenRow{hash, "read-only", "", "", 1, 0, ""});
  EXPECT_TRUE(tokens_.load().ok());
  const std::string password = "YW55OnBlcnNldXNfMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
  EXPECT_TRUE(tokens_.identify("Basic " + password, 1000).ok());
  EXPECT_TRUE(tokens_.identify("basic " + password, 1000).ok());
  EXPECT_FALSE(tokens_.identify("Bearer " + password, 1000).ok());
}

TEST_F(TokensTest, Expire) {
  const NewToken boss = make("infrastructure"), job = make("job", 2000, "vision");
  const auto before = tokens_.identify(bearer(job), 1999);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(before->team, "vision");
  EXPECT_TRUE(tokens_.holds(*before, 1999));
  EXPECT_FALSE(tokens_.holds(*before, 2000));
  EXPECT_THAT(tokens_.identify(bearer(job), 2000).error().message, HasSubstr("expired"));
  EXPECT_TRUE(tokens_.identify(bearer(boss), 1e12).ok());
}

TEST_F(TokensTest, OnceRequiredAreRequiredOfAllClients) {
  const auto anybody = tokens_.identify("", 1000);
  ASSERT_TRUE(anybody.ok());
  EXPECT_TRUE(tokens_.holds(*anybody, 1000));
  make("infrastructure");
  EXPECT_FALSE(tokens_.holds(*anybody, 1000));
}

TEST_F(TokensTest, TheFirstSecretIsOfUseOnlyBeforeTheFirstToken) {
  EXPECT_TRUE(tokens_.shows_first_secret("Bearer " + tokens_.first_secret()));
  EXPECT_FALSE(tokens_.shows_first_secret("Bearer perseus_first_guess"));
  EXPECT_FALSE(tokens_.shows_first_secret(""));
  make("infrastructure");
  EXPECT_FALSE(tokens_.shows_first_secret("Bearer " + tokens_.first_secret()));
}

TEST(WrongTokens, AreCountedByAddressAndForgotten) {
  routes::WrongTokens wrong;
  for (int i = 0; i < routes::WrongTokens::kAllowed; ++i) EXPECT_FALSE(wrong.count("a", 100 + i));
  EXPECT_TRUE(wrong.count("a", 130));
  EXPECT_FALSE(wrong.count("b", 130));
  EXPECT_FALSE(wrong.count("a", 100 + routes::WrongTokens::kWithin_s));
  EXPECT_FALSE(wrong.count("a", 1));  // the clock was set back
  EXPECT_EQ(wrong.total(), 24U);
  for (int i = 0; i < 30000; ++i) wrong.count(std::to_string(i), 500);  // more addresses than it may remember
}

}  // namespace
}  // namespace perseus::access
