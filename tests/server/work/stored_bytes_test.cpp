#include "server/work/stored_bytes.h"

#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::work {
namespace {

class StoredBytesTest : public ::testing::Test {
 protected:
  /// A job of that token whose log has so many bytes and which holds the blob "shared".
  void job(const std::string& id, const std::string& token, std::int64_t bytes) {
    testing::TestDatabase& database = base_.database();
    store::JobIndexRow row;
    row.job = id;
    row.summary = R"({"owner":")" + token + R"("})";
    database.put_blob("shared", std::string(1000, 'x'));
    database.put_job(row, {{1, std::string(static_cast<std::size_t>(bytes), 'x')}}, {"shared"});
  }
  Result<StoredBytes::ByToken> count() {
    testing::Answer<StoredBytes::ByToken> answer;
    base_.access_to_store().read<StoredBytes::ByToken>([](store::Store& store) { return StoredBytes::count(store); },
                                                       answer.take());
    base_.settle();
    return *answer;
  }
  double now_s() { return base_.clock().now_s(); }

  testing::JobsInMemory base_;
  Due due_;
};

TEST_F(StoredBytesTest, CountsLogsAndHeldBlobsOnceForEachToken) {
  job("a1", "a", 10);
  job("a2", "a", 20);
  job("b1", "b", 5);
  const auto bytes = count();
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->at("a"), 1030);
  EXPECT_EQ(bytes->at("b"), 1005);
}

TEST_F(StoredBytesTest, AddsWritesUntilTheNextCorrection) {
  job("a1", "a", 10);
  const auto stored = std::make_shared<StoredBytes>(base_.access_to_store(), due_, count(), now_s());
  EXPECT_EQ(stored->of("a"), 1010);
  stored->add("a", 7);
  EXPECT_EQ(stored->of("a"), 1017);
  base_.clock().advance(599);
  due_.perform(now_s());
  base_.settle();
  EXPECT_EQ(stored->of("a"), 1017) << "corrected every ten minutes";
  base_.database().add_event("a1", "12345");
  base_.clock().advance(1);
  due_.perform(now_s());
  stored->add("a", 100);  // may not be in the count under way
  EXPECT_EQ(stored->of("a"), 1117);
  base_.settle();
  EXPECT_EQ(stored->of("a"), 1115);
  EXPECT_EQ(stored->of("other"), 0);
}

TEST_F(StoredBytesTest, KeepsTheSumWhileTheStoreFailsAndCountsAtOnceIfItNeverHas) {
  job("a1", "a", 10);
  const auto stored = std::make_shared<StoredBytes>(
      base_.access_to_store(), due_, Error{ErrorCode::unavailable, "database: it does not answer"}, now_s());
  stored->add("a", 3);
  EXPECT_EQ(stored->of("a"), 3);
  base_.database().failure = Error{ErrorCode::unavailable, "gone"};
  due_.perform(now_s());
  base_.settle();
  EXPECT_EQ(stored->of("a"), 3);
  base_.database().failure.reset();
  base_.clock().advance(600);
  due_.perform(now_s());
  base_.settle();
  EXPECT_EQ(stored->of("a"), 1010);
}

}  // namespace
}  // namespace perseus::work
