// The client under a power budget: the ceiling in place of the highest clock, the plan lease, plans that hold at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "tests/training/client/scripted_server.h"
#include "training/client/call_cost.h"
#include "training/client/rank_budget.h"
#include "training/client/training_client.h"

namespace perseus::client {
namespace {

using ::testing::HasSubstr;

/// A member of a plan's answer.
std::string budget_of(double lease_s, int ceiling_mhz, bool at_once = false, const std::string& ahead = "[]") {
  return R"(,"budget":{"lease_s":)" + std::to_string(lease_s) + R"(,"ceiling_mhz":)" + std::to_string(ceiling_mhz) +
         R"(,"at_once":)" + (at_once ? "true" : "false") + R"(,"ahead":)" + ahead + "}";
}

TEST(RankBudget, TheLeaseCountsFromTheLastAnswerAndTheCeilingIsRoundedDown) {
  RankBudget budget;
  budget.use_control(nullptr, {1410, 1200, 900});
  EXPECT_EQ(budget.now(0).ceiling_mhz, 0);
  EXPECT_FALSE(budget.now(1e9).expired()) << "without a budget";
  ClockPlan plan;
  plan.budget = PlanBudget{15, 1199, false};
  budget.answered({100});
  EXPECT_EQ(budget.arrives(plan, true), 0U);
  EXPECT_EQ(budget.now(101).ceiling_mhz, 900);
  EXPECT_EQ(budget.now(101).lease_left_s, 14);
  budget.answered({110});
  EXPECT_FALSE(budget.now(124).expired());
  EXPECT_TRUE(budget.now(125).expired());
  plan.budget = PlanBudget{15, 100, false};
  (void)budget.arrives(plan, true);
  EXPECT_EQ(budget.now(111).ceiling_mhz, 900) << "the lowest clock is the best that can be done";
  plan.budget.reset();
  (void)budget.arrives(plan, true);
  EXPECT_FALSE(budget.now(125).expired());
}

/// The first moment at which the fall at `at_s` counts.
double falls_at_s(const RankBudget& budget, double from_s, double until_s) {
  while (until_s - from_s > 1e-5) {
    const double middle_s = (from_s + until_s) / 2;
    (budget.now(middle_s).fallen ? until_s : from_s) = middle_s;
  }
  return until_s;
}

TEST(RankBudget, AFallComesAtTheServersTimeWhateverTheHostsClockSays) {
  for (const double wrong_s : {-300.0, 0.0, 300.0}) {
    RankBudget budget;
    budget.use_control(nullptr, {1410, 1200, 900});
    const double now_s = host_now_s(), server_s = SystemClock().now_s() - wrong_s;
    budget.answered({now_s, now_s - 0.03, now_s, AnswerTime{server_s, 0.01}});  // a round trip of 20 ms
    ClockPlan plan;
    plan.budget = PlanBudget{3600, 1410, false, {{server_s + 60, 900}}};
    (void)budget.arrives(plan, true);
    EXPECT_NEAR(falls_at_s(budget, now_s, now_s + 3600), now_s + 60 - 0.02, 1e-3) << wrong_s;
    // A faster answer: the fall is at most a round trip too early, and never late.
    budget.answered({now_s + 5, now_s + 4.999, now_s + 5, AnswerTime{server_s + 5, 0}});
    EXPECT_NEAR(falls_at_s(budget, now_s, now_s + 3600), now_s + 60, 2e-3) << wrong_s;
  }
}

TEST(RankBudget, AFallThatHasComeStays) {
  RankBudget budget;
  budget.use_control(nullptr, {1410, 1200, 900});
  const double now_s = host_now_s();
  budget.answered({now_s, now_s - 5, now_s, AnswerTime{1.8e9, 0}});
  ClockPlan plan;
  plan.budget = PlanBudget{3600, 1410, false, {{1.8e9 + 2, 900}}};
  (void)budget.arrives(plan, true);
  EXPECT_TRUE(budget.now(host_now_s()).fallen) << "the answer may be 5 s old";
  budget.answered({now_s, now_s - 0.01, now_s, AnswerTime{1.8e9, 0}});
  EXPECT_TRUE(budget.now(host_now_s()).fallen);
}

TEST(RankBudget, WithoutTheServersTimeAFallComesByTheHostsClock) {
  RankBudget budget;
  budget.use_control(nullptr, {1410, 1200, 900});
  const double now_s = host_now_s();
  budget.answered({now_s, now_s, now_s});
  ClockPlan plan;
  plan.budget = PlanBudget{3600, 1410, false, {{SystemClock().now_s() + 60, 900}}};
  (void)budget.arrives(plan, true);
  EXPECT_NEAR(falls_at_s(budget, now_s, now_s + 3600), now_s + 60, 1);
}

TEST(AnswerTime, IsReadOfPlansAndOfRegistrations) {
  const std::string times = R"("sent_at_s":1800000000.25,"held_s":2.5)";
  for (const std::string& body : {"{" + times + R"(,"unchanged":true})", R"({"epoch":1,"plan":{)" + times + "}}"}) {
    const auto read = read_answer_time(body);
    ASSERT_TRUE(read) << body;
    EXPECT_EQ(read->server_s, 1800000000.25);
    EXPECT_EQ(read->held_s, 2.5);
  }
  for (const char* const body : {"", "{}", R"({"unchanged":true})", R"({"sent_at_s":1.8e9})",
                                 R"({"sent_at_s":"now","held_s":1})", R"({"plan":null})"}) {
    EXPECT_FALSE(read_answer_time(body)) << body;
  }
}

class BudgetMessage : public ::testing::Test {
 protected:
  static Result<std::unique_ptr<ClockPlan>> read(const std::string& budget) {
    return read_plan(plan_of(1, R"([["forward",900]])", R"(,"budget":)" + budget), {});
  }
};

TEST_F(BudgetMessage, IsRead) {
  const auto plan = read(R"({"lease_s":15.0,"ceiling_mhz":1005,"at_once":true,"later":1})");
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE((*plan)->budget);
  EXPECT_EQ((*plan)->budget->lease_s, 15);
  EXPECT_EQ((*plan)->budget->ceiling_mhz, 1005);
  EXPECT_TRUE((*plan)->budget->at_once);
  EXPECT_FALSE((*read(R"({"lease_s":15,"ceiling_mhz":1005})").value()).budget->at_once);
  EXPECT_FALSE((*read_plan(plan_of(1, R"([["forward",900]])"), {}).value()).budget);
  EXPECT_FALSE((*read("null").value()).budget);
  const auto ahead = read(R"({"lease_s":15,"ceiling_mhz":1005,"ahead":[{"at_s":1.8e9,"ceiling_mhz":900}]})");
  ASSERT_TRUE(ahead) << ahead.error().message;
  ASSERT_EQ((*ahead)->budget->ahead.size(), 1U);
  EXPECT_EQ((*ahead)->budget->ahead[0].at_s, 1.8e9);
  EXPECT_EQ((*ahead)->budget->ahead[0].ceiling_mhz, 900);
  const auto more = read(R"({"lease_s":15,"ceiling_mhz":1005,"paced_iteration_s":2,"ahead":[)"
                         R"({"at_s":1,"ceiling_mhz":900,"paced_iteration_s":3.5}]})");
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ((*more)->budget->paced_iteration_s, 2);
  ASSERT_EQ((*more)->budget->ahead.size(), 1U);
  EXPECT_EQ((*more)->budget->ahead[0].paced_iteration_s, 3.5);
}

TEST_F(BudgetMessage, AWrongOneIsAnInvalidPlan) {
  for (const char* const wrong :
       {R"({"ceiling_mhz":1005})", R"({"lease_s":15})", R"({"lease_s":0,"ceiling_mhz":1005})",
        R"({"lease_s":15,"ceiling_mhz":0})", R"({"lease_s":1e9,"ceiling_mhz":5})",
        R"({"lease_s":1,"ceiling_mhz":70000})", R"({"lease_s":15,"ceiling_mhz":1005,"at_once":"yes"})", "[]",
        R"({"lease_s":15,"ceiling_mhz":1005,"ahead":[{"at_s":1,"ceiling_mhz":0}]})",
        R"({"lease_s":15,"ceiling_mhz":1005,"ahead":[{"ceiling_mhz":900}]})",
        R"({"lease_s":15,"ceiling_mhz":1005,"ahead":[{"at_s":1,"ceiling_mhz":900,"paced_iteration_s":0}]})"}) {
    EXPECT_FALSE(read(wrong)) << wrong;
  }
}

TEST(BudgetedSession, AnswersAboutThePlanExtendTheLeaseAndFailuresTakeNoPlanAwayBeforeItEnds) {
  const std::string plan = plan_of(1, R"([["forward",900]])", budget_of(3600, 900));
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, plan); });
  ClientOptions options;
  options.server = server.url();
  options.timing = hasty();
  options.report_interval_s = 0.01;
  Said said;
  Complaints complaints{said.log(), no_pause()};
  std::atomic<std::int64_t> answers{0}, version{0};
  std::atomic<bool> held{false}, in_order{true};
  SessionListener listener;
  listener.on_job = [](const std::string&) {};
  listener.on_plan = [&](std::unique_ptr<ClockPlan> got) {
    in_order = in_order && answers > 0;
    version = got->version;
  };
  listener.on_answer = [&](const Answered& answer) {
    in_order = in_order && answer.sent_by_s <= host_now_s() && answer.asked_s <= answer.sent_by_s &&
               answer.sent_by_s <= answer.read_s && !answer.sent;
    ++answers;
  };
  listener.on_held = [&](bool is) { held = is; };
  listener.iteration = [] { return 7; };
  Session session(options, {}, std::move(listener), complaints);
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  const std::int64_t before = answers;
  ASSERT_TRUE(eventually([&] { return answers > before + 2; })) << "unchanged is an answer";
  EXPECT_TRUE(in_order);
  server.script([](const http::HttpRequest& request) {
    return request.path.ends_with("/plan") ? std::pair(500, std::string("broken")) : well(request, "");
  });
  ASSERT_TRUE(eventually([&] { return session.failures() > 2; }));
  EXPECT_FALSE(held) << "the lease takes the place of the grace time, which is 0 here";
  const std::int64_t last = answers;
  for (std::int64_t i = 0; i < 3; ++i) {
    MeasuredIteration iteration;
    iteration.iteration = i;
    iteration.time_s = 0.5;
    session.report(std::move(iteration));
    ASSERT_TRUE(eventually([&] { return std::cmp_greater(server.asked("POST", "/iterations").size(), i); }));
  }
  EXPECT_EQ(answers, last) << "reports do not count";
  server.script([](const http::HttpRequest&) { return std::pair(409, std::string("{}")); });
  EXPECT_TRUE(eventually([&] { return held.load(); })) << "the job is over";
  session.stop(30);
}

