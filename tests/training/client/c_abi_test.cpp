// perseus.h without a server and without a GPU: every call is allowed and has no effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <perseus/perseus.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/training/client/scripted_server.h"

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

TEST(CAbi, AStepThatAnEvaluationInterruptsIsNoIteration) {
  perseus::api::Client client(quiet());
  for (int i = 0; i < 3; ++i) {
    { const perseus::api::TrainingStep step(client); }
    perseus_step_begin(client.get(), PERSEUS_TRAIN);
    { const perseus::api::TimedComputation forward(client, PERSEUS_FORWARD); }
    perseus_step_begin(client.get(), PERSEUS_EVALUATE);
    perseus_step_end(client.get());
  }
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

/// Beside each other, and beside perseus_stop(). The calls follow a plan whose computations run in another order.
TEST(CAbi, SeveralThreadsAtOnceAreHarmlessAndReported) {
  constexpr int kComputations = 64, kThreads = 4;
  std::string clocks, computations;
  for (int i = 0; i < kComputations; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    clocks += std::string(comma) + R"([")" + (i % 2 == 0 ? "forward" : "backward") + R"(",900])";
    computations += comma + ("[" + std::to_string(i / 2) + ",0]");
  }
  const std::string plan = perseus::client::plan_of(1, "[" + clocks + "]", R"(,"computations":[)" + computations + "]");
  perseus::client::ScriptedServer server(
      [&](const perseus::http::HttpRequest& request) { return perseus::client::well(request, plan); });
  std::atomic<int> said{0};
  perseus::api::Options options = quiet();
  const std::string url = server.url();
  options.server = url.c_str();
  options.log_context = &said;
  options.log = [](void* context, int, const char* message) {
    if (std::string(message).find("several threads") != std::string::npos) ++*static_cast<std::atomic<int>*>(context);
  };
  perseus_client* const client = perseus_start(&options);
  ASSERT_NE(client, nullptr);
  const auto statistics = [&] {
    perseus_statistics now{};
    now.size = sizeof(now);
    perseus_statistics_get(client, &now);
    return now;
  };
  ASSERT_TRUE(perseus::client::eventually([&] {
    perseus_step_begin(client, PERSEUS_TRAIN);
    perseus_step_end(client);
    return statistics().plan_version == 1;
  }));
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; !over; i = (i * 7 + 3) % kComputations) {
        const int instruction = i % 2 == 0 ? PERSEUS_FORWARD : PERSEUS_BACKWARD;
        if (t == 0 && i % 8 == 0) perseus_step_end(client), perseus_step_begin(client, PERSEUS_TRAIN);
        perseus_set_speed(client, instruction, i / 2, 0);
        if (t % 2 == 0) perseus_begin(client, instruction, i / 2, 0), perseus_end(client, instruction, i / 2, 0);
        if (i == 5) perseus_time_with(client, nullptr, nullptr);
      }
    });
  }
  EXPECT_TRUE(perseus::client::eventually([&] { return said > 0; }));
  perseus_stop(client);
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(said, 1);
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
