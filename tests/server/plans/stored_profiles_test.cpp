// Named and learned profiles in the store.
#include "server/plans/stored_profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kTwoStages;
using ::testing::SizeIs;

class StoredProfilesTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  static jobs::NamedProfile named(const std::string& name, const std::string& csv = kTwoStages) {
    jobs::NamedProfile profile{name, csv, {}, "NVIDIA H100"};
    profile.shape.microbatches = 2;
    return profile;
  }
  Result<jobs::StoredProfile> put(const jobs::NamedProfile& profile) {
    return answer_of<jobs::StoredProfile>([&](auto done) { profiles->put(profile, done); });
  }
  Result<jobs::NamedProfile> get(const std::string& name) {
    return answer_of<jobs::NamedProfile>([&](auto done) { profiles->get(name, done); });
  }
  std::vector<jobs::LearnedProfile> learned() {
    return answer_of<std::vector<jobs::LearnedProfile>>([&](auto done) { profiles->learned(done); }).value();
  }
  /// A profile that the job "teacher" has learned, with its input in the store.
  void learn() {
    const profiles::KnownInput known = testing::two_stages_input();
    base.database().put_blob(known.blob.key, known.blob.bytes);
    jobs::LearnedProfile profile{"", known.event.input, "", "gpt3", "teacher"};
    base.database().put_blob(kKey, live::learned_blob(kKey, profile).bytes);
    trial_ = {known.event, kKey, known.event.input, "teacher"};
  }
  void note_trial(bool agreed) {
    profiles->note_trial("pupil", trial_, {agreed, "the figures"});
    base.settle();
  }

  const std::string kKey = std::string(live::kLearnedPrefix) + "setup";
  jobs::ProfileOnTrial trial_;
};

TEST_F(StoredProfilesTest, ItsFrontierIsPlannedBeforeAJobNamesIt) {
  ASSERT_TRUE(put(named("a100")).ok());
  EXPECT_EQ(characterizations->computed(), 1);
  EXPECT_TRUE(base.database().has_blob("frontier/" + testing::two_stages_input().event.input));
  ASSERT_TRUE(put(named("a100")).ok());
  EXPECT_EQ(characterizations->computed(), 1) << "the same input";
}

TEST_F(StoredProfilesTest, ErrorsNameTheValueAndStoreNothing) {
  EXPECT_EQ(put(named(".hidden")).error().code, ErrorCode::usage);
  EXPECT_EQ(get("a b").error().code, ErrorCode::usage);
  EXPECT_THAT(put(named("a100", "stage,time\n")).error().message, HasSubstr("a100"));
  jobs::NamedProfile unprintable = named("a100");
  unprintable.accelerator = "H100\n";
  EXPECT_THAT(put(unprintable).error().message, HasSubstr("accelerator"));
  EXPECT_THAT(base.database().blobs(), IsEmpty());
}

TEST_F(StoredProfilesTest, ATrialOfAnEarlierProfileChangesNothing) {
  learn();
  trial_.learned_input = "replaced";
  note_trial(false);
  EXPECT_EQ(learned().at(0).doubted_by, "");
  base.database().remove_blob(kKey);
  note_trial(true);
  EXPECT_THAT(learned(), IsEmpty()) << "forgotten meanwhile";
}

TEST_F(StoredProfilesTest, ALearnedProfileIsUsedUnlessItIsDoubtedOrUnreadable) {
  testing::TestStore reader([](const std::function<void()>& work) { work(); },
                            std::shared_ptr<testing::TestDatabase>(&base.database(), [](auto*) {}));
  const auto is_used = [&] { return read_learned_input(reader, kKey).value().has_value(); };
  EXPECT_FALSE(is_used());
  learn();
  EXPECT_TRUE(is_used());
  base.database().damaged.insert("input/" + trial_.learned_input);
  EXPECT_FALSE(is_used());
  base.database().damaged.clear();
  note_trial(false);
  EXPECT_FALSE(is_used());
}

TEST_F(StoredProfilesTest, ADamagedLearnedProfileHidesNoOther) {
  learn();
  base.database().put_blob(kKey + "2", "{ damaged");
  EXPECT_THAT(learned(), SizeIs(1));
  const auto forget = [&](const std::string& id) {
    return answer_of<Ok>([&](auto done) { profiles->forget_learned(id, done); });
  };
  EXPECT_TRUE(forget("setup").ok());
  EXPECT_THAT(learned(), SizeIs(0));
}

}  // namespace
}  // namespace perseus::plans
