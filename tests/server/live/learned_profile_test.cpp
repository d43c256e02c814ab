#include "server/live/learned_profile.h"

#include <gtest/gtest.h>

namespace perseus::live {
namespace {

using Facts = std::map<std::string, std::string>;

TEST(LearnedProfileKey, IdentifiesTheSetupAndNotItsSize) {
  const Facts facts = {{"model", "gpt3"}, {"framework", "megatron"}, {"team", "vision"}};
  jobs::PipelineShape shape;
  shape.microbatches = 4;
  const std::string key = learned_key({2, 4, 1}, facts, shape);
  EXPECT_FALSE(key.empty());
  EXPECT_EQ(learned_key({8, 4, 1}, facts, shape), key) << "more pipelines";
  jobs::PipelineShape longer = shape;
  longer.microbatches = 16;
  EXPECT_EQ(learned_key({2, 4, 1}, facts, longer), key) << "more microbatches";
  EXPECT_NE(learned_key({2, 8, 1}, facts, shape), key) << "other stages";
  for (const char* name : {"model", "framework", "team"}) {
    Facts other = facts;
    other[name] = "other";
    EXPECT_NE(learned_key({2, 4, 1}, other, shape), key) << name;
  }
}

TEST(LearnedProfileKey, IsEmptyWithoutAModel) {
  EXPECT_EQ(learned_key({1, 4, 1}, {{"framework", "megatron"}}, {}), "");
  EXPECT_EQ(learned_key({1, 4, 1}, {{"model_name", "gpt3"}}, {}), learned_key({1, 4, 1}, {{"model", "gpt3"}}, {}))
      << "the published client's name of that fact";
}

TEST(LearnedProfileBlob, ReadingReversesWriting) {
  jobs::LearnedProfile learned;
  learned.input = "abc";
  learned.team = "vision";
  learned.model = "gpt3";
  learned.job = "j_1";
  learned.learned_at_s = 1'800'000'000;
  learned.confirmed = 2;
  learned.doubted_by = "j_2";
  const store::Blob blob = learned_blob("known/key", learned);
  EXPECT_EQ(blob.key, "known/key");
  const auto read = parse_learned(blob.key, blob.bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->id, "key");
  EXPECT_EQ(read->input, "abc");
  EXPECT_EQ(read->team, "vision");
  EXPECT_EQ(read->confirmed, 2);
  EXPECT_EQ(read->doubted_by, "j_2");
  EXPECT_FALSE(parse_learned("known/key", "{").ok());
}

}  // namespace
}  // namespace perseus::live
