// Which events of all jobs the feed has, after which reads.
#include "server/views/recent_events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::views {
namespace {

using Texts = std::vector<std::string>;

class RecentEventsTest : public ::testing::Test {
 protected:
  struct Server {
    explicit Server(std::shared_ptr<testing::TestDatabase> database, double began_s = 1'800'000'000)
        : base(std::move(database)),
          recent(std::make_shared<RecentEvents>(base.jobs(), base.access_to_store(), base.clock())) {
      base.clock().turn_to(began_s);
      base.hooks.on_committed = [this](live::LiveJob& live, const auto& events) { recent->take(live.job.id, events); };
    }
    void open() { ASSERT_TRUE(base.jobs().open(base.store()).ok()); }
    void append(const std::string& job, const jobs::EventBody& event) {
      base.clock().advance(10);
      base.append(job, {event});
    }
    Result<RecentEvents::Page> page(const RecentEvents::Query& query = {100, {}, {}}) {
      testing::Answer<RecentEvents::Page> answer;
      recent->page(query, answer.take());
      base.settle();
      return *answer;
    }
    Texts listed() {
      Texts texts;
      const auto shown = page();
      for (const jobs::JobEvent& event : shown.value().events) {
        texts.push_back(fmt::format("{} {} {}", event.job, event.kind, event.by));
      }
      return texts;
    }
    testing::JobsInMemory base;
    std::shared_ptr<RecentEvents> recent;
  };

  std::shared_ptr<testing::TestDatabase> database = std::make_shared<testing::TestDatabase>();
  Server one{database};
};

TEST_F(RecentEventsTest, AServerThatStartsReadsThePast) {
  one.base.create("a");
  one.append("a", jobs::PolicySet{jobs::PowerCap{Watts(5)}, "alice"});
  Server other(database, 1'800'001'000);
  other.open();
  EXPECT_EQ(other.listed(), (Texts{"a policy_set alice", "a job_registered "}));
  EXPECT_EQ(other.page()->events.size(), 2U) << "each event once";
}

TEST_F(RecentEventsTest, ItsNumberIsBounded) {
  one.base.create("a");
  std::vector<live::SequencedEvent> many;
  for (std::size_t k = 0; k < RecentEvents::kMostEvents + 10; ++k) {
    const double at_s = 1e9 + static_cast<double>(k);
    many.push_back({static_cast<std::int64_t>(k + 10), {at_s, jobs::PolicyCleared{"power_cap", "alice"}}});
  }
  one.recent->take("a", many);
  const auto page = one.page({1'000'000, {}, {}});
  EXPECT_EQ(page->events.size(), RecentEvents::kMostEvents);
}

TEST_F(RecentEventsTest, ARemovalHasItsAuthorAndADamagedLogHidesNoOtherJob) {
  one.base.create("a");
  one.base.create("b");
  one.recent->expect_removal("a", "alice");
  one.recent->job_removed(one.base.jobs().index().find("a")->second);
  EXPECT_EQ(one.listed().size(), 3U);
  EXPECT_EQ(one.page()->events.front().by, "alice");
  Server other(database);
  other.open();
  database->damaged.insert("a");
  EXPECT_EQ(other.listed(), Texts{"b job_registered "});
}

TEST_F(RecentEventsTest, WhileTheStoreDoesNotAnswerThatIsTheAnswer) {
  one.base.create("a");
  Server other(database);
  other.open();
  database->failure = Error{ErrorCode::unavailable, "no answer"};
  EXPECT_EQ(other.page().error().code, ErrorCode::unavailable);
  database->failure.reset();
  EXPECT_EQ(other.listed(), Texts{"a job_registered "});
}

TEST(EventCursor, IsRefusedWhereItIsNone) {
  for (const char* const text : {"", "1", "1,2", "x,2,a", "1,x,a", "inf,2,a"}) {
    EXPECT_FALSE(parse_event_cursor(text)) << text;
  }
}

}  // namespace
}  // namespace perseus::views