class BudgetedRank : public ::testing::Test {
 protected:
  BudgetedRank() {
    std::string name = (std::filesystem::temp_directory_path() / "perseus_budget_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    simulated_gpu::SimulatedGpuSpec spec;
    for (const int mhz : {1410, 1200, 900}) {
      spec.clocks.emplace_back(mhz);
      spec.blocking_power.emplace_back(80);
    }
    spec.computations = {
        {"forward", {Seconds(0.002), Seconds(0.003), Seconds(0.004)}, {Watts(300), Watts(250), Watts(200)}},
        {"backward", {Seconds(0.004), Seconds(0.006), Seconds(0.008)}, {Watts(300), Watts(250), Watts(200)}}};
    gpu_ = std::move(simulated_gpu::SimulatedGpu::create(folder_ + "/gpu", spec).value());
    options_.device = "simulated:" + folder_ + "/gpu";
    options_.helper = PERSEUS_CLOCKD;
    options_.timing = hasty();
    options_.start_limit_s = 60;
    options_.report_interval_s = 0.02;
    options_.microbatches = 2;
    options_.log = said_.log();
    options_.log_pauses = no_pause();
    options_.synchronous = true;
  }
  ~BudgetedRank() override {
    client_.reset();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  void start(const std::string& plan) {
    answer(plan, 1);
    options_.server = server_->url();
    client_ = std::make_unique<TrainingClient>(options_);
    client_->start({});
  }
  void answer(const std::string& plan, int version) {
    const auto script = [plan, version](const http::HttpRequest& request) { return well(request, plan, version); };
    if (server_) {
      server_->script(script);
    } else {
      server_ = std::make_unique<ScriptedServer>(script);
    }
  }
  void compute(model::Instruction instruction) {
    client_->calls().begin(instruction, -1, -1);
    gpu_->run(static_cast<int>(instruction));
    client_->calls().end(instruction);
  }
  void iterate(int backwards = 2) {
    client_->calls().step_begin(true);
    for (int i = 0; i < 2; ++i) compute(model::Instruction::forward);
    for (int i = 0; i < backwards; ++i) compute(model::Instruction::backward);
    client_->calls().step_end();
  }
  bool trains_until(const std::function<bool()>& so, int backwards = 2) {
    return eventually([&] { return iterate(backwards), so(); });
  }
  bool clock_becomes(int mhz) {
    return eventually([&] { return gpu_->clock() == Megahertz(mhz) && gpu_->locked(); });
  }
  perseus_statistics statistics() {
    perseus_statistics s{};
    client_->statistics(s);
    return s;
  }
  bool follows(int version) {
    return trains_until([&] { return statistics().state == PERSEUS_PLANNED && statistics().plan_version == version; });
  }

  std::string folder_;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  ClientOptions options_;
  Said said_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<TrainingClient> client_;
};

const std::string fast_clocks = R"([["forward",1410],["forward",1410],["backward",1410],["backward",1410]])";
const std::string slow_clocks = R"([["forward",900],["forward",900],["backward",900],["backward",900]])";

TEST_F(BudgetedRank, APlansClocksMayBeAboveTheCeiling) {
  start(plan_of(1, fast_clocks, budget_of(3600, 1250)));
  ASSERT_TRUE(follows(1)) << client_->status();
  EXPECT_TRUE(trains_until([&] { return gpu_->clock() == Megahertz(1410); }));
  EXPECT_EQ(statistics().ceiling_mhz, 1200) << "rounded down to a clock of this GPU";
  EXPECT_GT(statistics().lease_left_s, 3000);
  EXPECT_THAT(client_->status(), HasSubstr(R"("budget":{"ceiling_mhz":1200,"lease_s":3600)"));
  EXPECT_THAT(client_->status(), HasSubstr(R"("rules":"plan"})"));
}

TEST_F(BudgetedRank, AServerThatIsSilentCostsThePlanAndItsAnswerBringsItBack) {
  start(plan_of(1, fast_clocks, budget_of(1, 1200)));
  ASSERT_TRUE(follows(1)) << client_->status();
  // Reports are answered: a lower limit would not reach this rank all the same.
  server_->script([](const http::HttpRequest& request) {
    return request.path.ends_with("/plan") ? std::pair(500, std::string("broken")) : well(request, "");
  });
  // The lease may have ended before, on a machine that stood still.
  ASSERT_TRUE(trains_until([&] { return statistics().state == PERSEUS_CEILING; })) << client_->status();
  EXPECT_TRUE(eventually([&] { return said_.count("the ceiling of the power budget, 1200 MHz") >= 1; }));
  iterate();
  EXPECT_TRUE(clock_becomes(1200)) << client_->status();
  EXPECT_THAT(client_->status(), HasSubstr(R"("rules":"ceiling","why":"no answer about the plan"})"));
  answer(plan_of(1, fast_clocks, budget_of(3600, 1200)), 1);
  // "unchanged" is an answer too; the lease is still one second, so the rank falls and rises again until then.
  ASSERT_TRUE(trains_until([&] { return statistics().state == PERSEUS_PLANNED; })) << client_->status();
  EXPECT_TRUE(eventually([&] { return said_.count("its plan is in force") >= 1; }));
}

TEST_F(BudgetedRank, AFallThatWasAnnouncedComesWithoutTheServer) {
  start(plan_of(1, fast_clocks, budget_of(3600, 1410)));
  ASSERT_TRUE(follows(1)) << client_->status();
  const auto at_s = static_cast<std::int64_t>(SystemClock().now_s()) + 3;
  const std::string fall = R"([{"at_s":)" + std::to_string(at_s) + R"(,"ceiling_mhz":1250}])";
  answer(plan_of(2, fast_clocks, budget_of(3600, 1410, false, fall)), 2);
  ASSERT_TRUE(trains_until([&] { return statistics().plan_version == 2; })) << client_->status();
  server_.reset();
  // No call of the training thread is needed.
  EXPECT_TRUE(clock_becomes(1200)) << client_->status();
  EXPECT_GE(SystemClock().now_s(), static_cast<double>(at_s) - 0.01);
  ASSERT_TRUE(eventually([&] { return said_.count("a limit has fallen as announced") == 1; })) << client_->status();
  EXPECT_EQ(statistics().ceiling_mhz, 1200);
  iterate();
  EXPECT_EQ(gpu_->clock(), Megahertz(1200));
}

TEST_F(BudgetedRank, TheLeaseEndsWithoutAnyCallOfTheTrainingThread) {
  start(plan_of(1, fast_clocks, budget_of(1, 900)));
  ASSERT_TRUE(follows(1)) << client_->status();
  client_->calls().step_begin(true);
  client_->calls().begin(model::Instruction::forward, -1, -1);
  server_->script([](const http::HttpRequest&) { return std::pair(0, std::string()); });  // no answer at all
  EXPECT_TRUE(clock_becomes(900));
  answer("", 1);
}

TEST_F(BudgetedRank, AHelperThatStartsLateKeepsTheBudget) {
  const std::string go = folder_ + "/go", slow = folder_ + "/slow";
  std::ofstream(slow) << "#!/bin/sh\nwhile [ ! -e " << go << " ]; do sleep 0.01; done\nexec " << options_.helper
                      << " \"$@\"\n";
  std::filesystem::permissions(slow, std::filesystem::perms::owner_all);
  options_.helper = slow;
  options_.start_limit_s = 5;  // also the time that stop() has for threads which use this object
  options_.helper_restart = {3600, 3600};
  start("");
  ASSERT_TRUE(trains_until([&] { return !server_->asked("POST", "/ranks").empty(); }));
  EXPECT_THAT(server_->asked("POST", "/ranks").front(), HasSubstr(R"("control":"none")"));
  std::ofstream(go) << "";
  ASSERT_TRUE(trains_until([&] {
    return server_->asked("POST", "/ranks").back().find(R"("control":"clocks")") != std::string::npos;
  })) << client_->status();
  answer(plan_of(1, slow_clocks, budget_of(3600, 900, true)), 1);
  ASSERT_TRUE(follows(1)) << client_->status();
  EXPECT_TRUE(clock_becomes(900));
}

TEST_F(BudgetedRank, TheCeilingTakesThePlaceOfTheHighestClock) {
  start(plan_of(1, fast_clocks, budget_of(3600, 1200)));
  ASSERT_TRUE(follows(1)) << client_->status();
  client_->calls().step_begin(false);
  EXPECT_TRUE(clock_becomes(1200)) << "evaluation";
  client_->calls().step_end();
  ASSERT_TRUE(trains_until([&] { return said_.count("does not fit") >= 1 && gpu_->clock() == Megahertz(1200); }, 3));
  EXPECT_EQ(statistics().state, PERSEUS_CEILING);
  EXPECT_THAT(client_->status(), HasSubstr("the plan does not fit what this rank runs"));
  ASSERT_TRUE(trains_until([&] { return gpu_->clock() == Megahertz(1410); })) << "it fits again";
  answer(R"({"rank":0,"version":2,"kind":"maximum_clock","from_iteration":0,"clocks":[])" + budget_of(3600, 1200) + "}",
         2);
  ASSERT_TRUE(trains_until([&] { return statistics().plan_version == 2 && gpu_->clock() == Megahertz(1200); }));
  EXPECT_THAT(client_->status(), HasSubstr("the server has no plan"));
}

TEST_F(BudgetedRank, AJobThatIsOverKeepsTheCeilingUntilItsProcessEnds) {
  start(plan_of(1, fast_clocks, budget_of(3600, 1200)));
  ASSERT_TRUE(follows(1)) << client_->status();
  server_->script([](const http::HttpRequest&) { return std::pair(409, std::string(R"({"detail":"it is over"})")); });
  ASSERT_TRUE(trains_until([&] { return gpu_->clock() == Megahertz(1200); })) << client_->status();
  EXPECT_THAT(client_->status(), HasSubstr("the job is over"));
  EXPECT_TRUE(client_->stop());
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
}

TEST_F(BudgetedRank, ABudgetThatBeginsLowersARankWithoutAPlanThatMakesNoCall) {
  start(R"({"rank":0,"version":1,"kind":"maximum_clock","from_iteration":0,"clocks":[]})");
  ASSERT_TRUE(trains_until([&] { return statistics().plan_version == 1; }));
  client_->calls().step_begin(true);
  client_->calls().begin(model::Instruction::forward, -1, -1);
  ASSERT_EQ(gpu_->clock(), Megahertz(1410));
  answer(
      R"({"rank":0,"version":2,"kind":"maximum_clock","from_iteration":99,"clocks":[])" + budget_of(3600, 1200) + "}",
      2);
  EXPECT_TRUE(clock_becomes(1200)) << client_->status();
  client_->calls().end(model::Instruction::forward);
  client_->calls().step_end();
  iterate();
  EXPECT_TRUE(clock_becomes(1200));
}

TEST_F(BudgetedRank, APlanThatHoldsAtOnceLowersTheClockOfAComputationThatNeverEnds) {
  start(plan_of(1, fast_clocks, budget_of(3600, 1200)));
  ASSERT_TRUE(follows(1)) << client_->status();
  client_->calls().step_begin(true);
  client_->calls().begin(model::Instruction::forward, -1, -1);
  ASSERT_TRUE(clock_becomes(1410));
  answer(plan_of(2, slow_clocks, budget_of(3600, 1200, true)), 2);
  EXPECT_TRUE(clock_becomes(900)) << client_->status();
}

TEST_F(BudgetedRank, APlanThatHoldsAtOnceIsFollowedFromTheNextComputationOn) {
  start(plan_of(1, fast_clocks, budget_of(3600, 1200)));
  ASSERT_TRUE(follows(1)) << client_->status();
  client_->calls().step_begin(true);
  compute(model::Instruction::forward);
  answer(plan_of(2, R"([["forward",900],["forward",1200],["backward",900],["backward",1200]])",
                 budget_of(3600, 1200, true)),
         2);
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(1200); })) << "the highest clock of the plan";
  std::vector<int> clocks;
  for (const auto instruction :
       {model::Instruction::forward, model::Instruction::backward, model::Instruction::backward}) {
    client_->calls().set_speed(instruction, -1, -1);
    const int wanted = clocks.size() % 2 == 0 ? 1200 : 900;
    EXPECT_TRUE(clock_becomes(wanted));
    clocks.push_back(gpu_->clock().value());
    compute(instruction);
  }
  EXPECT_THAT(clocks, ::testing::ElementsAre(1200, 900, 1200)) << "each is the clock of its own position";
  EXPECT_EQ(statistics().plan_version, 2);
  client_->calls().step_end();
  EXPECT_EQ(statistics().state, PERSEUS_PLANNED) << "it fits";
  EXPECT_EQ(said_.count("does not fit"), 0);
  const std::int64_t mixed = statistics().iteration - 1;
  iterate();
  iterate();
  // The mixed iteration is reported, as one of no plan.
  const auto reported = [&](std::int64_t iteration) {
    const std::string end = R"("last_iteration":)" + std::to_string(iteration) + ",";
    for (const std::string& report : server_->asked("POST", "/iterations")) {
      if (report.find(end) != std::string::npos) return report;
    }
    return std::string();
  };
  ASSERT_TRUE(eventually([&] { return iterate(), !reported(mixed).empty(); }));
  EXPECT_THAT(reported(mixed), HasSubstr(R"("plan_version":0)"));
}

