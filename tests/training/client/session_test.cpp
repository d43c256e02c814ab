// The session against a scripted server: its requests, and every way in which a server can fail.
#include "training/client/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <new>
#include <string>

#include "tests/training/client/scripted_server.h"

namespace perseus::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SessionTest : public ::testing::Test {
 protected:
  void start(const std::string& url, double least_wait_s = hasty().least_wait_s, Complaints* by = nullptr) {
    options.server = url;
    options.timing = hasty();
    options.timing.least_wait_s = least_wait_s;
    options.report_interval_s = 0.01;
    SessionListener listener;
    listener.on_job = [this](const std::string&) { ++jobs; };
    listener.on_registered = [this](const std::string&) { ++registered; };
    listener.on_plan = [this](std::unique_ptr<ClockPlan> plan) { version = plan->version; };
    listener.on_held = [this](bool is) { held = is; };
    listener.on_answer = [this](const Answered&) { ++answers; };
    listener.iteration = [] { return 7; };
    if (clocks) listener.clocks = [this] { return *clocks; };
    session = std::make_unique<Session>(options, RankFacts{{1410, 1200, 900}, "GPU-1", "here"}, std::move(listener),
                                        by != nullptr ? *by : complaints);
  }
  static MeasuredIteration iteration(std::int64_t number, std::int64_t plan, int window = -1, bool ends = false) {
    MeasuredIteration i;
    i.iteration = number;
    i.plan_version = plan;
    i.window = window;
    i.ends_window = ends;
    i.time_s = 0.5;
    i.energy_j = 100;
    if (window >= 0)
      i.computations = {{model::Instruction::forward, 0.1, 20, 0, 0.1},
                        {model::Instruction::backward, 0.2, 40, 0.15, 0.35},
                        {model::Instruction::forward, 0.11, 21, 0.35, 0.46}};
    return i;
  }

  ClientOptions options;
  std::optional<SeenClocks> clocks;
  Said said;
  Complaints complaints{said.log(), no_pause()};
  std::atomic<int> jobs{0}, registered{0}, answers{0};
  std::atomic<std::int64_t> version{0};
  std::atomic<bool> held{false};
  std::unique_ptr<Session> session;
};

const std::string a_plan = plan_of(1, R"([["forward",1200],["backward",900]])");

/// Rejects every rank while `forgot` is set, until a rank registers.
ScriptedServer::Script forgetful(std::atomic<bool>& forgot) {
  return [&forgot](const http::HttpRequest& request) {
    if (request.path.ends_with("/ranks")) forgot = false;
    if (forgot && request.path.ends_with("/plan")) return std::pair(404, std::string(R"({"detail":"no such rank"})"));
    return well(request, a_plan);
  };
}

TEST_F(SessionTest, RegistersAndGetsItsPlan) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  options.job_name = "a \"name\"";
  options.profile = "sample";
  options.facts = {{"model", "gpt3"}};
  options.labels = {{"team", "vision"}};
  options.domain = "row-a";
  options.least_rate = 0.9;
  options.priority = 2;
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  EXPECT_THAT(server.asked("POST", "/v1/jobs").at(0),
              AllOf(HasSubstr(R"("name":"a \"name\"")"), HasSubstr(R"("profile":"sample")"),
                    HasSubstr(R"("facts":{"model":"gpt3"})"), HasSubstr(R"("labels":{"team":"vision"})"),
                    HasSubstr(R"("domain":"row-a","least_rate":0.9,"priority":2)"), Not(HasSubstr("profile_online"))));
  EXPECT_THAT(server.asked("POST", "/v1/jobs/j1/ranks").at(0),
              AllOf(HasSubstr(R"("clocks_mhz":[1410,1200,900])"), HasSubstr(R"("accelerator":"GPU-1")")));
  EXPECT_TRUE(session->reached());
  EXPECT_FALSE(held);
  EXPECT_EQ(session->failures(), 0);
  session->stop(30);
  EXPECT_EQ(server.asked("POST", "/v1/jobs/j1/finish").size(), 1U);
}

TEST_F(SessionTest, ARefusalWithoutAReasonNamesItsStatus) {
  ScriptedServer server([](const http::HttpRequest&) { return std::pair(307, std::string()); });
  start(server.url());
  EXPECT_TRUE(eventually([&] { return said.count("rejected the job: a redirect (status 307); ") > 0; }));
}

