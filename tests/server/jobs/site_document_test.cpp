#include "server/jobs/site_document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace perseus::jobs {
namespace {

std::string error_in(const std::string& text) {
  const auto read = parse_site_document(text, "body");
  return read ? "" : read.error().message;
}
std::string in_root(const std::string& member) { return error_in(R"({"domains":[{"name":"hall"}],)" + member + "}"); }
std::string in_row(const std::string& members) {
  return error_in(R"({"domains":[{"name":"hall"},{"name":"row",)" + members + "}]}");
}
std::string in_rule(const std::string& members) {
  return error_in(R"({"domains":[{"name":"hall"}],"hosts":[{)" + members + "}]}");
}

TEST(SiteDocumentTest, IsReadAsItIsWritten) {
  const auto read = parse_site_document(
      R"({"name":"hall","objective":"max-min","pue":1.2,"lease_s":30,"dwell_s":0,"pacing":true,"domains":[{"name":"hall"},)"
      R"({"name":"row","limits":[{"from_s":5,"limit_w":700},{"from_s":9}],"limits_unread":"event e1","constant_w":10,)"
      R"("window_s":2.5,"ramp_up_w_per_s":2,"accelerator_w":300},{"name":"rack","parent":"row"}],)"
      R"("hosts":[{"prefix":"a-","domain":"row"}],"teams":[{"name":"vision","least_rate":0.9,"priority":4},)"
      R"({"name":"speech"}]})",
      "body");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->site.domains[1].parent, 0);
  EXPECT_EQ(read->site.domains[1].window, Seconds(2.5));
  EXPECT_EQ(read->site.domains[0].window, std::nullopt);
  EXPECT_EQ(read->hosts[0].domain, 1);
  EXPECT_EQ(read->accelerator_power, (std::vector{Watts(1000), Watts(300), Watts(300)}));
  EXPECT_EQ(read->teams[0].priority, 4);
  EXPECT_EQ(read->teams[1].least_rate, std::nullopt);
  const std::string text = format_site_document(*read);
  const auto again = parse_site_document(text, "body");
  ASSERT_TRUE(again.ok()) << text;
  EXPECT_EQ(format_site_document(*again), text);
  EXPECT_EQ(again->accelerator_power, read->accelerator_power);
  EXPECT_TRUE(again->pacing);
}

TEST(SiteDocumentTest, AnErrorNamesTheMemberItsValueAndWhatIsAllowed) {
  EXPECT_EQ(error_in(R"({"domains":[]})"), "site: domains: none; allowed: at least one, the first for the whole site");
  EXPECT_EQ(in_root(R"("pue":0.9)"), "site: pue: 0.9; allowed: 1 to 10");
  EXPECT_EQ(in_root(R"("supply_efficiency":2)"), "site: supply_efficiency: 2; allowed: 0.01 to 1");
  EXPECT_EQ(in_root(R"("node_overhead_w":-1)"), "site: node_overhead_w: -1; allowed: 0 to 1000000000000");
  EXPECT_EQ(in_root(R"("gpus_per_node":0)"), "site: gpus_per_node: 0; allowed: 1 to 1024");
  EXPECT_EQ(in_root(R"("least_rate":1.5)"), "site: least_rate: 1.5; allowed: 0 to 1");
  EXPECT_EQ(in_root(R"("lease_s":0.5)"), "site: lease_s: 0.5; allowed: 1 to 3600");
  EXPECT_EQ(in_root(R"("dwell_s":-1)"), "site: dwell_s: -1; allowed: 0 to 3600");
  EXPECT_EQ(in_root(R"("accelerator_w":-1)"), "site: accelerator_w: -1; allowed: 0 to 100000");
  EXPECT_EQ(in_root(R"("objective":"most")"), "site: objective: 'most'; allowed: slowdown, throughput, max-min");
}