TEST_F(BudgetedRank, TheEndOfTheBudgetBringsTheHighestClockBack) {
  start(plan_of(1, slow_clocks, budget_of(3600, 900)));
  ASSERT_TRUE(follows(1)) << client_->status();
  answer(R"({"rank":0,"version":2,"kind":"maximum_clock","from_iteration":0,"clocks":[]})", 2);
  ASSERT_TRUE(trains_until([&] { return gpu_->clock() == Megahertz(1410); })) << client_->status();
  EXPECT_EQ(statistics().state, PERSEUS_MAXIMUM_CLOCK);
  EXPECT_EQ(statistics().ceiling_mhz, 0);
  EXPECT_THAT(client_->status(), ::testing::Not(HasSubstr("\"budget\":")));
}

/// The same with a period.
std::string paced(double period_s) {
  std::string budget = budget_of(3600, 900);
  budget.insert(budget.size() - 1, R"(,"paced_iteration_s":)" + std::to_string(period_s));
  return budget;
}

TEST_F(BudgetedRank, AJobThatMayBePacedKeepsThePeriodAndReportsNothingOfTheWaits) {
  options_.paces = true;
  constexpr double period_s = 0.2;
  constexpr int iterations = 5;
  start(plan_of(1, slow_clocks, paced(period_s)));
  ASSERT_TRUE(follows(1)) << client_->status();
  EXPECT_THAT(server_->asked("POST", "/ranks").at(0), HasSubstr(R"("paces":true)"));
  EXPECT_THAT(client_->status(), HasSubstr(R"("paced_iteration_s":0.2})"));
  const double from_s = host_now_s(), before_s = statistics().paced_s;
  double computed_s = 0;
  for (int i = 0; i < iterations; ++i) {
    iterate();
    computed_s += statistics().last_iteration_time_s;
  }
  const double took_s = host_now_s() - from_s, waited_s = statistics().paced_s - before_s;
  EXPECT_GE(took_s, (iterations - 1) * period_s);
  EXPECT_LE(computed_s + waited_s, took_s);
  EXPECT_TRUE(trains_until([&] { return statistics().paced_s > before_s; })) << "unless an iteration takes the period";
}

