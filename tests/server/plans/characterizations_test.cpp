#include "server/plans/characterizations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

using ::testing::ElementsAre;
using testing::two_stages_input;

/// The input of two_stages.h in the store, not planned yet.
class CharacterizationsTest : public ::testing::Test {
 protected:
  CharacterizationsTest() {
    parts_.base.create("job");
    parts_.base.append("job", {input_.event}, {input_.blob});
  }
  Characterizations& all() { return *parts_.characterizations; }
  void want(const std::string& key, const std::string& wanter) {
    all().want(key, {wanter, "owner"}, [this](const Result<Characterizations::Frontier>& answer) {
      answers_.push_back(answer ? (*answer)->frontier.points.size() : 0);
      if (!answer) errors_.push_back(answer.error().message);
    });
  }

  testing::ServiceParts parts_;
  profiles::KnownInput input_ = two_stages_input();
  std::string key_ = input_.event.input;
  std::vector<std::size_t> answers_;
  std::vector<std::string> errors_;
};

TEST_F(CharacterizationsTest, AnInputIsPlannedOnceForAllWanters) {
  want(key_, "one");
  want(key_, "other");
  parts_.base.settle();
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_GT(answers_[0], 0U);
  EXPECT_EQ(answers_[0], answers_[1]);
  EXPECT_EQ(all().computed(), 1);
  EXPECT_EQ(all().running(), 0);
  EXPECT_NE(all().known(key_), nullptr);
  want(key_, "third");
  parts_.base.settle();
  EXPECT_EQ(answers_.size(), 3U);
  EXPECT_EQ(all().computed(), 1) << "it is not planned again";
}

TEST_F(CharacterizationsTest, TheLogSaysOnceThatAPlanIsLate) {
  want(key_, "one");
  want(key_, "two");
  for (int s = 0; s < 60; ++s) {
    parts_.base.clock().advance(1);
    parts_.due.perform(parts_.now_s());
    EXPECT_EQ(parts_.log.empty(), s < 19) << s << " s";
    EXPECT_EQ(parts_.due.next().has_value(), s < 19) << s << " s";
  }
  EXPECT_THAT(parts_.log, ElementsAre("job one and 1 more: no plan after 20 s (it is being read); its ranks run at "
                                      "the highest clock until then"));
}

TEST_F(CharacterizationsTest, AnotherServerReadsTheFrontierInsteadOfPlanning) {
  want(key_, "one");
  parts_.base.settle();
  testing::ServiceParts other(parts_.database);
  std::size_t points = 0;
  other.characterizations->want(key_, {"one", "owner"}, [&](const Result<Characterizations::Frontier>& answer) {
    points = (*answer)->frontier.points.size();
  });
  other.base.settle();
  EXPECT_EQ(points, answers_.front());
  EXPECT_EQ(other.characterizations->computed(), 0);
}

TEST_F(CharacterizationsTest, WorkWithoutWantersIsNotPlanned) {
  want(key_, "one");
  all().forget(key_, "one");
  parts_.base.settle();
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(all().computed(), 0);
}

TEST_F(CharacterizationsTest, AnInputThatIsNotInTheStoreIsAnError) {
  want("no such input", "one");
  parts_.base.settle();
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_EQ(all().failed(), 1);
}

}  // namespace
}  // namespace perseus::plans