TEST(SiteDocumentTest, AnErrorNamesTheDomain) {
  EXPECT_EQ(error_in(R"({"domains":[{"name":""}]})"), "site: domains[0].name: 0 bytes; allowed: 1 to 256");
  EXPECT_EQ(error_in(R"({"domains":[{"name":"a"},{"name":"a"}]})"),
            "site: domains[1].name: 'a'; allowed: a name that no domain before it has");
  EXPECT_EQ(error_in(R"({"domains":[{"name":"a","parent":"b"},{"name":"b"}]})"),
            "site: domains[0].parent: 'b'; allowed: none, since the first domain is the site");
  EXPECT_EQ(in_row(R"("parent":"row")"), "site: domains[1].parent: 'row'; allowed: the name of a domain before it");
  EXPECT_EQ(in_row(R"("constant_w":-2)"), "site: domains[1].constant_w: -2; allowed: 0 to 1000000000000");
  EXPECT_EQ(in_row(R"("window_s":-1)"), "site: domains[1].window_s: -1; allowed: 0 to 86400");
  EXPECT_EQ(in_row(R"("accelerator_w":1001)"),
            "site: domains[1].accelerator_w: 1001; allowed: 0 to 1000, that of the domain around");
  EXPECT_EQ(in_row(R"("accelerator_w":-1)"),
            "site: domains[1].accelerator_w: -1; allowed: 0 to 1000, that of the domain around");
  EXPECT_EQ(error_in(R"({"domains":[{"name":"hall","accelerator_w":300}]})"),
            "site: domains[0].accelerator_w: 300; allowed: none, since the first domain is the site");
  EXPECT_EQ(in_row(R"("ramp_down_w_per_s":0)"),
            "site: domains[1].ramp_down_w_per_s: 0; allowed: 0.001 to 1000000000000");
  EXPECT_EQ(in_row(R"("limits":[{"limit_w":-5}])"),
            "site: domains[1].limits[0].limit_w: -5; allowed: 0 to 1000000000000");
  EXPECT_EQ(in_row(R"("limits":[{"from_s":-5}])"), "site: domains[1].limits[0].from_s: -5; allowed: 0 to 100000000000");
  EXPECT_EQ(in_row(R"("limits":[{"from_s":9},{"from_s":8}])"),
            "site: domains[1].limits[1].from_s: 8; allowed: later than the limit before it, 9");
}

TEST(SiteDocumentTest, AnErrorNamesTheRuleOfHosts) {
  EXPECT_EQ(in_rule(R"("domain":"hall")"), "site: hosts[0].host, prefix: '', ''; allowed: exactly one of them");
  EXPECT_EQ(in_rule(R"("host":"a","prefix":"b","domain":"hall")"),
            "site: hosts[0].host, prefix: 'a', 'b'; allowed: exactly one of them");
  EXPECT_EQ(in_rule(R"("host":"a","domain":"cellar")"),
            "site: hosts[0].domain: 'cellar'; allowed: the name of a domain");
}

TEST(SiteDocumentTest, AnErrorNamesTheTeam) {
  const auto in_team = [](const std::string& members) {
    return in_root(R"("teams":[{"name":"a"},{)" + members + "}]");
  };
  EXPECT_EQ(in_team(R"("name":"")"), "site: teams[1].name: 0 bytes; allowed: 1 to 256");
  EXPECT_EQ(in_team(R"("name":"a")"), "site: teams[1].name: 'a'; allowed: a name that no team before it has");
  EXPECT_EQ(in_team(R"("name":"b","least_rate":90)"), "site: teams[1].least_rate: 90; allowed: 0 to 1");
  EXPECT_EQ(in_team(R"("name":"b","domain":"cellar")"),
            "site: teams[1].domain: 'cellar'; allowed: the name of a domain");
  EXPECT_EQ(in_team(R"("name":"b","priority":0)"), "site: teams[1].priority: 0; allowed: 0.001 to 1000");
}

/// A hall with two rows, in which one team has a tier.
class TierTest : public ::testing::Test {
 protected:
  /// "domain least_rate priority", and why it is not as asked for.
  std::string tier() {
    const TierHere tier = tier_of(document_, job_);
    return fmt::format("{} {} {}{}{}", document_.site.domains[tier.domain].name, tier.least_rate, tier.priority,
                       tier.reason.empty() ? "" : ": ", tier.reason);
  }
  void asks_in_team(const std::string& team, Tier tier) {
    job_.spec.facts["team"] = team;
    job_.spec.tier = std::move(tier);
    job_.spec.tier_bounded = true;
  }
  void runs_on(const std::vector<std::string>& hosts) {
    job_.ranks.clear();
    for (const std::string& host : hosts) {
      job_.ranks.emplace_back(Rank{});
      job_.ranks.back()->host = host;
    }
  }

