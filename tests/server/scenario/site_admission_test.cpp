// Reservations of a site between two servers on one database, and in a crash at any moment.
#include "server/jobs/site_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/scenario_site.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;

constexpr double kPoll_s = 5;

service::ServiceOptions options_of(const std::string& owner) {
  service::ServiceOptions options;
  options.owner = owner;
  options.site_poll_s = kPoll_s;
  return options;
}

std::string request_for(const std::string& job, double watts) {
  return R"({"job":")" + job + R"(","accelerators":1,"accelerator_w":)" + std::to_string(watts) + "}";
}

ScenarioFacts admitted(InProcess& server, const std::string& job, double watts) {
  const auto answer = server.admit(request_for(job, watts));
  PERSEUS_CHECK(answer.ok(), "no answer");
  return admission_facts(*answer, 0).value();
}

double reserved_w(InProcess& server) {
  return power_facts(server.site_power().value(), "hall").value().numbers["reserved_w"];
}

class SiteAdmission : public ::testing::Test {
 protected:
  SiteAdmission() {
    both_go_to(0);
    PERSEUS_CHECK(one.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":1000}]}]})").ok(), "no site");
    both_go_to(1);
    both_go_to(6);  // the other server has read the site, and `one` has the claim
  }
  void both_go_to(double seconds) {
    one.go_to(seconds);
    other.go_to(seconds);
  }

  std::shared_ptr<store::MemoryDatabase> database = std::make_shared<store::MemoryDatabase>();
  InProcess one{options_of("one"), database};
  InProcess other{options_of("other"), database};
};

TEST_F(SiteAdmission, IsReadyWhenTheServerThatDividesKnowsIt) {
  ScenarioFacts facts = admitted(other, "b", 600);
  EXPECT_EQ(facts.texts["state"], "admitted");
  EXPECT_EQ(facts.texts["ready"], "no") << "`one` may be granting these watts";
  EXPECT_EQ(reserved_w(one), 0);
  both_go_to(12);
  EXPECT_EQ(reserved_w(one), 600);
  EXPECT_EQ(admitted(other, "b", 600).texts["ready"], "no") << "what `one` granted before may still be on its way";
  both_go_to(16);
  EXPECT_EQ(admitted(other, "b", 600).texts["ready"], "yes");
  facts = admitted(one, "b", 600);
  EXPECT_EQ(facts.texts["ready"], "yes");
  EXPECT_EQ(reserved_w(one), 600) << "once, though both servers were asked";
}

TEST_F(SiteAdmission, GivesTheSameWattsOnceThoughTwoServersAreAsked) {
  EXPECT_EQ(admitted(one, "a", 600).texts["ready"], "yes");
  EXPECT_EQ(admitted(other, "b", 600).texts["state"], "waits");
  EXPECT_TRUE(other.release_admission("a").ok());
  EXPECT_EQ(admitted(other, "b", 600).texts["state"], "admitted");
}

TEST_F(SiteAdmission, AsksAgainWhileAnotherServerDecides) {
  std::optional<Result<service::Admission>> first;
  const auto request = jobs::parse_admission_request(request_for("a", 600), "body").value();
  one.service().admit(request, [&](const Result<service::Admission>& answer) { first = answer; });
  bool refused = false;
  for (int steps = 0; steps < 100 && !first; ++steps) {
    const auto meanwhile = other.admit(request_for("b", 600));
    if (!meanwhile) {
      EXPECT_THAT(meanwhile.error().message, HasSubstr("another server is admitting a job"));
      EXPECT_EQ(meanwhile.error().code, ErrorCode::unavailable);
      refused = true;
    } else if (other.release_admission("b").ok()) {  // before or after the change of `one`
      ASSERT_FALSE(first.has_value());
    }
    one.step(1);
  }
  one.settle();
  ASSERT_TRUE(first && *first);
  EXPECT_TRUE(refused);
  EXPECT_EQ((*first)->state, service::Admission::State::admitted);
  EXPECT_EQ(admitted(other, "b", 600).texts["state"], "waits");
}