TEST_F(SessionTest, ASavingThatCannotBeIsNotShown) {
  for (const auto& [saving, shown] : {std::pair("99", true), std::pair("1e9", false)}) {
    const std::string plan =
        plan_of(1, R"([["forward",1200]])", fmt::format(R"(,"saving_pct":{},"saving_stddev_pct":{})", saving, saving));
    EXPECT_EQ((*read_plan(plan, {}).value()).saving_pct.has_value(), shown);
  }
}

TEST_F(SessionTest, APlanReceivedWithTheRegistrationIsNotRequestedAgain) {
  std::mutex mutex;
  std::string first_have;
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path.ends_with("/ranks")) {
      EXPECT_EQ(request.parameter("plan").value_or(""), "true");
      return std::pair(200, R"({"registered":1,"expected":1,"plan":)" + a_plan + "}");
    }
    if (request.path.ends_with("/plan")) {
      const std::lock_guard lock(mutex);
      if (first_have.empty()) first_have = request.parameter("have").value_or("none");
    }
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1 && !server.asked("GET", "/plan").empty(); }));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(first_have, "1");
}

TEST_F(SessionTest, AnUnreadablePlanOfTheRegistrationIsRequestedAgain) {
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path.ends_with("/ranks")) return std::pair(200, std::string(R"({"registered":1,"plan":{"kind":7}})"));
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
}

TEST_F(SessionTest, OnlyRank0RegistersAJobOfSeveralRanks) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  options.rank = 1;
  options.pp_degree = 2;
  start(server.url());
  ASSERT_TRUE(eventually([&] { return said.count("rank 1 of 2 has no job id") == 1; }));
  EXPECT_TRUE(server.asked("POST", "/v1/jobs").empty());
}

TEST_F(SessionTest, AProfileIsMeasuredOnlineWhereNoneIsNamed) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, ""); });
  options.microbatches = 8;
  start(server.url());
  ASSERT_TRUE(eventually([&] { return !server.asked("POST", "/v1/jobs").empty(); }));
  EXPECT_THAT(
      server.asked("POST", "/v1/jobs").at(0),
      AllOf(HasSubstr(R"("profile_online":true)"), HasSubstr(R"("pipeline":{"schedule":"1f1b","microbatches":8})")));
}

TEST_F(SessionTest, AFailingServerIsLoggedOnceUntilItRecovers) {
  ScriptedServer server([](const http::HttpRequest&) { return std::pair(503, R"({"detail":"no database"})"); });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return held && session->failures() > 5; }));
  EXPECT_EQ(said.count("no database"), 1);
  server.script([](const http::HttpRequest& request) { return well(request, a_plan); });
  ASSERT_TRUE(eventually([&] { return version == 1 && !held; }));
  EXPECT_EQ(said.count("answers again"), 1);
  EXPECT_TRUE(complaints.all().empty());
}

TEST_F(SessionTest, TheLogMayCallTheSession) {
  ScriptedServer server([](const http::HttpRequest&) { return std::pair(503, R"({"detail":"no database"})"); });
  std::atomic<bool> ready{false}, stopped{false};
  Complaints calling(
      [&](LogLevel, const std::string&) {
        while (!ready) std::this_thread::yield();
        session->report(iteration(1, 0));
        session->straggles(1.2);
        session->stop(0);
        stopped = true;
      },
      no_pause());
  start(server.url(), hasty().least_wait_s, &calling);
  ready = true;
  EXPECT_TRUE(eventually([&] { return stopped.load(); }));
  session.reset();
}

TEST_F(SessionTest, AServerThatRejectsTheRankIsLoggedOnceAndRetried) {
  options.token = "perseus_known_elsewhere";
  for (const int status : {401, 403, 429}) {
    ScriptedServer server([=](const http::HttpRequest&) { return std::pair(status, R"({"detail":"not you"})"); });
    start(server.url());
    ASSERT_TRUE(eventually([&] { return held && session->failures() > 3; })) << status;
    EXPECT_EQ(said.count("not you"), 1) << status;
    EXPECT_EQ(said.count("answered " + std::to_string(status)), 1) << "it is the server's fault, not the job's";
    server.script([](const http::HttpRequest& request) { return well(request, a_plan); });
    ASSERT_TRUE(eventually([&] { return version == 1 && !held; })) << status;
    EXPECT_TRUE(complaints.all().empty());
    session.reset();
    version = 0;
    said.forget();
  }
}