  const SiteDocument document_ =
      *parse_site_document(R"({"domains":[{"name":"hall"},{"name":"a"},{"name":"b"}],"least_rate":0.5,)"
                           R"("hosts":[{"prefix":"a-","domain":"a"},{"prefix":"b-","domain":"b"}],)"
                           R"("teams":[{"name":"vision","least_rate":0.9,"priority":4},{"name":"speech","priority":2},)"
                           R"({"name":"guests","domain":"a"}]})",
                           "body");
  Job job_;
};

TEST_F(TierTest, WithoutTokensItIsWhatTheJobAsksFor) {
  EXPECT_EQ(tier(), "hall 0.5 1");
  job_.spec.tier = {"b", 1, 1000};
  runs_on({"a-1"});
  EXPECT_EQ(tier(), "b 1 1000");
  job_.spec.tier = {"cellar", 0, 0.5};
  EXPECT_EQ(tier(), "a 0 0.5: the site has no domain 'cellar': it is in that of its hosts");
}

TEST_F(TierTest, ATeamsTierIsWhatItsJobsHave) {
  asks_in_team("vision", {});
  EXPECT_EQ(tier(), "hall 0.9 4");
  asks_in_team("speech", {});
  EXPECT_EQ(tier(), "hall 0.5 2");
  asks_in_team("others", {});
  EXPECT_EQ(tier(), "hall 0.5 1");
  job_.spec.tier_bounded = false;
  job_.spec.facts["team"] = "vision";
  EXPECT_EQ(tier(), "hall 0.9 4") << "also of a job that an operator registered";
}

TEST_F(TierTest, ATokenOfAJobTakesNoMoreThanItsTeamHas) {
  asks_in_team("vision", {"", 1, 1000});
  EXPECT_EQ(tier(),
            "hall 0.9 4: least_rate 1 asked for; allowed to its team: at most 0.9; priority 1000 asked for; "
            "allowed to its team: at most 4");
  asks_in_team("others", {"", 1, 1000});
  EXPECT_EQ(tier(),
            "hall 0.5 1: least_rate 1 asked for; allowed to its team: at most 0.5; priority 1000 asked for; "
            "allowed to its team: at most 1");
  asks_in_team("vision", {"", 0.25, 0.1});
  EXPECT_EQ(tier(), "hall 0.25 0.1") << "less is always allowed";
  job_.spec.tier = {"", 1, 1000};
  job_.spec.tier_bounded = false;
  EXPECT_EQ(tier(), "hall 1 1000") << "as an operator set it";
}

TEST_F(TierTest, ATokenOfAJobMovesNoWattsOutOfTheDomainOfItsHosts) {
  asks_in_team("vision", {"b", {}, {}});
  EXPECT_EQ(tier(), "b 0.9 4") << "no rank yet";
  runs_on({"pod-1", "pod-2"});
  EXPECT_EQ(tier(), "b 0.9 4") << "the site does not say where these hosts are";
  runs_on({"a-1", "a-2"});
  EXPECT_EQ(tier(), "a 0.9 4: domain 'b' asked for: its hosts are in 'a'");
  runs_on({"a-1", "b-1"});
  EXPECT_EQ(tier(), "hall 0.9 4: domain 'b' asked for: its hosts are in 'hall'");
  runs_on({"b-1"});
  EXPECT_EQ(tier(), "b 0.9 4");
  asks_in_team("vision", {});
  runs_on({"pod-1", "a-1", "pod-2"});
  EXPECT_EQ(tier(), "a 0.9 4") << "a host that the site does not know takes the job out of no domain";
}

TEST_F(TierTest, ATokenOfAJobStaysInItsTeamsDomain) {
  asks_in_team("guests", {});
  EXPECT_EQ(tier(), "a 0.5 1");
  runs_on({"a-1"});
  EXPECT_EQ(tier(), "a 0.5 1");
  runs_on({"a-1", "b-1"});
  EXPECT_EQ(tier(), "a 0.5 1: jobs of its team count in 'a'");
  asks_in_team("guests", {"b", {}, {}});
  runs_on({"pod-1"});
  EXPECT_EQ(tier(), "a 0.5 1: jobs of its team count in 'a'");
  job_.operator_tier.domain = "b";
  EXPECT_EQ(tier(), "b 0.5 1") << "as an operator set it";
}

}  // namespace
}  // namespace perseus::jobs
