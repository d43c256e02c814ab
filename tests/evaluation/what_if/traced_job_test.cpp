#include "evaluation/what_if/traced_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/slowdown_causes.h"
#include "io/trace/read_trace.h"
#include "planning/model/make_schedule.h"
#include "tests/support/synthetic_timeline.h"

namespace perseus::what_if {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string event(std::string_view name, int rank, double start_us, double us) {
  return fmt::format(R"({{"ph":"X","cat":"user_annotation","name":"{}","pid":{},"tid":0,"ts":{},"dur":{}}})", name,
                     rank, start_us, us);
}

/// Two steps of two ranks as the Torch profiler exports them: a forward contains the wait for its input.
std::vector<std::pair<std::string, std::string>> torch_files() {
  std::vector<std::pair<std::string, std::string>> files;
  for (int rank = 0; rank < 2; ++rank) {
    std::string events;
    for (int step = 0; step < 2; ++step) {
      const double t = 1000 * step;
      events += event(fmt::format("ProfilerStep#{}", step), rank, t, 900) + ",";
      if (rank == 0) {
        events += event("Forward 0", rank, t, 100) + "," + event("Backward 0", rank, t + 100, 500) + ",";
        events += event("gloo:recv", rank, t + 110, 290) + ",";  // until 400
      } else {
        events += event("Forward 0", rank, t, 200) + "," + event("gloo:recv", rank, t + 1, 99) + ",";
        events += event("Backward 0", rank, t + 200, 200) + ",";
      }
    }
    events.pop_back();
    files.emplace_back(
        fmt::format("rank{}.json", rank),
        fmt::format(R"({{"distributedInfo":{{"rank":{},"world_size":2}},"traceEvents":[{}]}})", rank, events));
  }
  return files;
}

TEST(TracedJob, ComputesAfterItsReceive) {
  const TracedJob job = understand(trace::parse_trace(torch_files(), {}).value()).value();
  EXPECT_EQ(job.ranks, 2);
  EXPECT_EQ(job.steps.size(), 2U);
  const RankStep &first = job.steps[0].pipelines[0].ranks[0], &last = job.steps[0].pipelines[0].ranks[1];
  EXPECT_NEAR(first.ops[1].start_s, 400e-6, 1e-9);
  EXPECT_NEAR(first.ops[1].duration_s, 200e-6, 1e-9);
  EXPECT_NEAR(last.ops[0].duration_s, 100e-6, 1e-9);
  EXPECT_LT(replay_errors(job).computing_alone, 1e-3);
  const auto waiting = waiting_of(job);
  EXPECT_NEAR(waiting[0].computing_s, 300e-6, 1e-9);
  EXPECT_NEAR(waiting[0].waiting_s, 300e-6, 1e-9);
}

/// Megatron-LM's spans in one file of all ranks, as the converters of their exporter write them: pid is the rank, and
/// iterations that no checkpoint has yet are named so.
TEST(TracedJob, ReadsSpansOfAllRanksFromOneFile) {
  std::string events;
  for (int rank = 0; rank < 2; ++rank) {
    for (int step = 0; step < 2; ++step) {
      const double t = 1000 * step;
      const double forward = rank == 0 ? t : t + 100, backward = rank == 0 ? t + 400 : t + 200;
      events += event(step == 0 ? "megatron.train.iteration" : "megatron.train.iteration.uncommitted", rank, t, 900);
      events.insert(events.size() - 1, fmt::format(R"(,"args":{{"megatron.iteration":{}}})", step + 7));
      events += "," + event("megatron.train.iteration.forward_backward", rank, t, 600);
      events += "," + event("megatron.microbatch.forward", rank, forward, 100);
      events += "," + event("megatron.microbatch.backward", rank, backward, 200);
      events += "," + event("megatron.train.iteration.optimizer", rank, t + 600, 50) + ",";
    }
  }
  events.pop_back();
  const auto timeline = trace::parse_trace({{"merged.json", "[" + events + "]"}}, {});
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  const auto job = understand(*timeline);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->ranks, 2);
  ASSERT_EQ(job->steps.size(), 2U);
  EXPECT_EQ(job->steps[1].number, 8);
  EXPECT_EQ(job->steps[0].pipelines[0].ranks[0].after.size(), 1U);
  EXPECT_LT(replay_errors(*job).computing_alone, 1e-3);
}

