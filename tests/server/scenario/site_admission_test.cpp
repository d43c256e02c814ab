// Reservations of a site in a crash at any moment, and what the log says of them.
#include "server/jobs/site_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/scenario_site.h"

namespace perseus::testing {
namespace {

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

TEST(SiteAdmission, KeepsWhatWasAnsweredAcrossACrash) {
  InProcess one;
  PERSEUS_CHECK(one.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":1000}]}]})").ok(), "no site");
  int answered = 0;
  for (int pieces = 0; pieces < 40; ++pieces) {
    const std::string job = "job-" + std::to_string(pieces);
    bool admitted_before = false;
    const auto request = jobs::parse_admission_request(request_for(job, 600), "body").value();
    one.service().admissions.admit(request, [&](const Result<power::Admission>& answer) {
      admitted_before = answer && answer->state == power::Admission::State::admitted;
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

TEST(SiteAdmission, SaysWhoReservedAndHowItEnded) {
  LoggedLines logged;
  std::vector<std::string>& lines = logged.lines;
  service::ServiceOptions options;
  options.host = &logged;
  InProcess third(options, std::make_shared<TestDatabase>());
  ASSERT_TRUE(third.set_site(R"({"admission_s":60,"domains":[{"name":"hall","limits":[{"limit_w":1000}]}]})").ok());
  auto request = jobs::parse_admission_request(request_for("a", 600), "body").value();
  request.by = "t1";
  third.service().admissions.admit(request, [](const Result<power::Admission>&) {});
  third.settle();
  third.go_to(30);
  third.service().admissions.admit(request, [](const Result<power::Admission>&) {});  // renewed, without a line
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