TEST_F(SessionTest, AMissingTokenIsAMatterOfPerseusToken) {
  ScriptedServer server([](const http::HttpRequest&) {
    return std::pair(401, R"({"detail":"a token is required: send the header 'Authorization: Bearer TOKEN'"})");
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return session->failures() > 1; }));
  EXPECT_EQ(said.count("requires a token: set PERSEUS_TOKEN, or the option token"), 1);
  EXPECT_EQ(said.count("header"), 0) << "a training script sends no headers";
}

TEST_F(SessionTest, ARefusedTokenIsAMatterOfPerseusToken) {
  ScriptedServer server(
      [](const http::HttpRequest&) { return std::pair(401, R"({"detail":"this token has expired"})"); });
  options.token = "perseus_old";
  start(server.url());
  ASSERT_TRUE(eventually([&] { return session->failures() > 1; }));
  EXPECT_EQ(said.count("answered 401: this token has expired (PERSEUS_TOKEN, or the option token)"), 1);
}

TEST_F(SessionTest, RecoversFromRunningOutOfDescriptors) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  start(server.url());
  const bool failed = eventually([&] { return session->failures() > 3; });
  session->report(iteration(1, 1));
  session->report(iteration(2, 2));  // under another plan: the session sends the previous report
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(failed);
  EXPECT_TRUE(complaints.raised(Cause::server) || session->reached());
  server.script([](const http::HttpRequest& request) { return well(request, plan_of(2, "[]"), 2); });
  EXPECT_TRUE(eventually([&] { return version == 2 && !held; }));
  EXPECT_TRUE(eventually([&] { return !server.asked("POST", "/iterations").empty(); }));
}

TEST_F(SessionTest, RecoversFromRunningOutOfMemory) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  options.server = server.url();
  options.timing = hasty();
  std::atomic<int> plans{0};
  SessionListener listener;
  listener.on_job = [](const std::string&) {};
  listener.on_plan = [&](std::unique_ptr<ClockPlan>) {
    if (++plans < 3) throw std::bad_alloc();
  };
  listener.on_held = [](bool) {};
  listener.iteration = [] { return 0; };
  session = std::make_unique<Session>(options, RankFacts{}, std::move(listener), complaints);
  EXPECT_TRUE(eventually([&] { return plans == 3; }));
  session.reset();
}

TEST_F(SessionTest, ALaterProcessOfARankHasAGreaterEpoch) {
  std::atomic<bool> forgot{false};
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  const auto epoch_of = [](const std::string& body) {
    const std::string member = R"("epoch":)";
    const std::size_t at = body.find(member);
    return at == std::string::npos ? 0 : std::stoll(body.substr(at + member.size()));
  };
  server.script(forgetful(forgot));
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  forgot = true;
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/ranks").size() == 2; }));
  session.reset();
  start(server.url());
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/ranks").size() == 3; }));
  const std::vector<std::string> requests = server.asked("POST", "/ranks");
  EXPECT_GT(epoch_of(requests[0]), 0);
  EXPECT_EQ(epoch_of(requests[0]), epoch_of(requests[1]));
  EXPECT_LT(epoch_of(requests[1]), epoch_of(requests[2]));
}

TEST_F(SessionTest, SendsOneIdempotencyKeyUntilTheJobIsRegistered) {
  std::atomic<int> lost{2};
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path == "/v1/jobs" && lost-- > 0) return std::pair(503, std::string(R"({"detail":"no database"})"));
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  session.reset();
  start(server.url());
  ASSERT_TRUE(eventually([&] { return server.requests("POST", "/v1/jobs").size() == 4; }));
  std::vector<std::string> keys;
  for (const http::HttpRequest& request : server.requests("POST", "/v1/jobs")) {
    keys.emplace_back(request.header("Idempotency-Key").value_or(""));
  }
  EXPECT_EQ(keys[0].size(), 32U);
  EXPECT_EQ(keys[1], keys[0]);
  EXPECT_EQ(keys[2], keys[0]);
  EXPECT_NE(keys[3], keys[0]) << "another process's job";
}

