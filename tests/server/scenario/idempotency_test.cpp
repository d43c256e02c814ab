// Registering a job with an idempotency key: the same key yields the same job, whatever happens in between.
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/stored_log.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;

jobs::RegisterJob keyed(const std::string& key, const std::string& fingerprint = "f", const std::string& token = "") {
  jobs::RegisterJob job;
  job.degrees = {1, 2, 1};
  job.idempotency_key = key;
  job.fingerprint = fingerprint;
  if (!token.empty()) job.facts["token"] = token;
  return job;
}

TEST(IdempotencyKey, AnotherKeyOrTokenIsAnotherJob) {
  InProcess target;
  const std::string first = target.register_job(keyed("1234567890123456"))->job;
  EXPECT_NE(target.register_job(keyed("1234567890123457"))->job, first);
  EXPECT_NE(target.register_job(keyed("1234567890123456", "f", "t"))->job, first);
  EXPECT_EQ(target.database().jobs().size(), 3U);
}

TEST(IdempotencyKey, LeavesTheJobsOwnFactsAlone) {
  InProcess target;
  jobs::RegisterJob job = keyed("1234567890123456");
  job.facts["idempotency"] = "mine";
  const std::string id = target.register_job(job)->job;
  EXPECT_EQ(folded(target.database(), id).spec.facts.at("idempotency"), "mine");
  EXPECT_EQ(target.register_job(job)->job, id);

  job.facts["perseus.request"] = "mine";
  job.idempotency_key = "1234567890123457";
  const auto refused = target.register_job(job);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "facts: 'perseus.request'; allowed: names that do not begin with 'perseus.', as the server's own do");
}

}  // namespace
}  // namespace perseus::testing
