// `perseus trace` as a user runs it: the answers, and files that other commands take.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planning/model/make_schedule.h"
#include "program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/synthetic_timeline.h"

namespace perseus::testing {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Two pipelines, of which the worker of the last stage but one takes half as long again.
std::string slow_worker_timeline(int stages = 4, int microbatches = 4) {
  const auto schedule = model::make_schedule("1f1b", {stages, microbatches, 1});
  return synthetic_timeline({*schedule, 2, 2, [stages](const model::Action& a, int pipeline, int) {
                               const double base = a.instruction == model::Instruction::forward ? 0.1 : 0.2;
                               return base * (pipeline == 1 && a.stage == stages - 2 ? 1.5 : 1);
                             }});
}

TEST(TraceCommand, NamesTheSlowWorkerAndWritesTheJob) {
  const ScratchFolder scratch;
  const std::string timeline = scratch.file("t.json", slow_worker_timeline());
  const std::string names = scratch.file("names.toml", kSyntheticNames), out = scratch.path("job");
  const Outcome text = run_perseus(
      {"trace", timeline, "--names", names, "--profile", sample_profile(), "--effort", "low", "--out", out});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(
      text.out,
      HasSubstr(
          "job: 2 pipelines of 4 ranks and 4 stages, 4 microbatches\nGPUs: 8, one a rank (--tensor-parallel N: one "
          "rank of each N is in the timeline)\nschedule: 1f1b\n"
          "steps: 2 complete, 0 incomplete and left out\n"));
  EXPECT_THAT(text.out, HasSubstr("links: none in the timeline: what transfers cost cannot be told"));
  EXPECT_THAT(text.out, HasSubstr("- computations take their median times in the timeline"));
  EXPECT_THAT(text.out, HasSubstr("; transfers take no time, since the timeline has none\n"));
  EXPECT_THAT(text.out, HasSubstr("who: worker dp 1, stage 2: 1.50 times as slow as its peers"));
  EXPECT_THAT(text.out, HasSubstr("waiting for one 1.21 times slower"));
  const Outcome planned =
      run_perseus({"plan", out + "/profile.csv", "--constants", out + "/constants.json", "--effort", "low", "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Outcome answered =
      run_perseus({"trace", timeline, "--names", names, "--profile", sample_profile(), "--effort", "low", "--json"});
  ASSERT_EQ(answered.exit_code, 0) << answered.err;
  const json::object answer = json::parse(answered.out).as_object();
  EXPECT_EQ(answer.at("schedule"), "1f1b");
  EXPECT_LT(answer.at("replay_error").at("computing_alone").to_number<double>(), 1e-6);
  const json::value& cause = answer.at("causes").at(0);
  EXPECT_EQ(cause.at("kind"), "worker");
  EXPECT_EQ(cause.at("data_rank"), 1);
  EXPECT_EQ(cause.at("stage"), 2);
  EXPECT_EQ(answer.at("waiting").as_array().size(), 8U);
  const json::array& others = answer.at("others").as_array();
  ASSERT_GE(others.size(), 2U);
  EXPECT_NEAR(others[0].at("pipeline_s").to_number<double>(), 2.1, 1e-6);  // 3 + 4 microbatches of 0.3 s
  EXPECT_LT(others[1].at("pipeline_s").to_number<double>(), 2.1);
  EXPECT_GT(answer.at("saving").at("advice").at(0).at("saving_pct").to_number<double>(), 1);
}

/// Of `perseus plan`.
json::array points_of(const std::vector<std::string>& words) {
  const Outcome outcome = run_perseus(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.exit_code == 0 ? json::parse(outcome.out).at("points").as_array() : json::array();
}

TEST(TraceCommand, PlansAndEmulatesTheJobWithoutFilesBetween) {
  const ScratchFolder scratch;
  const std::string timeline = scratch.file("t.json", slow_worker_timeline());
  const std::string names = scratch.file("names.toml", kSyntheticNames), out = scratch.path("job");
  ASSERT_EQ(
      run_perseus({"trace", timeline, "--names", names, "--profile", sample_profile(), "--out", out, "--effort", "low"})
          .exit_code,
      0);
  const std::string constants = out + "/constants.json";
  const json::array by_files =
      points_of({"plan", out + "/profile.csv", "--constants", constants, "--effort", "low", "--json"});
  const json::array directly =
      points_of({"plan", sample_profile(), "--trace", timeline, "--names", names, "--effort", "low", "--json"});
  ASSERT_EQ(directly.size(), by_files.size());
  for (std::size_t p = 0; p < directly.size(); ++p) {
    for (const char* const figure : {"time_s", "energy_j"})
      EXPECT_NEAR(directly[p].at(figure).to_number<double>(), by_files[p].at(figure).to_number<double>(), 1e-3);
  }
  const Outcome plan =
      run_perseus({"plan", sample_profile(), "--trace", timeline, "--names", names, "--effort", "low"});
  EXPECT_THAT(plan.out, HasSubstr("timeline: t.json, 2 steps, replayed within 0.000 %"));
  EXPECT_THAT(plan.out, HasSubstr("assumed: computations take their median times in the timeline"));

  const std::string scenario = scratch.file("s.toml",
                                            "iterations = 3\n[cluster]\nblocking_power_w = 90\n[[pipelines]]\n"
                                            "name = \"all\"\nprofile = \"" +
                                                sample_profile() + "\"\n");
  const Outcome emulated = run_perseus({"emulate", scenario, "--trace", timeline, "--names", names});
  ASSERT_EQ(emulated.exit_code, 0) << emulated.err;
  EXPECT_THAT(emulated.out, HasSubstr("assumed: computations take their median times in the timeline"));
  EXPECT_EQ(run_perseus({"emulate", scenario}).exit_code, 65);
  EXPECT_THAT(emulated.out, HasSubstr("cluster: 8 GPUs, 2 pipelines, tensor parallel 1\n"
                                      "pipelines 'all': 2 x 4 GPUs, 1f1b, 4 microbatches, 2.1000 s at maximum clock"));
}

TEST(TraceCommand, PlansWithTheTransfersOfSeveralStagesARank) {
  const ScratchFolder scratch;
  const auto schedule = model::make_schedule("interleaved-1f1b", {2, 4, 2});
  const std::string timeline =
      scratch.file("t.json", synthetic_timeline({*schedule, 1, 2,
                                                 [](const model::Action& a, int, int) {
                                                   return a.instruction == model::Instruction::forward ? 0.1 : 0.2;
                                                 },
                                                 0.05}));
  const std::string names = scratch.file("names.toml", kSyntheticNames), out = scratch.path("job");
  const Outcome answered = run_perseus(
      {"trace", timeline, "--names", names, "--profile", sample_profile(), "--out", out, "--effort", "low", "--json"});
  ASSERT_EQ(answered.exit_code, 0) << answered.err;
  const double pipeline_s = json::parse(answered.out).at("as_run_s").to_number<double>() - 0.01;  // the collective
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"plan", sample_profile(), "--trace", timeline, "--names", names},
        {"plan", out + "/profile.csv", "--constants", out + "/constants.json"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--effort", "low", "--json"});
    double fastest_s = HUGE_VAL;
    for (const json::value& point : points_of(all))
      fastest_s = std::min(fastest_s, point.at("time_s").to_number<double>());
    EXPECT_NEAR(fastest_s, pipeline_s, 1e-3);
  }
}

/// Constants have one latency for all where stages lie on ranks that are no neighbors: not the first link's alone.
TEST(TraceCommand, TakesTheMedianOfLinksBetweenRanksThatAreNoNeighbors) {
  const ScratchFolder scratch;
  auto schedule = model::make_schedule("1f1b", {4, 4, 1});
  std::swap(schedule->ranks[1], schedule->ranks[2]);  // stage 0 on rank 0, stage 1 on rank 2
  json::value events = json::parse(synthetic_timeline(
      {*schedule, 1, 2,
       [](const model::Action& a, int, int) { return a.instruction == model::Instruction::forward ? 0.1 : 0.2; },
       0.05}));
  for (json::value& event : events.as_array()) {
    if (event.at("name") != "forward_receive" || event.at("args").at("stage") != 1) continue;
    event.at("ts") = event.at("ts").to_number<double>() + 40e3;
    event.at("dur") = event.at("dur").to_number<double>() - 40e3;
  }
  const std::string timeline = scratch.file("t.json", json::serialize(events));
  const std::string names = scratch.file("names.toml", kSyntheticNames), out = scratch.path("job");
  const Outcome answered = run_perseus(
      {"trace", timeline, "--names", names, "--profile", sample_profile(), "--out", out, "--effort", "low"});
  ASSERT_EQ(answered.exit_code, 0) << answered.text();
  const json::value constants = json::parse(content_of(out + "/constants.json"));
  EXPECT_NEAR(constants.at("transfer_latency_s").to_number<double>(), 0.05, 1e-6) << json::serialize(constants);
}

TEST(TraceCommand, MovesLayersFromTheLongestStageOneByOne) {
  const ScratchFolder scratch;
  const auto schedule = model::make_schedule("1f1b", {4, 8, 1});
  const std::string timeline = scratch.file(
      "t.json", synthetic_timeline({*schedule, 1, 2, [](const model::Action& a, int, int) {
                                      const int layers = a.stage == 3 ? 11 : 9;
                                      return (a.instruction == model::Instruction::forward ? 1 : 2) * 0.01 * layers;
                                    }}));
  const std::string names = scratch.file("names.toml", kSyntheticNames);
  const Outcome outcome =
      run_perseus({"trace", timeline, "--names", names, "--stage-layers", "9,9,9,11", "--effort", "low", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::array others = json::parse(outcome.out).at("others").as_array();
  const auto moved = std::find_if(others.begin(), others.end(), [](const json::value& other) {
    return other.at("name").as_string().starts_with("layers ");
  });
  ASSERT_NE(moved, others.end());
  EXPECT_LT(moved->at("pipeline_s").to_number<double>(), others[0].at("pipeline_s").to_number<double>());
  EXPECT_EQ(run_perseus({"trace", timeline, "--names", names, "--stage-layers", "9,9"}).exit_code, 64);
}

/// One pipeline's clock is 20 ms late, and a step ends 10 ms after its collectives: those tell the one, not the other.
TEST(TraceCommand, SaysWhichClockItAlignedAndThatGapsMayBeTransfers) {
  const ScratchFolder scratch;
  json::value events = json::parse(slow_worker_timeline());
  for (json::value& event : events.as_array()) {
    if (event.at("pid") == 1) event.at("ts") = event.at("ts").to_number<double>() + 20e3;
    if (event.at("name") == "gradient_reduce") event.at("ts") = event.at("ts").to_number<double>() + 500e3;
  }
  const std::string timeline = scratch.file("t.json", json::serialize(events));
  const std::string names = scratch.file("names.toml", kSyntheticNames);
  const Outcome text = run_perseus({"trace", timeline, "--names", names, "--effort", "low"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("clock: dp 1 is 20.0 ms late by the ends of collectives: aligned\n"));
  EXPECT_THAT(text.out, HasSubstr("gaps: transfers, loading or launches, the timeline does not say which"));
}

TEST(TraceCommand, ClaimsNothingThatItsReplayContradicts) {
  const ScratchFolder scratch;
  json::value events = json::parse(slow_worker_timeline());
  for (json::value& event : events.as_array()) {                  // one host's clock is 5 s late
    const bool computes = event.at("name") != "gradient_reduce";  // else these align it
    if (computes && event.at("tid") == 2) event.at("ts") = event.at("ts").to_number<double>() + 5e6;
  }
  const std::string timeline = scratch.file("t.json", json::serialize(events));
  const std::string names = scratch.file("names.toml", kSyntheticNames), out = scratch.path("job");
  const Outcome text = run_perseus({"trace", timeline, "--names", names, "--out", out});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("doubt: dp "));
  EXPECT_THAT(text.out, HasSubstr(" computes up to 5000.0 ms ("));
  EXPECT_THAT(text.out, ::testing::Not(::testing::AnyOf(HasSubstr("who:"), HasSubstr("save"), HasSubstr("else"))));
  EXPECT_FALSE(std::filesystem::exists(out + "/profile.csv"));
  const Outcome answered = run_perseus({"trace", timeline, "--names", names, "--json"});
  const json::object answer = json::parse(answered.out).as_object();
  EXPECT_TRUE(answer.at("saving").is_null());
  EXPECT_TRUE(answer.at("causes").as_array().empty());
  const Outcome planned = run_perseus({"plan", sample_profile(), "--trace", timeline, "--names", names});
  EXPECT_EQ(planned.exit_code, 65);
  EXPECT_THAT(planned.err, HasSubstr("t.json: dp "));
}

/// Too little to doubt the answer, enough to be said.
TEST(TraceCommand, SaysThatClocksOfAPipelineDifferALittle) {
  const ScratchFolder scratch;
  json::value events = json::parse(slow_worker_timeline());
  for (json::value& event : events.as_array()) {
    if (event.at("tid") == 2) event.at("ts") = event.at("ts").to_number<double>() + 20e3;  // of both pipelines
  }
  const std::string timeline = scratch.file("t.json", json::serialize(events));
  const std::string names = scratch.file("names.toml", kSyntheticNames);
  const Outcome text = run_perseus({"trace", timeline, "--names", names, "--effort", "low"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("rank 1 computes up to 20.0 ms ("));
  EXPECT_THAT(text.out, HasSubstr("before its input from rank 2 was computed: the one is early, or the other late"));
  const Outcome alike =
      run_perseus({"trace", scratch.file("a.json", slow_worker_timeline()), "--names", names, "--effort", "low"});
  EXPECT_THAT(alike.out, ::testing::Not(HasSubstr("clock:")));
}

TEST(TraceCommand, ModelsTheGpuThatTheTimelineNames) {
  const ScratchFolder scratch;
  const std::string names = scratch.file("names.toml", kSyntheticNames);
  const auto answer = [&](const std::string& devices, std::vector<std::string> more) {
    const std::string timeline = scratch.file(
        "t.json", R"({"deviceProperties":[)" + devices + R"(],"traceEvents":)" + slow_worker_timeline(2, 2) + "}");
    more.insert(more.begin(), {"trace", timeline, "--names", names, "--effort", "low"});
    const Outcome outcome = run_perseus(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string a100 = R"({"id":0,"name":"NVIDIA A100-SXM4-80GB"})", t4 = R"({"id":1,"name":"Tesla T4"})";
  const std::string of_a100 = answer(a100, {});
  EXPECT_THAT(of_a100, HasSubstr("modeled GPU: A100-SXM; the timeline names NVIDIA A100-SXM4-80GB\n"));
  EXPECT_THAT(of_a100, HasSubstr("the timeline's times, A100-SXM at its highest clock"));
  EXPECT_THAT(answer(t4, {}), HasSubstr("modeled GPU: H100-SXM, the default; the timeline names Tesla T4, which is not "
                                        "known (--gpu)\n"));
  EXPECT_THAT(answer(a100 + "," + t4, {}), HasSubstr("modeled GPU: H100-SXM, the default; the timeline names NVIDIA "
                                                     "A100-SXM4-80GB, Tesla T4 (--gpu)\n"));
  EXPECT_THAT(answer("", {}), HasSubstr("modeled GPU: H100-SXM, the default; the timeline names none (--gpu)\n"));
  EXPECT_THAT(answer(a100, {"--gpu", "A40"}),
              HasSubstr("modeled GPU: A40, as given; the timeline names NVIDIA A100-SXM4-80GB\n"));
}

/// Forwards and then backwards of a rank: gpipe, or several stages a rank that the timeline does not tell apart.
TEST(TraceCommand, AsksForChunksWhereTheOrderOfUnnumberedComputationsIsThatOfGpipe) {
  const ScratchFolder scratch;
  std::string events;
  for (int rank = 0; rank < 2; ++rank) {
    const int starts[] = {1000 * rank, 1000 * rank + 1000, 5000 - 2000 * rank, 7000 - 2000 * rank};
    for (int k = 0; k < 4; ++k)
      events +=
          fmt::format(R"({}{{"ph":"X","name":"{}","pid":{},"tid":0,"ts":{},"dur":{}}})", events.empty() ? "" : ",",
                      k < 2 ? "forward-compute" : "backward-compute", rank, starts[k], k < 2 ? 1000 : 2000);
  }
  const Outcome text =
      run_perseus({"trace", scratch.file("t.json", "[" + events + "]"), "--names", "megatron", "--effort", "low"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("schedule: gpipe; the timeline numbers no microbatches: if ranks have several "
                                  "stages, name their chunks (--names)\n"));
}

/// What nothing numbers is counted, and the output says so.
TEST(TraceCommand, SaysWhatItCountsWhereNothingIsNumbered) {
  const ScratchFolder scratch;
  json::value events = json::parse(slow_worker_timeline());
  std::string mapping(kSyntheticNames);
  for (const std::string place : {"step", "microbatch", "stage"}) {
    const std::string line = place + " = \"args." + place + "\"\n";
    mapping.erase(mapping.find(line), line.size());
  }
  const std::string timeline = scratch.file("t.json", json::serialize(events));
  const Outcome text = run_perseus({"trace", timeline, "--names", scratch.file("n.toml", mapping), "--effort", "low"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("job: 2 pipelines of 4 ranks and 4 stages, 8 microbatches\n"));
  EXPECT_THAT(text.out, HasSubstr("schedule: generic; the timeline numbers no microbatches: if ranks have several "
                                  "stages, name their chunks (--names)\n"));
  EXPECT_THAT(text.out, HasSubstr("; the timeline numbers neither steps nor microbatches: all count as one step\n"));
}

TEST(TraceCommand, RefusesTheDirectoryBeforeItReadsTheTimeline) {
  const ScratchFolder scratch;
  const std::string names = scratch.file("names.toml", kSyntheticNames);
  const Outcome refused = run_perseus({"trace", scratch.path("none.json"), "--names", names, "--out", scratch.path()});
  EXPECT_EQ(refused.exit_code, 73);
  EXPECT_THAT(refused.err, HasSubstr("'names.toml', which this command does not write"));
}

TEST(TraceCommand, SuggestsThePipelineDegreeThatItLacks) {
  const ScratchFolder scratch;
  json::value events = json::parse(slow_worker_timeline());
  for (json::value& event : events.as_array()) {  // as torchtitan numbers ranks
    event.at("tid") = 2 * event.at("tid").as_int64() + event.at("pid").as_int64();
    event.at("args").as_object().erase("stage");
  }
  const std::string timeline = scratch.file("t.json", json::serialize(events));
  std::string mapping(kSyntheticNames);
  mapping.replace(mapping.find("data"), mapping.find("step") - mapping.find("data"), "global = \"tid\"\n");
  mapping.replace(mapping.find("stage = \"args.stage\"\n"), 21, "");
  const std::string names = scratch.file("names.toml", mapping);
  const Outcome without = run_perseus({"plan", sample_profile(), "--trace", timeline, "--names", names});
  EXPECT_EQ(without.exit_code, 65);
  EXPECT_THAT(without.err, HasSubstr("without --pipeline-parallel, all 8 ranks are one pipeline"));
  const Outcome with =
      run_perseus({"trace", timeline, "--names", names, "--pipeline-parallel", "4", "--effort", "low"});
  EXPECT_THAT(with.out, HasSubstr("job: 2 pipelines of 4 ranks and 4 stages, 4 microbatches\n"));
}

/// In one step of three, all ranks compute at the same time.
TEST(TraceCommand, SuggestsThePipelineDegreeWhereStepsAreShorterThanTheirReplay) {
  const ScratchFolder scratch;
  std::string events;
  for (const int step : {0, 1, 2}) {
    for (const int rank : {0, 1}) {
      const int forward = step == 2 ? 0 : 1000 * rank, backward = step == 2 ? 1000 : 4000 - 2000 * rank;
      for (const auto& [name, ts, dur] : {std::tuple("forward", forward, 1000), std::tuple("backward", backward, 2000)})
        events += fmt::format(
            R"({}{{"ph":"X","name":"{}","pid":{},"tid":0,"ts":{},"dur":{},"args":{{"step":{},"microbatch":0}}}})",
            events.empty() ? "" : ",", name, rank, 10'000 * step + ts, dur, step);
    }
  }
  const std::string names = scratch.file("names.toml", R"([places]
global = "pid"
step = "args.step"
microbatch = "args.microbatch"
[events]
forward = ["forward"]
backward = ["backward"]
)");
  const std::string timeline = scratch.file("t.json", "[" + events + "]");
  for (const auto& [degree, question] :
       {std::pair(std::vector<std::string>(),
                  "; without --pipeline-parallel, all 2 ranks are one pipeline: is it one, "
                  "and does each step have one order?"),
        std::pair(std::vector<std::string>{"--pipeline-parallel", "2"}, ": does each step have one order?")}) {
    std::vector<std::string> words = {"trace", timeline, "--names", names, "--effort", "low"};
    words.insert(words.end(), degree.begin(), degree.end());
    const Outcome text = run_perseus(words);
    ASSERT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out,
                HasSubstr(std::string("doubt: steps take 0.005 s in their mean and 0.006 s replayed") + question));
  }
}

TEST(TraceCommand, SaysWhatIsWrong) {
  const ScratchFolder scratch;
  const std::string names = scratch.file("names.toml", kSyntheticNames);
  const std::string timeline = scratch.file("t.json", slow_worker_timeline());
  const struct {
    std::vector<std::string> words;
    int exit_code;
    std::string message;
  } cases[] = {
      {{"trace"}, 64, "FILE"},
      {{"trace", scratch.path("none.json")}, 66, "none.json: cannot be read: No such file"},
      {{"trace", scratch.file("x.json", "[{\"ph\":\"X\",\"name\":\"forward-compute\",\"ts\":1,\"dur\":-1}]")},
       65,
       "x.json: event 1 (forward-compute): dur -1; expected a number of microseconds from 0"},
      {{"trace", timeline, "--names", scratch.file("n.toml", "[events]\nfwd = [\"f\"]")},
       65,
       "n.toml:2: [events] unknown key 'fwd'; allowed: forward"},
      {{"trace", timeline, "--names", names, "--gpu", "X"}, 64, "X"},
      {{"trace", timeline, "--names", names, timeline}, 64, "t.json: given twice; allowed: one timeline per rank"},
      {{"plan", "--trace", timeline}, 64, "--trace: a measured profile of the same kind of GPU is needed"},
      {{"plan", sample_profile(), "--names", names}, 64, "--names requires --trace"},
      {{"plan", sample_profile(), "--tensor-parallel", "2"}, 64, "has no effect without --memory-model or --trace"},
      {{"emulate", (std::filesystem::path(sample_profile()).parent_path() / "sample_scenario.toml").string(), "--trace",
        timeline},
       64,
       "--trace: 2 [[pipelines]] in the scenario"},
  };
  for (const auto& [words, exit_code, message] : cases) {
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace perseus::testing