TEST_F(SessionTest, NamesItselfByTheEpochThatTheServerGaveIt) {
  ScriptedServer server([](const http::HttpRequest& request) {
    if (request.path.ends_with("/ranks")) {
      return std::pair(200, std::string(R"({"registered":1,"expected":1,"epoch":77})"));
    }
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  session->report(iteration(1, 1));
  session->plan_dropped({1, 0.5, 0.7, "text", "reason"});
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/plan_dropped").size() == 1; }));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() == 1; }));
  EXPECT_EQ(server.requests("GET", "/plan").at(0).parameter("epoch"), "77");
  EXPECT_THAT(server.asked("POST", "/plan_dropped").at(0), HasSubstr(R"("epoch":77)"));
  EXPECT_THAT(server.asked("POST", "/iterations").at(0), HasSubstr(R"("epoch":77)"));
}

TEST_F(SessionTest, AServerThatGivesNoEpochGetsNoneInOtherCalls) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  session->report(iteration(1, 1));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() == 1; }));
  EXPECT_FALSE(server.requests("GET", "/plan").at(0).parameter("epoch"));
  EXPECT_THAT(server.asked("POST", "/iterations").at(0), Not(HasSubstr("epoch")));
  EXPECT_THAT(server.asked("POST", "/ranks").at(0), Not(HasSubstr("replaces")));
  EXPECT_THAT(server.asked("POST", "/ranks").at(0), HasSubstr(R"("keeps_budgets":true)"));
}

TEST_F(SessionTest, AProcessThatTorchElasticRestartedTakesItsRankOver) {
  std::atomic<bool> forgot{false};
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  server.script(forgetful(forgot));
  ASSERT_EQ(setenv("TORCHELASTIC_RESTART_COUNT", "1", 1), 0);
  start(server.url());
  ASSERT_EQ(unsetenv("TORCHELASTIC_RESTART_COUNT"), 0);
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  forgot = true;
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/ranks").size() == 2; }));
  EXPECT_THAT(server.asked("POST", "/ranks").at(0), HasSubstr(R"("replaces":true)"));
  EXPECT_THAT(server.asked("POST", "/ranks").at(1), Not(HasSubstr("replaces"))) << "it may have lost the rank since";
}

TEST_F(SessionTest, ADroppedPlanIsReportedOnceEvenAfterAnOutage) {
  ScriptedServer server([](const http::HttpRequest& request) {
    if (request.path.ends_with("/plan_dropped")) return std::pair(503, std::string(R"({"detail":"no database"})"));
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  session->plan_dropped({1, 0.5, 0.75, "", "it is \"slow\""});
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/v1/jobs/j1/ranks/0/plan_dropped").size() >= 2; }));
  server.script([](const http::HttpRequest& request) { return well(request, a_plan); });
  ASSERT_TRUE(eventually([&] { return !held && session->reached(); }));
  session->report(iteration(1, 1));
  session->report(iteration(2, 2));
  ASSERT_TRUE(eventually([&] { return !server.asked("POST", "/iterations").empty(); }));
  const std::vector<std::string> reports = server.asked("POST", "/plan_dropped");
  EXPECT_EQ(reports.back(), R"({"version":1,"reason":"it is \"slow\"","measured_time_s":0.75,"promised_time_s":0.5})");
  session->report(iteration(3, 3));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() > 1; }));
  EXPECT_EQ(server.asked("POST", "/plan_dropped").size(), reports.size());
}

TEST_F(SessionTest, NoServer) {
  start("http://127.0.0.1:9");
  ASSERT_TRUE(eventually([&] { return held && session->failures() > 5; }));
  EXPECT_EQ(said.count("127.0.0.1:9"), 1);
  session->wait_for_job(60);
  session->stop(30);
}