TEST(TracedJob, LeavesIncompleteStepsOutAndCountsThem) {
  auto files = torch_files();
  files[1].second.replace(files[1].second.rfind("Backward 0"), 10, "Something!");
  const auto job = understand(trace::parse_trace(files, {}).value());
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->steps.size(), 1U);
  EXPECT_EQ(job->incomplete_steps, 1);
  EXPECT_THAT(job->faults, ElementsAre("step 1: dp 0: no backward of microbatch 0 on stage 1"));
}

TEST(TracedJob, LeavesOutStepsWhoseComputationsOverlapAndNamesFilesOfOneRank) {
  auto files = torch_files();
  const std::string forward = event("Forward 0", 1, 1000, 200), late = event("Forward 0", 1, 1000, 350);
  files[1].second.replace(files[1].second.find(forward), forward.size(), late);
  auto job = understand(trace::parse_trace(files, {}).value());
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_THAT(job->faults,
              ElementsAre("step 1: dp 0: rank 1: backward of microbatch 0 begins 0.15 ms before forward of "
                          "microbatch 0 ends; expected one computation at a time"));
  files = torch_files();
  files.emplace_back("copy.json", files[1].second);
  job = understand(trace::parse_trace(files, {}).value());
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message, HasSubstr("rank1.json and copy.json both have forward of microbatch 0 of dp 0, rank "
                                             "1; expected one file of each rank"));
  job = understand(trace::parse_trace({files[1], files[2]}, {}).value());
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message, HasSubstr("; rank1.json and copy.json are both of rank 1"));
}

TEST(TracedJob, SaysThatItGuessesSteps) {
  auto timeline = trace::parse_trace(torch_files(), {}).value();
  EXPECT_FALSE(understand(timeline)->guesses_steps);
  for (trace::Span& span : timeline.spans) span.step = -1;
  const auto job = understand(timeline);
  EXPECT_TRUE(job->guesses_steps);
  EXPECT_EQ(job->steps.size(), 2U);
}

/// Megatron's timers number nothing: with several stages a rank, only the order tells which is which.
TEST(TracedJob, FindsTheStagesOfTheOnlyScheduleThatFits) {
  for (const auto& [name, chunks] : {std::pair("interleaved-1f1b", 2), std::pair("interleaved-1f1b", 3),
                                     std::pair("1f1b", 1), std::pair("gpipe", 1)}) {
    const auto schedule = model::make_schedule(name, {4, 8, chunks});
    auto timeline =
        trace::parse_trace(
            {{"t.json", testing::synthetic_timeline(
                            {*schedule, 1, 2, [](const model::Action& a, int, int) { return 0.1 + 0.01 * a.stage; }})}},
            trace::parse_trace_names(testing::kSyntheticNames, "n").value())
            .value();
    for (trace::Span& span : timeline.spans) span.stage = span.microbatch = -1;
    const TracedJob job = understand(timeline).value();
    EXPECT_EQ(job.stages, 4 * chunks);
    EXPECT_EQ(job.microbatches, 8);
    EXPECT_EQ(job.schedule().name, name);
    EXPECT_EQ(job.guesses_stages, chunks > 1);
    EXPECT_LT(replay_errors(job).computing_alone, 1e-6);
  }
}

/// Of a microbatch, a rank runs its stages in their order, and backward in the reverse one: the order of computations
/// tells chunks apart, with and without numbers of steps.
TEST(TracedJob, FindsChunksOfNumberedMicrobatches) {
  for (const auto& [name, chunks] :
       {std::pair("interleaved-1f1b", 2), std::pair("interleaved-1f1b", 4), std::pair("zbv", 2),
        std::pair("dualpipev", 2), std::pair("1f1b", 1), std::pair("zero-bubble", 1)}) {
    const auto schedule = model::make_schedule(name, {4, 8, chunks});
    const auto timeline =
        trace::parse_trace(
            {{"t.json", testing::synthetic_timeline(
                            {*schedule, 2, 2, [](const model::Action& a, int, int) { return 0.1 + 0.01 * a.stage; }})}},
            trace::parse_trace_names(testing::kSyntheticNames, "n").value())
            .value();
    for (const bool numbers_steps : {true, false}) {
      auto without = timeline;
      for (trace::Span& span : without.spans) {
        span.stage = -1;
        if (!numbers_steps) span.step = -1;
      }
      const auto job = understand(without);
      ASSERT_TRUE(job.ok()) << name << ": " << job.error().message;
      EXPECT_EQ(job->stages, 4 * chunks) << name;
      EXPECT_EQ(job->microbatches, 8) << name;
      EXPECT_EQ(job->schedule().name, name) << numbers_steps;
      EXPECT_EQ(job->steps.size(), 2U) << name;
      EXPECT_EQ(job->guesses_stages, chunks > 1) << name;
      EXPECT_LT(replay_errors(*job).computing_alone, 1e-6) << name;
    }
  }
}