TEST_F(BudgetedRank, EvaluationTakesNoPauseOfAnIterationAndMakesNone) {
  options_.paces = true;
  constexpr double period_s = 0.1;
  start(plan_of(1, slow_clocks, paced(period_s)));
  ASSERT_TRUE(follows(1)) << client_->status();
  const double from_s = host_now_s();
  iterate();
  client_->calls().step_begin(false);
  EXPECT_GE(host_now_s() - from_s, period_s) << "the iteration's own pause";
  const double before_s = statistics().paced_s;
  for (int i = 0; i < 3; ++i) client_->calls().step_begin(false);
  client_->calls().step_begin(true);
  EXPECT_EQ(statistics().paced_s, before_s);
  client_->calls().step_end();
}

/// A fall at that time since 1970, with a period.
std::string paced_fall(double at_s) {
  return R"([{"at_s":)" + std::to_string(at_s) + R"(,"ceiling_mhz":900,"paced_iteration_s":1800}])";
}

TEST_F(BudgetedRank, AFallBringsItsPeriodWithoutTheServer) {
  options_.paces = true;
  const double fall_s = SystemClock().now_s() + 3;
  start(plan_of(1, fast_clocks, budget_of(3600, 1200, false, paced_fall(fall_s))));
  ASSERT_TRUE(eventually([&] { return client_->status().find("\"budget\"") != std::string::npos; }));
  const double before_s = client_->calls().pacer().period_s();
  EXPECT_TRUE(before_s == 0 || SystemClock().now_s() >= fall_s) << before_s;
  server_.reset();
  EXPECT_TRUE(eventually([&] { return client_->calls().pacer().period_s() == 1800; })) << client_->status();
  EXPECT_GE(SystemClock().now_s(), fall_s - 0.01);
  EXPECT_THAT(client_->status(), HasSubstr(R"("paced_iteration_s":1800)"));
  client_->calls().pacer().stop();
}