TEST_F(SessionTest, AnswersThatAreNoPlanCountAsNone) {
  for (const std::string& nonsense :
       {std::string("<html>"), std::string("{}"), plan_of(1, R"([["sideways",1200]])"),
        plan_of(1, R"([["forward",1201]])"), plan_of(0, "[]"), plan_of(1, R"([["forward"]])"),
        plan_of(1, R"([["forward",1e99]])"), std::string("[[[[")}) {
    ScriptedServer server([&](const http::HttpRequest& request) { return well(request, nonsense); });
    start(server.url());
    ASSERT_TRUE(eventually([&] { return held && session->failures() > 2; })) << nonsense;
    EXPECT_EQ(version, 0) << nonsense;
    EXPECT_TRUE(complaints.raised(Cause::server));
    server.script([](const http::HttpRequest& request) { return well(request, a_plan); });
    ASSERT_TRUE(eventually([&] { return version == 1 && !held; })) << nonsense;
    session.reset();
    version = 0;
  }
}

TEST_F(SessionTest, AJobThatIsOverIsAnEndAndNoFailure) {
  std::atomic<bool> over{false};
  const auto script = [&](const http::HttpRequest& request) {
    const bool asks_or_tells = request.path.ends_with("/plan") || request.path.ends_with("/iterations");
    if (over && asks_or_tells) return std::pair(409, std::string(R"({"detail":"job j1 is finished"})"));
    return well(request, a_plan);
  };
  for (const bool hears_it_by_asking : {true, false}) {
    over = false;
    ScriptedServer server(script);
    start(server.url());
    ASSERT_TRUE(eventually([&] { return version == 1; }));
    if (!hears_it_by_asking)
      server.script([&](const http::HttpRequest& request) {
        if (request.path.ends_with("/plan")) return std::pair(0, std::string());  // no answer
        return script(request);
      });
    over = true;
    if (!hears_it_by_asking) {
      session->report(iteration(1, 1));
      session->report(iteration(2, 2));  // under another plan: the session sends the previous report
    }
    ASSERT_TRUE(eventually([&] { return held.load(); }));
    session->report(iteration(3, 3));
    session->stop(30);
    EXPECT_EQ(said.count("job j1 is finished"), hears_it_by_asking ? 1 : 2) << "once in each session";
    EXPECT_EQ(said.count("rejected"), 0);
    EXPECT_EQ(session->failures(), 0);
    EXPECT_TRUE(complaints.all().empty());
    EXPECT_LE(server.asked("POST", "/iterations").size(), 2U) << "the one that was refused, and one before it";
    EXPECT_TRUE(server.asked("POST", "/finish").empty()) << "it has ended already";
    session.reset();
    version = 0;
    held = false;
  }
}

TEST_F(SessionTest, APlanThatArrivesAfterTheEndOfTheJobIsNotFollowed) {
  ScriptedServer server([](const http::HttpRequest& request) {
    if (request.path.ends_with("/plan")) return std::pair(0, std::string());  // no answer yet
    if (request.path.ends_with("/iterations")) return std::pair(409, std::string(R"({"detail":"job j1 is finished"})"));
    return well(request, "");
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return server.asked("GET", "/plan").size() == 1; }));
  session->report(iteration(1, 1));
  ASSERT_TRUE(eventually([&] { return held.load(); }));
  server.answer_held(200, a_plan);
  ASSERT_TRUE(eventually([&] { return answers == 1; }));
  session->stop(30);
  EXPECT_EQ(version, 0) << "a pace that comes with it would never end";
  EXPECT_TRUE(held);
}

TEST_F(SessionTest, ALateRankLearnsThatTheJobHasEnded) {
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path.ends_with("/v1/jobs")) return well(request, a_plan);
    return std::pair(409, std::string(R"({"detail":"job j1 is finished"})"));
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return held.load(); }));
  EXPECT_EQ(said.count("job j1 is finished, so rank 0, which starts now, gets no plan"), 1);
  EXPECT_TRUE(complaints.raised(Cause::job)) << "a process that trains on must see it";
  EXPECT_EQ(registered, 1) << "of the job alone";
  EXPECT_EQ(said.count("rejected"), 0);
  EXPECT_EQ(session->failures(), 0);
  EXPECT_EQ(server.asked("POST", "/ranks").size(), 1U);
}

