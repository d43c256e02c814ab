// Registering jobs: one job per idempotency key, and what counts for a token meanwhile.
#include "server/service/registrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/live/learned_profile.h"
#include "tests/server/service/service_parts.h"

namespace perseus::service {
namespace {

using testing::Answer;
using ::testing::SizeIs;

class RegistrationsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  RegistrationsTest() {
    options.random_id = [this] { return std::to_string(++ids_); };
  }
  static jobs::RegisterJob request(const std::string& key = "", const std::string& body = "") {
    jobs::RegisterJob job;
    job.degrees = {1, 2, 1};
    job.facts[std::string(live::kOwnerFact)] = "token";
    job.idempotency_key = key;
    job.fingerprint = body;
    return job;
  }

  int ids_ = 0;
  std::shared_ptr<Registrations> registrations_ =
      std::make_shared<Registrations>(options, now_s(), base.jobs(), base.access_to_store(), base.clock(),
                                      static_cast<work::Executor&>(base), access, waiting);
};

TEST_F(RegistrationsTest, AJobCountsForItsTokenUntilItIsAnswered) {
  Answer<jobs::RegisterJobAnswer> made;
  registrations_->register_job(request(), made.take());
  EXPECT_EQ(registrations_->under_way("token").jobs, 1);
  EXPECT_EQ(registrations_->under_way("token").ranks, 2);
  base.settle();
  ASSERT_TRUE(made.given() && made->ok());
  EXPECT_EQ((*made)->job, "j_1");
  EXPECT_EQ(registrations_->under_way("token").jobs, 0);
}

TEST_F(RegistrationsTest, TheSameKeyTwiceAtOnceIsOneJob) {
  Answer<jobs::RegisterJobAnswer> first, second, other_body;
  registrations_->register_job(request("key", "body"), first.take());
  registrations_->register_job(request("key", "body"), second.take());
  base.settle();
  ASSERT_TRUE(first.given() && first->ok() && second.given() && second->ok());
  EXPECT_EQ((*first)->job, (*second)->job);
  EXPECT_THAT(base.database().jobs(), SizeIs(1));
  registrations_->register_job(request("key", "another body"), other_body.take());
  base.settle();
  EXPECT_EQ(other_body->error().code, ErrorCode::invalid_input);
}

}  // namespace
}  // namespace perseus::service
