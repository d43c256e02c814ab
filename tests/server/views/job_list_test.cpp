// Pages of the job list while jobs are added and removed, and the changed rows.
#include "server/views/job_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/routes/list_pages.h"

namespace perseus::views {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

jobs::JobHeader header(const std::string& job, double created_s, const std::string& state = "deployed") {
  return {job, "name of " + job, state, created_s, created_s};
}

std::vector<std::string> names(const JobList::Page& page) {
  std::vector<std::string> found;
  for (const auto& [place, one] : page.rows) found.push_back(place->job);
  return found;
}

class JobListTest : public ::testing::Test {
 protected:
  void put(const std::string& job, double created_s, const std::string& state = "deployed") {
    list_.put({header(job, created_s, state), {}}, 0);
  }
  JobList::Page page(std::size_t limit, const std::optional<JobList::Place>& after = {}) {
    return list_.page({limit, after, {}});
  }
  JobList list_;
};

TEST_F(JobListTest, PagesHaveEachJobOnceNewestFirst) {
  for (const auto& [job, created_s] : {std::pair{"a", 1.0}, {"c", 3.5}, {"b", 2.25}, {"d", 3.5}}) put(job, created_s);
  const auto first = page(2);
  EXPECT_THAT(names(first), ElementsAre("c", "d"));
  ASSERT_TRUE(first.next);
  const auto second = page(2, parse_cursor(format_cursor(*first.next)));
  EXPECT_THAT(names(second), ElementsAre("b", "a"));
  EXPECT_FALSE(second.next) << "nothing follows";
}

TEST_F(JobListTest, ACursorStaysRightWhileJobsComeAndGo) {
  for (int i = 0; i < 6; ++i) put("j" + std::to_string(i), i);
  const auto first = page(2);
  EXPECT_THAT(names(first), ElementsAre("j5", "j4"));
  const auto cursor = parse_cursor(format_cursor(*first.next));
  put("j6", 6);        // on the previous page
  list_.remove("j4");  // the job that the cursor names
  list_.remove("j3");
  EXPECT_THAT(names(page(2, cursor)), ElementsAre("j2", "j1"));
}

TEST_F(JobListTest, OnlyAChangeChangesTheRevision) {
  put("a", 1);
  const std::uint64_t before = list_.revision();
  put("a", 1);
  EXPECT_EQ(list_.revision(), before);
  put("a", 1, "finished");
  EXPECT_NE(list_.revision(), before);
  EXPECT_THAT(page(9).rows.front().second->text, HasSubstr(R"("state":"finished")"));
}

TEST_F(JobListTest, ReportsEachChangeOnceWithItsOwner) {
  put("old", 1);
  list_.keep_changes(true);
  EXPECT_THAT(list_.take_changes(), IsEmpty());
  jobs::JobSummary summary;
  summary.owner = "aaaa";
  list_.put({header("new", 2), summary}, 0);
  list_.put({header("new", 2, "finished"), summary}, 0);
  list_.remove("old");
  const auto changes = list_.take_changes();
  ASSERT_EQ(changes.size(), 2);
  EXPECT_EQ(changes[0].job, "new");
  EXPECT_EQ(changes[0].owner, "aaaa");
  EXPECT_THAT(changes[0].text.value_or(""), HasSubstr("finished"));
  EXPECT_EQ(changes[1].job, "old");
  EXPECT_FALSE(changes[1].text);
  EXPECT_THAT(list_.take_changes(), IsEmpty());
}

TEST_F(JobListTest, AnInvalidCursorIsRefused) {
  for (const char* const wrong : {"", "j1", "x,j1", "1e999,j1", "nan,j1", ",j"})
    EXPECT_FALSE(parse_cursor(wrong)) << wrong;
}

class ListPagesTest : public ::testing::Test {
 protected:
  http::HttpResponse ask(std::uint64_t revision, const std::string& whose = "", double now_s = 0) {
    http::HttpRequest request;
    request.method = "GET";
    return pages_.answer(request, {"100", whose, revision, now_s}, [&] {
      ++made_;
      return "{\"jobs\":\"" + whose + std::string(5000, 'x') + "\"}";
    });
  }
  routes::ListPages pages_{"s1"};
  int made_ = 0;
};

TEST_F(ListPagesTest, APageIsMadeOnceUntilTheListChanges) {
  const auto first = ask(1), again = ask(1);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(first.body, again.body) << "the same bytes, shared";
  ask(2);
  EXPECT_EQ(made_, 2);
  ask(2, "", 61);
  EXPECT_EQ(made_, 3) << "estimated savings grow with time";
}

TEST_F(ListPagesTest, TokensDoNotGetOneAnothersPages) {
  EXPECT_THAT(*ask(1, "aaaa").body, HasSubstr("aaaa"));
  EXPECT_THAT(*ask(1, "bbbb").body, HasSubstr("bbbb"));
  EXPECT_NE(ask(1, "aaaa").headers, ask(1, "bbbb").headers) << "nor is one's tag the other's";
}

}  // namespace
}  // namespace perseus::views