TEST_F(SessionTest, ARankOfAnotherProcessIsRefusedAndLogged) {
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path.ends_with("/ranks")) return std::pair(409, std::string(R"({"detail":"with other data"})"));
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return said.count("with other data") == 1; }));
  EXPECT_TRUE(complaints.raised(Cause::job));
  EXPECT_EQ(version, 0) << "the plan is another rank's";
}

TEST_F(SessionTest, ARankRegistersAgainAtAServerThatForgotIt) {
  std::atomic<bool> forgot{false};
  ScriptedServer server(forgetful(forgot));
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  version = 0;
  forgot = true;
  ASSERT_TRUE(eventually([&] { return version == 1 && !held; }));
  EXPECT_EQ(server.asked("POST", "/v1/jobs/j1/ranks").size(), 2U);
  EXPECT_EQ(server.asked("POST", "/v1/jobs").size(), 1U);
}

TEST_F(SessionTest, AJobOfOneRankThatTheServerForgotIsRegisteredAnew) {
  std::atomic<bool> forgot{false};
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path == "/v1/jobs") forgot = false;
    if (forgot) return std::pair(404, std::string(R"({"detail":"no such job"})"));
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  forgot = true;
  ASSERT_TRUE(eventually([&] { return jobs == 2 && !held && session->reached(); }));
}

TEST_F(SessionTest, ARankWhoseJobHasEndedRegistersANewOneIfItIsTheJobsOnlyRank) {
  for (const auto& [status, detail] : {std::pair(404, "no job old"), std::pair(409, "job old is finished")}) {
    const std::pair refusal(status, fmt::format(R"({{"detail":"{}"}})", detail));
    ScriptedServer server([&refusal](const http::HttpRequest& request) {
      return request.path.starts_with("/v1/jobs/old") ? refusal : well(request, a_plan);
    });
    options.job = "old";
    registered = 0;
    version = 0;
    start(server.url());
    ASSERT_TRUE(eventually([&] { return version == 1 && session->reached(); })) << detail;
    EXPECT_EQ(said.count(fmt::format("rejected rank 0 of job old: {}; it registers a new job", detail)), 1);
    EXPECT_EQ(registered, 1) << "not the old one";
    EXPECT_TRUE(complaints.all().empty());
    session->stop(30);
    EXPECT_EQ(server.asked("POST", "/v1/jobs/j1/finish").size(), 1U);
    session.reset();
  }
}

TEST_F(SessionTest, AReportToAnEndedJobDoesNotKeepTheOnlyRankFromANewOne) {
  std::atomic<bool> registers{false};
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (!registers && !request.path.ends_with("/iterations")) return std::pair(503, std::string("{}"));
    if (request.path.starts_with("/v1/jobs/old")) return std::pair(409, std::string(R"({"detail":"old is finished"})"));
    return well(request, a_plan);
  });
  options.job = "old";
  start(server.url());
  session->report(iteration(1, 1));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/v1/jobs/old/iterations").size() == 1; }));
  registers = true;
  EXPECT_TRUE(eventually([&] { return version == 1; }));
  EXPECT_EQ(registered, 1);
}

TEST_F(SessionTest, AGivenJobIsAskedForAgainWhileTheServerRefusesANewOne) {
  std::atomic<bool> forgot{true};
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path == "/v1/jobs") return std::pair(403, std::string(R"({"detail":"this token registers no job"})"));
    if (forgot) return std::pair(404, std::string(R"({"detail":"no such job"})"));
    return well(request, a_plan);
  });
  options.job = "old";
  start(server.url());
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/v1/jobs").size() >= 2; }));
  forgot = false;
  ASSERT_TRUE(eventually([&] { return version == 1 && session->reached(); }));
  session->stop(30);
  EXPECT_TRUE(server.asked("POST", "/finish").empty()) << "this process has not registered it";
}

TEST_F(SessionTest, AJobOfOthersThatTheServerForgotMeansTheHighestClock) {
  options.job = "j1";
  options.pp_degree = 2;
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  EXPECT_EQ(registered, 1);
  server.script([](const http::HttpRequest&) { return std::pair(404, std::string(R"({"detail":"no such job"})")); });
  ASSERT_TRUE(eventually([&] { return held && session->failures() > 3; }));
  EXPECT_EQ(said.count("no such job"), 1);
  EXPECT_TRUE(server.asked("POST", "/v1/jobs").empty());
  server.script([](const http::HttpRequest& request) { return well(request, a_plan); });
  EXPECT_TRUE(eventually([&] { return !held; }));
}

