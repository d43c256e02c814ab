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

}  // namespace
}  // namespace perseus::live
