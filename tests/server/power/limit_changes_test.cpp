// Changes of a site's limits as events.
#include "server/power/limit_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::power {
namespace {

using ::testing::ElementsAre;

jobs::SiteDocument site_of(const std::string& domains) {
  return jobs::parse_site_document(R"({"domains":[)" + domains + "]}", "a test").value();
}

class LimitChangesTest : public ::testing::Test {
 protected:
  struct Server : LimitListener {
    explicit Server(std::shared_ptr<testing::TestDatabase> database) : base(std::move(database)) {}
    testing::JobsInMemory base;
    std::vector<std::string> events;
    std::shared_ptr<LimitChanges> changes = std::make_shared<LimitChanges>(base.access_to_store(), base.clock(), *this);
    void limit_changed(jobs::JobEvent event) override {
      events.push_back(event.job + ": " + event.text + (event.by.empty() ? "" : " by " + event.by));
    }
  };
  std::shared_ptr<testing::TestDatabase> database_ = std::make_shared<testing::TestDatabase>();
  Server one_{database_};
};

TEST_F(LimitChangesTest, OfALaterTimeNameIt) {
  one_.base.clock().turn_to(1'800'000'000);
  const auto before = site_of(R"({"name":"hall","limits":[{"limit_w":900}]})");
  const auto after = site_of(R"({"name":"hall","limits":[{"limit_w":900},{"from_s":1800003600,"limit_w":700}]})");
  one_.changes->note(&before, &after, "");
  one_.base.settle();
  EXPECT_THAT(one_.events, ElementsAre("site/hall: limit from 2027-01-15T09:00:00Z on: 0.7 kW; before: 0.9 kW"));
  one_.events.clear();
  one_.base.clock().turn_to(1'800'010'000);
  const auto past = site_of(R"({"name":"hall","limits":[{"limit_w":900},{"from_s":1800003600,"limit_w":700},)"
                            R"({"from_s":1800007200,"limit_w":900}]})");
  one_.changes->note(&before, &past, "");
  one_.base.settle();
  EXPECT_THAT(one_.events, ElementsAre()) << "what is over changes nothing";
}

TEST_F(LimitChangesTest, ALaterStartHasThoseThatFollowEachOther) {
  const auto high = site_of(R"({"name":"hall","limits":[{"limit_w":900}]})");
  const auto low = site_of(R"({"name":"hall","limits":[{"limit_w":700}]})");
  one_.changes->note(&high, &low, "alice");
  one_.changes->note(&low, &high, "bob");
  EXPECT_THAT(one_.events, ElementsAre()) << "not stored";
  one_.base.settle();
  EXPECT_EQ(one_.events.size(), 2);
  Server later(database_);
  ASSERT_TRUE(later.changes->open(later.base.store()).ok());
  EXPECT_EQ(later.events, one_.events);
}

}  // namespace
}  // namespace perseus::power
