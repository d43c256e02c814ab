// How many waiting calls and event streams one token and one address may hold.
#include "server/access/held_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace perseus::access {
namespace {

using HeldKind = HeldCalls::Kind;
using ::testing::HasSubstr;

HeldCalls::Caller caller(const std::string& token, const std::string& address, HeldKind kind) {
  Identity identity;
  identity.token = token;
  return {identity, address, kind};
}

TEST(HeldCalls, AreLimitedPerTokenAndPerAddress) {
  HeldCalls held({.waits_per_token = 2, .streams_per_token = 2, .streams_per_address = 3});
  const auto a = caller("aaaa", "192.0.2.1", HeldKind::stream), b = caller("bbbb", "192.0.2.1", HeldKind::stream);
  const HeldCalls::Id first = held.add(a, [] {});
  held.add(a, [] {});
  ASSERT_TRUE(held.full(a));
  EXPECT_THAT(*held.full(a), HasSubstr("the token aaaa: 2; allowed: 2"));
  EXPECT_FALSE(held.full(caller("aaaa", "192.0.2.1", HeldKind::wait))) << "waits are counted apart";
  held.add(b, [] {});
  ASSERT_TRUE(held.full(b));
  EXPECT_THAT(*held.full(b), HasSubstr("from 192.0.2.1: 3; allowed: 3"));
  EXPECT_FALSE(held.full(caller("bbbb", "192.0.2.2", HeldKind::stream)));
  held.remove(first);
  EXPECT_FALSE(held.full(a));
}

TEST(HeldCalls, WithoutTokensOnLoopbackThereIsNoLimit) {
  HeldCalls held({.waits_per_token = 0, .streams_per_token = 0, .streams_per_address = 0});
  EXPECT_FALSE(held.full(caller("", "127.0.0.1", HeldKind::wait)));
  EXPECT_FALSE(held.full(caller("", "127.0.0.1", HeldKind::stream)));
  EXPECT_TRUE(held.full(caller("", "192.0.2.1", HeldKind::stream)));
}

TEST(HeldCalls, AnEndedCallReleasesItsSlot) {
  HeldCalls held({.waits_per_token = 1, .streams_per_token = 1, .streams_per_address = 1});
  const auto wait = caller("aaaa", "192.0.2.1", HeldKind::wait);
  int ended = 0;
  held.add(wait, [&] { ++ended; });
  held.end_unless([](const Identity&) { return false; });
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(held.full(wait));
}

TEST(HeldCalls, TheOwnerOfACallLastsAsLongAsTheCall) {
  HeldCalls held;
  HeldCalls::Caller nothing = caller("aaaa", "192.0.2.1", HeldKind::wait);
  nothing.waits = 0;
  held.add(nothing, [] {});
  const HeldCalls::Id wait = held.add(caller("aaaa", "192.0.2.2", HeldKind::wait), [] {});
  const HeldCalls::Id stream = held.add(caller("aaaa", "192.0.2.2", HeldKind::stream), [] {});
  held.remove(wait);
  held.remove(stream);
  held.add(caller("bbbb", "192.0.2.2", HeldKind::wait), [] {});
  std::multiset<std::string> tokens;
  held.end_unless([&](const Identity& identity) { return tokens.insert(identity.token), true; });
  EXPECT_THAT(tokens, ::testing::ElementsAre("aaaa", "bbbb"));
}

}  // namespace
}  // namespace perseus::access
