// perseus.h without a server and without a GPU: every call is allowed and has no effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <perseus/perseus.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

perseus::api::Options quiet() {
  perseus::api::Options options;
  options.device = "none";
  options.log = [](void*, int, const char*) {};
  return options;
}

TEST(CAbi, ANullClientDoesNothing) {
  perseus_step_begin(nullptr, PERSEUS_TRAIN);
  perseus_set_speed(nullptr, PERSEUS_FORWARD, -1, -1);
  perseus_begin(nullptr, PERSEUS_FORWARD, -1, -1);
  perseus_end(nullptr, PERSEUS_FORWARD, -1, -1);
  perseus_step_end(nullptr);
  EXPECT_STREQ(perseus_job(nullptr), "");
  EXPECT_EQ(perseus_status(nullptr, nullptr, 0), 2U);
  perseus_statistics statistics{};
  statistics.size = sizeof(statistics);
  perseus_statistics_get(nullptr, &statistics);
  EXPECT_EQ(statistics.iteration, 0);
  perseus_stop(nullptr);
}

TEST(CAbi, NamesAreThoseOfTheModel) {
  EXPECT_EQ(perseus_instruction_named("forward"), PERSEUS_FORWARD);
  EXPECT_EQ(perseus_instruction_named("optimizer_step"), PERSEUS_OPTIMIZER_STEP);
  EXPECT_EQ(perseus_instruction_named("sideways"), -1);
  EXPECT_EQ(perseus_instruction_named(nullptr), -1);
  EXPECT_EQ(perseus_abi_version(), PERSEUS_ABI_VERSION);
}

TEST(CAbi, CountsTrainingStepsOnly) {
  perseus::api::Client client(quiet());
  ASSERT_NE(client.get(), nullptr);
  for (int i = 0; i < 3; ++i) {
    const perseus::api::TrainingStep step(client);
    for (int m = 0; m < 4; ++m) const perseus::api::TimedComputation forward(client, PERSEUS_FORWARD);
  }
  { const perseus::api::TrainingStep step(client, PERSEUS_EVALUATE); }
  EXPECT_EQ(client.statistics().iteration, 3);
}

TEST(CAbi, CallsThatMakeNoSenseAreHarmless) {
  perseus::api::Client client(quiet());
  perseus_end(client.get(), PERSEUS_FORWARD, 0, 0);
  perseus_begin(client.get(), 77, 0, 0);
  perseus_step_end(client.get());
  perseus_step_begin(client.get(), PERSEUS_TRAIN);
  perseus_step_begin(client.get(), PERSEUS_TRAIN);
  for (int i = 0; i < 10000; ++i) perseus_begin(client.get(), PERSEUS_BACKWARD, -5, 1 << 30);
  perseus_end(client.get(), -1, 0, 0);
  perseus_step_end(client.get());
  EXPECT_EQ(client.statistics().iteration, 2);
}

TEST(CAbi, NoExceptionOfTheProgramsClockLeavesACall) {
  perseus::api::Client client(quiet());
  perseus_time_with(
      client.get(), [](void*) -> std::uint64_t { throw std::runtime_error("no time"); }, nullptr);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NO_THROW(perseus_step_begin(client.get(), PERSEUS_TRAIN));
    EXPECT_NO_THROW(perseus_begin(client.get(), PERSEUS_FORWARD, 0, 0));
    EXPECT_NO_THROW(perseus_end(client.get(), PERSEUS_FORWARD, 0, 0));
    EXPECT_NO_THROW(perseus_step_end(client.get()));
  }
}

TEST(CAbi, AForkedChildHasNoClient) {
  perseus::api::Client client(quiet());
  const pid_t child = fork();
  if (child == 0) {
    { const perseus::api::TrainingStep step(client); }
    const bool inert = client.statistics().iteration == 0;
    perseus_stop(client.get());
    _exit(inert ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(CAbi, StructsOfAnOlderAndShorterKind) {
  perseus_options options = quiet();
  options.size = offsetof(perseus_options, microbatches);
  perseus_client* const client = perseus_start(&options);
  ASSERT_NE(client, nullptr);
  perseus_statistics statistics{};
  statistics.size = offsetof(perseus_statistics, plan_version);
  statistics.plan_version = 77;
  perseus_statistics_get(client, &statistics);
  EXPECT_EQ(statistics.plan_version, 77);  // past the end of the caller's struct
  perseus_stop(client);
}

}  // namespace