/// A timeline without stages.
trace::TraceSpans without_stages(const model::Schedule& schedule) {
  const auto seconds = [](const model::Action& a, int, int) { return a.microbatch == 0 ? 2 : 0.1 + 0.001 * a.stage; };
  auto timeline = trace::parse_trace({{"t.json", testing::synthetic_timeline({schedule, 1, 2, seconds})}},
                                     trace::parse_trace_names(testing::kSyntheticNames, "n").value())
                      .value();
  for (trace::Span& span : timeline.spans) span.stage = -1;
  return timeline;
}

/// A recorder starts within a step, at any computation; the clock of the last rank's host is late or early; or spans
/// contain the waits for their inputs.
TEST(TracedJob, TellsTheVFromALoopByAWholeStepAndOneClock) {
  for (const auto& [name, ranks] : {std::pair("interleaved-1f1b", 2), std::pair("interleaved-1f1b", 4),
                                    std::pair("zbv", 2), std::pair("zbv", 4), std::pair("dualpipev", 4)}) {
    const auto whole = without_stages(*model::make_schedule(name, {ranks, 2 * ranks, 2}));
    for (const trace::Span& cut : whole.spans) {
      if (cut.step > 0 || !is_compute(cut.kind)) continue;
      auto timeline = whole;
      std::erase_if(timeline.spans, [&](const trace::Span& s) { return s.start_s < cut.start_s; });
      const auto job = understand(timeline);
      ASSERT_TRUE(job.ok()) << name << ": " << job.error().message;
      ASSERT_EQ(job->schedule().name, name) << ranks << " ranks, cut at " << cut.start_s;
    }
    for (const double late_s : {-100, 100}) {
      auto timeline = whole;
      for (trace::Span& span : timeline.spans) {
        if (timeline.threads[span.thread].rank == ranks - 1) span.start_s += late_s;
      }
      const auto job = understand(timeline);
      ASSERT_TRUE(job.ok()) << name << ": " << job.error().message;
      EXPECT_EQ(job->schedule().name, name) << ranks << " ranks, late by " << late_s;
    }
    auto waits = whole;
    std::ranges::stable_sort(waits.spans, {}, &trace::Span::start_s);
    std::map<int, double> ends_s;
    for (trace::Span& span : waits.spans) {
      const double end_s = span.end_s();
      span.start_s = std::exchange(ends_s[span.thread], end_s);
      span.duration_s = static_cast<float>(end_s - span.start_s);
    }
    const auto job = understand(waits);
    ASSERT_TRUE(job.ok()) << name << ": " << job.error().message;
    EXPECT_EQ(job->schedule().name, name) << ranks << " ranks that wait";
  }
}

/// It runs nothing else in between, and yet its second stage waits for the other rank's.
TEST(TracedJob, TellsTheLoopOfOneMicrobatch) {
  using model::Instruction;
  const auto order = [](int stage) {
    return std::vector<model::Action>{{Instruction::forward, stage, 0},
                                      {Instruction::forward, stage + 2, 0},
                                      {Instruction::backward, stage + 2, 0},
                                      {Instruction::backward, stage, 0}};
  };
  const TracedJob job = understand(without_stages({"loop", 4, 1, {order(0), order(1)}, {}})).value();
  EXPECT_EQ(job.schedule().ranks[1], order(1));
}

TEST(TracedJob, RefusesChunksThatDoNotFit) {
  auto timeline =
      trace::parse_trace(
          {{"t.json", testing::synthetic_timeline({*model::make_schedule("interleaved-1f1b", {2, 4, 2}), 1, 1,
                                                   [](const model::Action&, int, int) { return 0.1; }})}},
          trace::parse_trace_names(testing::kSyntheticNames, "n").value())
          .value();
  for (trace::Span& span : timeline.spans) span.stage = -1;
  const auto first_backward = std::ranges::find(timeline.spans, trace::SpanKind::backward, &trace::Span::kind);
  timeline.spans.erase(first_backward);
  const auto job = understand(timeline);
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message, HasSubstr("step 0: dp 0: no backward of microbatch 0 on stage 0"));
}

/// Processes of a merged file whose numbers are those of the host.
TEST(TracedJob, NamesRanksThatAreNotNumberedFromZero) {
  const auto job = understand(
      trace::parse_trace(
          {{"t.json", "[" + event("Forward 0", 4711, 0, 10) + "," + event("Forward 0", 4712, 10, 10) + "," +
                          event("Backward 0", 4711, 40, 20) + "," + event("Backward 0", 4712, 20, 20) + "]"}},
          {})
          .value());
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message, HasSubstr("2 ranks, of which the last is rank 4712; expected ranks from 0 on"));
}