TEST_F(SiteAdmission, KeepsWhatWasAnsweredAcrossACrash) {
  int answered = 0;
  for (int pieces = 0; pieces < 40; ++pieces) {
    const std::string job = "job-" + std::to_string(pieces);
    bool admitted_before = false;
    const auto request = jobs::parse_admission_request(request_for(job, 600), "body").value();
    one.service().admit(request, [&](const Result<service::Admission>& answer) {
      admitted_before = answer && answer->state == service::Admission::State::admitted;
    });
    one.step(pieces);
    const bool was_answered = admitted_before;
    one.restart();
    answered += was_answered;
    if (was_answered) { EXPECT_EQ(reserved_w(one), 600) << pieces; }
    // Whether it was stored or not, the same request gets the watts once.
    EXPECT_EQ(admitted(one, job, 600).texts["state"], "admitted") << pieces;
    EXPECT_EQ(reserved_w(one), 600) << pieces;
    EXPECT_TRUE(one.release_admission(job).ok());
  }
  EXPECT_GT(answered, 0);
}

/// A server that divides the watts and has not read the reservations for long would grant them to others.
TEST_F(SiteAdmission, RaisesNoGrantWithoutHavingReadTheReservations) {
  ASSERT_TRUE(one.put_profile(small_profile("small", 4)).ok());
  std::map<std::string, std::string> ids;
  for (const std::string name : {"a", "b"}) {
    jobs::RegisterJob request;
    request.name = name;
    request.degrees = {1, 2, 1};
    request.profile = "small";
    ids[name] = one.register_job(request).value().job;
    for (int rank = 0; rank < 2; ++rank) {
      jobs::RegisterRank registered;
      registered.job = ids[name];
      registered.rank = registered.pp_rank = rank;
      registered.epoch = 1;
      registered.keeps_budgets = true;
      ASSERT_TRUE(one.register_rank(registered).ok());
    }
  }
  const auto follow = [&](const std::string& name) {
    for (int rank = 0; rank < 2; ++rank) {
      const int wait = one.wait_for_plan({ids[name], rank, 0, std::nullopt, 0.0, 1});
      one.wait_for_plan({ids[name], rank, one.answer_of(wait).value().value().schedule->version, std::nullopt, 0.0, 1});
    }
  };
  const auto state = [&] {
    other.settle();
    return power_facts(other.site_power().value(), "a").value().texts["state"];
  };
  ASSERT_TRUE(one.set_site(R"({"dwell_s":1,"domains":[{"name":"hall","limits":[{"limit_w":800}]}]})").ok());
  both_go_to(8);
  for (const auto& [name, id] : ids) follow(name);
  both_go_to(12);
  ASSERT_EQ(state(), "granted");
  one.hold_answers(true);
  one.go_to(20);
  ASSERT_TRUE(one.finish_job(ids["b"]).ok());
  one.go_to(30);
  EXPECT_EQ(state(), "granted");
  one.hold_answers(false);
  one.go_to(40);
  EXPECT_EQ(state(), "unlimited");
}

TEST_F(SiteAdmission, SaysWhoReservedAndHowItEnded) {
  std::vector<std::string> lines;
  service::ServiceOptions options = options_of("third");
  options.log = [&](const std::string& line) { lines.push_back(line); };
  options.site_poll_s = 0;
  InProcess third(options, std::make_shared<store::MemoryDatabase>());
  ASSERT_TRUE(third.set_site(R"({"admission_s":60,"domains":[{"name":"hall","limits":[{"limit_w":1000}]}]})").ok());
  auto request = jobs::parse_admission_request(request_for("a", 600), "body").value();
  request.by = "t1";
  third.service().admit(request, [](const Result<service::Admission>&) {});
  third.settle();
  third.go_to(30);
  third.service().admit(request, [](const Result<service::Admission>&) {});  // renewed, without a line
  third.settle();
  ASSERT_TRUE(third.release_admission("a").ok());
  (void)admitted(third, "b", 500);
  third.go_to(200);
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("site: "); });
  EXPECT_THAT(lines,
              ::testing::ElementsAre("site: 600 W of 'hall' are reserved for the job 'a', 60 s, by the token t1",
                                     "site: the reservation for the job 'a' has ended: released",
                                     "site: 500 W of 'hall' are reserved for the job 'b', 60 s",
                                     "site: the reservation of 500 W for the job 'b' has ended: it has expired"));
}

}  // namespace
}  // namespace perseus::testing