TEST_F(SessionTest, AServerThatNeverAnswersBlocksNoCall) {
  ScriptedServer server([](const http::HttpRequest&) { return std::pair(0, std::string()); });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return !server.asked("POST", "/v1/jobs").empty(); }));
  session->stop(2);  // the answer's time limit is 30 s
  session.reset();
}

TEST_F(SessionTest, TooSlowIsNoAnswer) {
  ScriptedServer server([](const http::HttpRequest&) { return std::pair(0, std::string()); });
  options.server = server.url();
  start(server.url());
  session.reset();
  options.timing.answer_s = 0.02;
  const SessionTiming timing = options.timing;
  SessionListener listener;
  listener.on_job = [](const std::string&) {};
  listener.on_plan = [](std::unique_ptr<ClockPlan>) {};
  listener.on_held = [this](bool is) { held = is; };
  listener.iteration = [] { return 0; };
  options.timing = timing;
  session = std::make_unique<Session>(options, RankFacts{}, std::move(listener), complaints);
  EXPECT_TRUE(eventually([&] { return held && session->failures() > 2; }));
  EXPECT_EQ(said.count("no answer within"), 1);
  EXPECT_EQ(said.count("at the highest clock, where it saves nothing, until it gets a plan"), 1);
}

TEST_F(SessionTest, RequestsToAServerThatDoesNotWaitArePaced) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  start(server.url(), 3600);
  ASSERT_TRUE(eventually([&] { return server.asked("GET", "/plan").size() == 2; }));  // plan, then "unchanged"
  for (int i = 0; i < 5; ++i) {  // each takes longer than the interval between requests
    session->report(iteration(i, 1));
    ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() == i + 1U; }));
  }
  EXPECT_EQ(server.asked("GET", "/plan").size(), 2U);
}

TEST_F(SessionTest, WhatWasSeenOfTheClocksIsReportedFromTimeToTime) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  clocks = SeenClocks{1200, 3, 2, 1};
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  for (const std::int64_t number : {1, 2}) {
    session->report(iteration(number, 1));
    ASSERT_TRUE(
        eventually([&] { return server.asked("POST", "/iterations").size() == static_cast<std::size_t>(number); }));
  }
  EXPECT_THAT(server.asked("POST", "/iterations").at(0),
              HasSubstr(R"("clocks":{"set_mhz":1200,"failed":3,"late":2,"throttled_iterations":1})"));
  EXPECT_THAT(server.asked("POST", "/iterations").at(1), Not(HasSubstr("clocks"))) << "half a minute is not over";
}

TEST_F(SessionTest, ReportsWindowsWholeAndIterationsByPlan) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, a_plan); });
  options.report_interval_s = 1000;
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  session.reset();
  options.report_interval_s = 0.01;
  start(server.url());
  ASSERT_TRUE(eventually([&] { return session->reached(); }));
  session->report(iteration(0, 1, 3));
  session->report(iteration(1, 1, 3, true));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() == 1; }));
  EXPECT_EQ(
      server.asked("POST", "/iterations").back(),
      R"({"rank":0,"window":3,"last_iteration":1,"plan_version":1,"iteration_time_s":[0.5,0.5],"iteration_energy_j":[100,100],)"
      R"("time_s":{"forward":[[0.1,0.11],[0.1,0.11]],"backward":[[0.2],[0.2]]},)"
      R"("energy_j":{"forward":[[20,21],[20,21]],"backward":[[40],[40]]},"throttled":[false,false],)"
      R"("begin_s":{"forward":[[0,0.35],[0,0.35]],"backward":[[0.15],[0.15]]},)"
      R"("end_s":{"forward":[[0.1,0.46],[0.1,0.46]],"backward":[[0.35],[0.35]]}})");
  session->report(iteration(2, 1));
  session->report(iteration(3, 2));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() == 3; }));
  EXPECT_THAT(server.asked("POST", "/iterations").at(1),
              HasSubstr(R"("last_iteration":2,"plan_version":1,"iteration_time_s":[0.5])"));
  session->report(iteration(4, 3, 5));  // half a window, then another plan
  session->report(iteration(5, 4));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() == 4; }));
  EXPECT_THAT(server.asked("POST", "/iterations").at(3), HasSubstr(R"("last_iteration":5)"));
}

