#include "server/live/job_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::live {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

store::JobIndexRow row_of(const std::string& job) {
  store::JobIndexRow row;
  row.job = job;
  return row;
}

TEST(JobIndex, RecordsEachChangedRowOnce) {
  testing::TestHooks hooks;
  JobIndex index(hooks);
  index.emplace("a", row_of("a"));
  index.emplace("b", row_of("b"));
  index["a"].state = "deployed";
  index.note("b");
  EXPECT_THAT(index.take_changed(), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(index.take_changed(), IsEmpty());
  index.emplace("a", row_of("a"));
  EXPECT_THAT(index.take_changed(), IsEmpty()) << "the row existed and stayed as it was";
  EXPECT_EQ(index.find("a")->second.state, "deployed");
}

TEST(JobIndex, AnErasedRowIsAChangeWithItsLastState) {
  testing::TestHooks hooks;
  JobIndex index(hooks);
  index.emplace("a", row_of("a"));
  index["a"].state = "finished";
  index.take_changed();
  index.erase("b");
  index.erase(index.find("a")->first);  // the id is in the row that goes
  EXPECT_THAT(hooks.erased, ElementsAre("a finished"));
  EXPECT_THAT(index.take_changed(), UnorderedElementsAre("a"));
  EXPECT_EQ(index.size(), 0U);
}

}  // namespace
}  // namespace perseus::live
