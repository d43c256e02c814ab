// What a server may send to a rank: whatever it is, training is at most 1 % slower after its first iterations, and the
// log has few lines. On a hand-turned clock: the server's answers, the client's guard, follower and log; a computation
// takes as long as its clock says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/client/complaints.h"
#include "training/client/job_messages.h"
#include "training/client/messages.h"
#include "training/client/plan_guard.h"

namespace perseus::client::hostile {
namespace {

constexpr int kHighest = 1410, kLowest = 235;  // 6 times slower
constexpr int kMicrobatches = 4;
constexpr double kIteration_s = 0.5;  // at the highest clock

/// A rank as TrainingClient runs it, without threads, device and network.
class ServedRank {
 public:
  ServedRank() {
    facts_.clocks_mhz = {kHighest, 1200, 900, kLowest};
    follower_.set_maximum(kHighest);
  }

  void receives(const std::string& answer) {
    auto plan = read_plan(answer, facts_);
    if (!plan) return complaints_.raise(Cause::server, "an invalid plan: " + plan.error().message);
    complaints_.clear(Cause::server, "the server answers again");
    if (*plan == nullptr) return;
    if (const auto message = messages_.arrived("j1", **plan)) complaints_.note(news_of((*plan)->kind), *message);
    guard_.arrives(**plan);
    follower_.hold_maximum(guard_.holds());
    follower_.put(*std::move(plan));
  }

  void iterates() {
    Step step;
    follower_.begin_step(iteration_);
    const ClockPlan* const plan = follower_.plan();
    step.iteration = iteration_++;
    step.plan_version = plan == nullptr ? 0 : plan->version;
    step.at_maximum = plan == nullptr || plan->kind == ClockPlan::Kind::maximum_clock || follower_.over();
    step.begin_mark = ns();
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      computes(step, model::Instruction::forward, microbatch, kIteration_s / 3);
      computes(step, model::Instruction::backward, microbatch, 2 * kIteration_s / 3);
    }
    follower_.end_step();
    step.followed = follower_.followed();
    step.end_mark = ns();
    step.count = step.computations.size();
    // The idle time between steps.
    now_s += 0.02 * kIteration_s;
    GuardedIteration iteration = guarded_iteration(step, kHighest);
    iteration.time_s = now_s - 1e-9 * static_cast<double>(step.begin_mark);
    guard_.take(iteration);
    if (const auto remark = guard_.take_remark()) complaints_.note(News::trial, *remark);
    if (const auto dropped = guard_.take_dropped()) complaints_.raise_again(Cause::slowdown, dropped->text);
    if (step.followed && !step.at_maximum && !guard_.paused()) complaints_.clear(Cause::slowdown, "it runs");
    complaints_.remind();
    follower_.hold_maximum(guard_.holds());
  }

  double now_s = 100;
  std::map<int, int> lines_in_minute;
  int lines = 0;

 private:
  [[nodiscard]] std::uint64_t ns() const { return static_cast<std::uint64_t>(1e9 * now_s); }
  void computes(Step& step, model::Instruction instruction, int microbatch, double share_s) {
    const int clock = follower_.clock_for(instruction, microbatch, 0);
    follower_.begun(instruction, microbatch, 0);
    if (clock != 0) clock_ = clock;
    RecordedComputation computation;
    computation.begin = ns();
    now_s += share_s / kMicrobatches * kHighest / clock_;
    computation.end = ns();
    computation.clock = clock_;
    computation.instruction = instruction;
    computation.microbatch = microbatch;
    step.computations.push_back(computation);
  }

  RankFacts facts_;
  PlanGuard guard_{0.01};
  PlanFollower follower_;
  PlanMessages messages_{true};
  Complaints complaints_{[this](LogLevel, const std::string&) {
                           ++lines;
                           ++lines_in_minute[static_cast<int>(now_s / 60)];
                         },
                         PauseLimits{}, [this] { return now_s; }};
  std::int64_t iteration_ = 0;
  int clock_ = kHighest;
};

struct Plan {
  std::int64_t version = 1;
  std::function<int(int)> clock = [](int) { return kLowest; };  ///< of the computation at that place
  std::string kind = "plan";
  double promised_s = kIteration_s, at_maximum_s = kIteration_s;
  int computations = 2 * kMicrobatches;
  std::string more = {};
};

std::string text(const Plan& plan) {
  std::string clocks;
  for (int i = 0; i < plan.computations; ++i) {
    clocks += std::string(i == 0 ? "" : ",") + "[\"" + (i % 2 == 0 ? "forward" : "backward") + "\"," +
              std::to_string(plan.clock(i)) + "]";
  }
  return R"({"rank":0,"version":)" + std::to_string(plan.version) + R"(,"kind":")" + plan.kind +
         R"(","from_iteration":0,"iteration_time_s":)" + std::to_string(plan.promised_s) +
         R"(,"maximum_clock_time_s":)" + std::to_string(plan.at_maximum_s) + R"(,"reason":"because")" + plan.more +
         R"(,"clocks":[)" + clocks + "]}";
}