TEST_F(BudgetedRank, AFallWithAPeriodDoesNotPaceAJobThatDoesNotAllowIt) {
  start(plan_of(1, slow_clocks, budget_of(3600, 900, false, paced_fall(1))));
  ASSERT_TRUE(trains_until([&] { return statistics().plan_version == 1; })) << client_->status();
  iterate();
  EXPECT_EQ(client_->calls().pacer().period_s(), 0);
  EXPECT_EQ(statistics().paced_s, 0);
}

TEST_F(BudgetedRank, APlanWithoutAPeriodTheEndOfTheJobAndStopEndAWait) {
  options_.paces = true;
  start(plan_of(1, slow_clocks, paced(3600)));
  ASSERT_TRUE(eventually([&] { return client_->calls().pacer().period_s() == 3600; }));
  answer(plan_of(2, slow_clocks, budget_of(3600, 900)), 2);
  EXPECT_TRUE(eventually([&] { return client_->calls().pacer().period_s() == 0; })) << "a plan without a period";
  answer(plan_of(3, slow_clocks, paced(1800)), 3);
  ASSERT_TRUE(eventually([&] { return client_->calls().pacer().period_s() == 1800; }));
  server_->script([](const http::HttpRequest&) { return std::pair(409, std::string("{}")); });
  EXPECT_TRUE(eventually([&] { return client_->calls().pacer().period_s() == 0; })) << "the job is over";
  client_->calls().pacer().set(3600);
  client_->stop();
  EXPECT_EQ(client_->calls().pacer().period_s(), 0);
}

