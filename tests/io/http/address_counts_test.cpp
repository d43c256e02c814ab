// Which addresses count as the same, and how many connections one address may have.
#include "io/http/address_counts.h"

#include <gtest/gtest.h>

namespace perseus::http {
namespace {

TEST(AddressCounts, OneMoreThanAllowedIsRefusedUntilOneIsGivenBack) {
  AddressCounts counts;
  EXPECT_TRUE(counts.take("192.0.2.1", 2));
  EXPECT_TRUE(counts.take("192.0.2.1", 2));
  EXPECT_FALSE(counts.take("192.0.2.1", 2));
  EXPECT_TRUE(counts.take("192.0.2.2", 2)) << "another address";
  counts.give_back("192.0.2.1");
  EXPECT_TRUE(counts.take("192.0.2.1", 2));
  EXPECT_FALSE(counts.take("192.0.2.1", 2));
}

TEST(AddressCounts, AHostHasAnIpv6NetworkToItself) {
  EXPECT_EQ(counted_address("2001:db8::1"), counted_address("2001:db8::ffff:1"));
  EXPECT_NE(counted_address("2001:db8::1"), counted_address("2001:db8:0:1::1"));
  EXPECT_EQ(counted_address("::ffff:192.0.2.1"), "192.0.2.1");
}

TEST(AddressCounts, LoopbackHasNoLimit) {
  AddressCounts counts;
  for (const char* const own : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(counts.take(own, 0)) << own;
    counts.give_back(own);
  }
  EXPECT_FALSE(counts.take("192.0.2.1", 0));
}

}  // namespace
}  // namespace perseus::http