/// Answers before an iteration of that number; none: the server holds the request.
using Answers = std::function<std::vector<std::string>(int iteration)>;
struct Mode {
  std::string name;
  Answers answers;
};

Answers always(const std::function<std::string(int)>& answer) {
  return [answer](int iteration) { return std::vector{answer(iteration)}; };
}
/// Versions that change every so many iterations; `bad` says which ones are at the lowest clock.
Answers versions(int every, const std::function<bool(int)>& bad, int slow_mhz = kLowest) {
  return [=](int iteration) {
    if (iteration % every != 0) return std::vector<std::string>();
    const int version = iteration / every + 1;
    return std::vector{text({version, [=](int) { return bad(version) ? slow_mhz : kHighest; }})};
  };
}
bool all(int) { return true; }

std::string window(int version, int mhz, const std::string& more) {
  return text({version, [=](int) { return mhz; }, "profiling_window", kIteration_s, kIteration_s, 2 * kMicrobatches,
               R"(,"window":)" + std::to_string(version) + more});
}

std::vector<Mode> modes() {
  std::vector<Mode> modes;
  const auto add = [&](const std::string& name, Answers answers) { modes.push_back({name, std::move(answers)}); };
  // Rates of versions.
  for (const int every : {1, 2, 3, 5, 6, 7, 13, 20, 60, 200}) {
    add("LowestClockAVersionEvery" + std::to_string(every), versions(every, all));
  }
  for (const int every : {1, 4, 7, 30}) {
    add("SlowByAQuarterAVersionEvery" + std::to_string(every), versions(every, all, 1200));
  }
  add("TenVersionsPerIteration", [](int iteration) {
    std::vector<std::string> answers;
    for (int i = 1; i <= 10; ++i) answers.push_back(text({10 * iteration + i}));
    return answers;
  });
  add("OneVersion", [](int iteration) { return iteration == 0 ? std::vector{text({1})} : std::vector<std::string>(); });
  add("TheSameVersionAgainAndAgain", always([](int) { return text({1}); }));
  add("TheSameVersionWithOtherClocks", always([](int i) {
        return text({1, [=](int) { return i % 2 == 0 ? kHighest : kLowest; }});
      }));
  add("VersionsThatDecrease", always([](int i) { return text({1'000'000 - i}); }));
  add("TwoVersionsInTurn", always([](int i) { return text({1 + i % 2}); }));
  add("HugeVersions", always([](int i) { return text({8'000'000'000'000'000 + i}); }));
  // Slow ones among good ones.
  for (const int one_of : {2, 3, 5, 10, 40, 300}) {
    add("OneSlowVersionOf" + std::to_string(one_of), versions(1, [=](int version) { return version % one_of == 0; }));
  }
  add("TwoSlowThenFiveGood", versions(1, [](int version) { return version % 7 < 2; }));
  add("FiveSlowThenSixtyGood", versions(1, [](int version) { return version % 65 < 5; }));
  add("GoodUntilTheTrialIsOver", versions(1, [](int version) { return version > 100; }));
  // Clocks.
  add("Alternating", versions(1, all, 900));
  add("AlternatingWithinAPlan", always([](int i) {
        return text({i + 1, [](int at) { return at % 2 ? kLowest : kHighest; }});
      }));
  add("OneComputationAtTheLowest", always([](int i) {
        return text({i + 1, [](int at) { return at == 3 ? kLowest : kHighest; }});
      }));
  add("Unsupported", always([](int i) { return text({i + 1, [](int) { return 1111; }}); }));
  add("Negative", always([](int i) { return text({i + 1, [](int) { return -5; }}); }));
  add("OutOfTheTable", always([](int i) { return text({i + 1, [](int) { return 999'999'999; }}); }));
  add("ZeroMhz", always([](int i) { return text({i + 1, [](int) { return 0; }}); }));
  // Promises.
  add("AnHonestPromiseOfSixTimesAsLong", always([](int i) {
        return text({i + 1, [](int) { return kLowest; }, "plan", 3});
      }));
  add("APromiseOfALittleLess", always([](int i) { return text({i + 1, [](int) { return 1200; }, "plan", 0.59}); }));
  add("NoPromise", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "plan", 0, 0}); }));
  add("ANegativePromise", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "plan", -1, -1}); }));
  add("AHugeTimeAtTheHighestClock", always([](int i) {
        return text({i + 1, [](int) { return kLowest; }, "plan", 1, 1e9});
      }));
  // Shapes.
  for (const int computations : {0, 1, 7, 9, 100}) {
    add(std::to_string(computations) + "Computations", always([=](int i) {
          return text({i + 1, [](int) { return kLowest; }, "plan", kIteration_s, kIteration_s, computations});
        }));
  }
  add("WrongMicrobatches", always([](int i) {
        return text({i + 1, [](int) { return kLowest; }, "plan", kIteration_s, kIteration_s, 8,
                     R"(,"computations":[[9,0],[9,0],[9,0],[9,0],[9,0],[9,0],[9,0],[9,0]])"});
      }));
  add("ThePlanOfAnotherRank", always([](int i) {
        std::string plan = text({i + 1});
        return plan.replace(plan.find("\"rank\":0"), 8, "\"rank\":7");
      }));
  // Kinds.
  add("NoPlanAgainAndAgain", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "maximum_clock"}); }));
  add("WindowsAtTheLowestClock", always([](int i) { return window(i + 1, kLowest, ""); }));
  add("WindowsForEver", always([](int i) { return window(i + 1, 1200, R"(,"iterations":1)"); }));
  add("OneEndlessWindow", always([](int) { return window(1, 1200, R"(,"iterations":1000000)"); }));
  add("WindowsThatEnd",
      always([](int i) { return window(i + 1, kLowest, R"(,"iterations":2,"then":"maximum_clock")"); }));
  add("WindowsThatSetNoClock", always([](int i) { return window(i + 1, 0, ""); }));
  add("WindowsAndPlansInTurn", always([](int i) { return i % 2 ? window(i + 1, kLowest, "") : text({i + 1}); }));
  add("AnUnknownKind", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "slow"}); }));
  // When.
  add("PlansThatNeverBegin", always([](int i) {
        std::string plan = text({i + 1});
        return plan.replace(plan.find("\"from_iteration\":0"), 18, "\"from_iteration\":8000000000000000");
      }));
  add("PlansOfThePast", always([](int i) {
        std::string plan = text({i + 1});
        return plan.replace(plan.find("\"from_iteration\":0"), 18, "\"from_iteration\":-100");
      }));
  // Garbage.
  for (const std::string garbage :
       {"", "null", "[]", "{", "{}", "\"plan\"", "<html>502</html>", "{\"version\":\"one\"}", "\xff\xfe\x00"}) {
    add("Garbage" + std::to_string(modes.size()), always([=](int) { return garbage; }));
  }
  add("HalfAPlan", always([](int i) { return text({i + 1}).substr(0, 90); }));
  add("DeeplyNested", always([](int) { return std::string(100'000, '['); }));
  add("AHugeReason", [](int iteration) {
    if (iteration % 100 != 0) return std::vector<std::string>();
    return std::vector{text({iteration + 1, [](int) { return kLowest; }, "plan", kIteration_s, kIteration_s, 8,
                             R"(,"more":")" + std::string(1'000'000, 'x') + "\""})};
  });
  add("GarbageAndPlansInTurn", always([](int i) { return i % 2 ? std::string("{") : text({i + 1}); }));
  return modes;
}

class HostileServer : public ::testing::TestWithParam<Mode> {};

TEST_P(HostileServer, SlowsTrainingByNoMoreThanOnePercentAndFillsNoLog) {
  constexpr int kFirst = 15, kIterations = 4000;
  constexpr double kUsual_s = 1.02 * kIteration_s;
  ServedRank rank;
  double from_s = 0;
  for (int i = 0; i < kFirst + kIterations; ++i) {
    if (i == kFirst) from_s = rank.now_s;
    for (const std::string& answer : GetParam().answers(i)) rank.receives(answer);
    rank.iterates();
  }
  EXPECT_LE(rank.now_s - from_s, 1.01 * kIterations * kUsual_s);
  EXPECT_LE(from_s - 100, kFirst * 6 * kUsual_s);
  // Several causes, each with a line a minute at most.
  for (const auto& [minute, lines] : rank.lines_in_minute) EXPECT_LE(lines, 4) << minute;
  EXPECT_LE(rank.lines, 3 * (rank.now_s - 100) / 60 + 4);
}

INSTANTIATE_TEST_SUITE_P(Modes, HostileServer, ::testing::ValuesIn(modes()),
                         [](const ::testing::TestParamInfo<Mode>& mode) { return mode.param.name; });

}  // namespace
}  // namespace perseus::client::hostile