TEST_F(BudgetedRank, AWindowAndAPlanThatComeDuringAWaitEndItAndHoldInTheStepThatWaited) {
  options_.paces = true;
  std::string window = plan_of(2, fast_clocks, R"(,"window":0,"iterations":1000)");
  window.replace(window.find(R"("plan")"), 6, R"("profiling_window")");
  start(plan_of(1, slow_clocks, paced(0.01)));
  int version = 1;
  for (const std::string& next : {window, plan_of(4, fast_clocks)}) {
    ASSERT_TRUE(follows(version)) << client_->status();
    client_->calls().pacer().set(3600);
    std::thread waits([this] { client_->calls().step_begin(true); });
    EXPECT_TRUE(eventually([&] { return client_->calls().pacer().waits(); }));
    answer(next, ++version);
    EXPECT_TRUE(eventually([&] { return client_->calls().pacer().period_s() == 0; })) << client_->status();
    waits.join();
    EXPECT_EQ(statistics().plan_version, version);
    client_->calls().step_end();
    const double before_s = statistics().paced_s;
    for (int i = 0; i < 3; ++i) iterate();
    EXPECT_EQ(statistics().paced_s, before_s) << "nor do the steps after it wait";
    ++version;
    answer(plan_of(version, slow_clocks, paced(0.01)), version);
  }
}

TEST_F(BudgetedRank, AJobThatDoesNotAllowItIsNeverPaced) {
  start(plan_of(1, slow_clocks, paced(3600)));
  ASSERT_TRUE(follows(1)) << client_->status();
  EXPECT_THAT(server_->asked("POST", "/ranks").at(0), ::testing::Not(HasSubstr("paces")));
  iterate();
  EXPECT_EQ(statistics().paced_s, 0);
}

}  // namespace
}  // namespace perseus::client