/// The published timelines hold a sample of the steps, each a tenth of a step after the one before.
TEST(TracedJob, KnowsNoTimeBetweenStepsThatWereMovedTogether) {
  TracedJob job = understand(trace::parse_trace(torch_files(), {}).value()).value();
  job.steps.push_back(job.steps.back());
  for (PipelineStep& pipeline : job.steps.back().pipelines) {
    for (RankStep& rank : pipeline.ranks) rank.start_s += 1e-3, rank.end_s += 1e-3;
  }
  job.steps.back().number = 2;
  EXPECT_NEAR(explain(job).between_s.value(), 400e-6, 1e-9);
  job.steps.back().number = 9;
  EXPECT_FALSE(explain(job).between_s);
}

TEST(TracedJob, DoubtsTimesThatAreNoMicroseconds) {
  auto timeline = trace::parse_trace(torch_files(), {}).value();
  for (trace::Span& span : timeline.spans) span.duration_s /= 1000;
  const auto job = understand(timeline);
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message,
              HasSubstr("computations take 0.2 microseconds in their median; expected at least 1"));
}

/// Clocks of hosts differ: rank 1's is late, or early.
TEST(TracedJob, NoticesClocksThatAreEarlyAsThoseThatAreLate) {
  const TracedJob job = understand(trace::parse_trace(torch_files(), {}).value()).value();
  EXPECT_LT(replay_errors(job).early, 0.01);
  for (const double off_s : {-100e-6, 100e-6}) {
    TracedJob shifted = job;
    for (TracedStep& step : shifted.steps) {
      for (TracedOp& op : step.pipelines[0].ranks[1].ops) op.start_s += off_s;
    }
    const ReplayErrors errors = replay_errors(shifted);
    EXPECT_NEAR(errors.early, 100.0 / 600, 0.05) << off_s;
    EXPECT_NEAR(errors.early_s, 100e-6, 5e-6) << off_s;
    EXPECT_EQ(errors.early_rank.rank, off_s < 0 ? 1 : 0);
  }
}

TEST(Slowdowns, TellLatencyAndBandwidthOfALinkApart) {
  TracedJob job = understand(trace::parse_trace(torch_files(), {}).value()).value();
  const auto set_sizes = [&](double unequal) {
    double bytes = 1e6;
    for (TracedStep& step : job.steps) {
      TracedOp& op = step.pipelines[0].ranks[1].ops[0];
      op.receive_bytes = bytes;
      op.receive_s = 20e-6 + bytes / 50e9;
      bytes *= unequal;
    }
  };
  set_sizes(4);
  const TransferTimes unequal = explain(job).links.at(0);
  EXPECT_EQ(unequal.boundary, 0);
  EXPECT_TRUE(unequal.forward);
  EXPECT_NEAR(unequal.latency_s, 20e-6, 1e-9);
  EXPECT_NEAR(unequal.bytes_per_s.value(), 50e9, 1e6);
  set_sizes(1);
  const TransferTimes equal = explain(job).links.at(0);
  EXPECT_FALSE(equal.bytes_per_s);
  EXPECT_NEAR(equal.latency_s, 40e-6, 1e-9);
}

TEST(TracedJob, SaysWhatItExpected) {
  auto files = torch_files();
  const auto timeline = trace::parse_trace({files[1]}, {});
  const auto half = understand(*timeline);
  ASSERT_FALSE(half.ok());
  EXPECT_THAT(half.error().message,
              HasSubstr("timelines of 1 of 2 ranks (the files say a world size of 2); expected all"));
  for (std::size_t at = 0; (at = files[1].second.find("Backward 0", at)) != std::string::npos;)
    files[1].second.replace(at, 10, "Something!");
  const auto none = understand(trace::parse_trace(files, {}).value());
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, AllOf(HasSubstr("2 steps, none complete; expected one with every microbatch"),
                                          HasSubstr("; step 0: dp 0: no backward of microbatch 0 on stage 1")));
  EXPECT_THAT(none.error().message, Not(HasSubstr("step 1: ")));  // lacks the same
  const auto other = understand(*timeline, {3, 1});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message,
              HasSubstr("2 ranks; expected a multiple of pipeline_parallel 3 x tensor_parallel 1"));
}

}  // namespace
}  // namespace perseus::what_if
