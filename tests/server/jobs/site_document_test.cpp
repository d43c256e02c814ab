#include "server/jobs/site_document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

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
      R"("window_s":2.5,"ramp_up_w_per_s":2}],)"
      R"("hosts":[{"prefix":"a-","domain":"row"}]})",
      "body");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->site.domains[1].parent, 0);
  EXPECT_EQ(read->site.domains[1].window, Seconds(2.5));
  EXPECT_EQ(read->site.domains[0].window, std::nullopt);
  EXPECT_EQ(read->hosts[0].domain, 1);
  const std::string text = format_site_document(*read);
  const auto again = parse_site_document(text, "body");
  ASSERT_TRUE(again.ok()) << text;
  EXPECT_EQ(format_site_document(*again), text);
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

}  // namespace
}  // namespace perseus::jobs