TEST_F(SessionTest, LearnedFactsAreReportedLaterAndAtEachRegistration) {
  std::atomic<bool> forgot{false};
  ScriptedServer server(forgetful(forgot));
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  EXPECT_THAT(server.asked("POST", "/ranks").at(0), Not(HasSubstr("switch_latency_s")));
  RankFacts facts{{1410, 1200, 900}, "GPU-1", "here"};
  facts.switch_latency_s = 0.005;
  facts.blocking_power_w = 83.5;
  facts.instructions = {"forward", "backward"};
  session->learned(facts);
  const auto learned =
      AllOf(HasSubstr(R"("switch_latency_s":0.005)"), HasSubstr(R"("blocking_power_w":83.5)"),
            HasSubstr(R"("instructions":["forward","backward"])"), HasSubstr(R"("clocks_mhz":[1410,1200,900])"));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/ranks").size() == 2; }));
  EXPECT_THAT(server.asked("POST", "/ranks").at(1), learned);
  forgot = true;
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/ranks").size() == 4; }));
  EXPECT_THAT(server.asked("POST", "/ranks").at(2), learned);
  EXPECT_THAT(server.asked("POST", "/ranks").at(3), learned);
}

TEST_F(SessionTest, ReportsEndIfTheServerRefusesThem) {
  std::atomic<int> ranks{0};
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path.ends_with("/ranks") && ++ranks > 1)
      return std::pair(409, std::string(R"({"detail":"other data"})"));
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  RankFacts facts{{1410, 1200, 900}, "GPU-1", "here"};
  facts.switch_latency_s = 0.005;
  session->learned(facts);
  ASSERT_TRUE(eventually([&] { return ranks == 2; }));
  session->report(iteration(0, 1));
  ASSERT_TRUE(eventually([&] { return !server.asked("POST", "/iterations").empty(); }));
  EXPECT_EQ(ranks, 2);
  EXPECT_EQ(said.count("other data"), 0);
  EXPECT_FALSE(held);
}

TEST_F(SessionTest, AReportThatTheServerRejectsIsLoggedOnceAndTheNextOnesAreSent) {
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.path.ends_with("/iterations"))
      return std::pair(400, std::string(R"({"detail":"last_iteration: 0; allowed: at least 1"})"));
    return well(request, a_plan);
  });
  start(server.url());
  ASSERT_TRUE(eventually([&] { return version == 1; }));
  for (int i = 0; i < 4; ++i) session->report(iteration(i, i + 1));
  ASSERT_TRUE(eventually([&] { return server.asked("POST", "/iterations").size() >= 3; })) << "none is repeated";
  EXPECT_EQ(said.count("allowed: at least 1"), 1);
  EXPECT_EQ(session->failures(), 0);
  EXPECT_FALSE(held);
}

TEST_F(SessionTest, EnergiesThatAreNotKnownAreLeftOut) {
  MeasuredIteration i = iteration(0, 1, 0, true);
  i.energy_j = -1;
  i.computations[1].energy_j = -1;
  EXPECT_THAT(iterations_body(2, {i}),
              AllOf(Not(HasSubstr("energy_j")), HasSubstr(R"("rank":2)"), HasSubstr("time_s")));
}

TEST_F(SessionTest, NoMessageShowsTheCredentialsOfTheUrl) {
  ScriptedServer server([](const http::HttpRequest&) { return std::pair(503, R"({"detail":"no database"})"); });
  start("http://any:perseus_secret@" + server.url().substr(std::string("http://").size()));
  ASSERT_TRUE(eventually([&] { return held && session->failures() > 5; }));
  EXPECT_EQ(said.count("no database"), 1);
  server.script([](const http::HttpRequest& request) { return well(request, a_plan); });
  ASSERT_TRUE(eventually([&] { return version == 1 && !held; }));
  EXPECT_EQ(said.count("answers again"), 1);
  EXPECT_EQ(said.count("perseus_secret"), 0);
}

}  // namespace
}  // namespace perseus::client
