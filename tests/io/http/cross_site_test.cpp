#include "io/http/cross_site.h"

#include <gtest/gtest.h>

namespace perseus::http {
namespace {

HttpRequest request_with(const std::string& method, NamedValues headers, std::string body = "") {
  HttpRequest request;
  request.method = method;
  request.path = "/v1/jobs";
  request.headers = std::move(headers);
  request.body = std::move(body);
  return request;
}

int status_of(const HttpRequest& request, const KnownHosts& hosts = {}) {
  const auto refusal = refused_across_sites(request, hosts);
  return refusal ? refusal->status : 200;
}

TEST(CrossSite, KnowsAddressesAndLocalNames) {
  const KnownHosts hosts{false, {"planner.example"}};
  for (const char* known : {"127.0.0.1:7787", "[::1]:7787", "[::1]", "10.1.2.3", "localhost", "LOCALHOST:80",
                            "localhost.", "notebook.localhost:1", "planner.example:7787", "Planner.Example."}) {
    EXPECT_TRUE(hosts.has(known)) << known;
  }
  for (const char* unknown :
       {"attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example", "notlocalhost", "", ":7787",
        "xplanner.example", "[", "[]", "1.2.3", "[::1]evil", "127.0.0.1:x"}) {
    EXPECT_FALSE(hosts.has(unknown)) << unknown;
    EXPECT_TRUE((KnownHosts{true, {}}.has(unknown))) << unknown;
  }
}

TEST(CrossSite, AllowsProgramsAndItsOwnPages) {
  const std::pair<std::string, std::string> host{"Host", "localhost:7787"}, json{"Content-Type", "application/json"};
  EXPECT_EQ(status_of(request_with("GET", {host})), 200);
  EXPECT_EQ(status_of(request_with("POST", {host, json}, "{}")), 200);
  EXPECT_EQ(status_of(request_with("POST", {host, {"content-type", "Application/JSON; charset=utf-8"}}, "{}")), 200);
  EXPECT_EQ(status_of(request_with("POST", {host})), 200);  // no body, as for /finish
  EXPECT_EQ(status_of(request_with("GET", {host, {"Sec-Fetch-Site", "same-origin"}})), 200);
  EXPECT_EQ(status_of(request_with("GET", {host, {"Sec-Fetch-Site", "none"}})), 200);
  EXPECT_EQ(status_of(request_with("POST", {host, json, {"Origin", "http://localhost:7787"}}, "{}")), 200);
  EXPECT_EQ(status_of(request_with("POST", {host, json, {"Origin", "https://LOCALHOST:7787"}}, "{}")), 200);
}

TEST(CrossSite, KnowsThePortThatASchemeImplies) {
  for (const auto& [host, origin] :
       {std::pair{"[::1]:443", "https://[::1]"}, {"[::1]", "https://[::1]:443"}, {"[::1]:80", "http://[::1]"}}) {
    EXPECT_EQ(status_of(request_with("POST", {{"Host", host}, {"Origin", origin}})), 200) << host;
  }
  EXPECT_EQ(status_of(request_with("POST", {{"Host", "[::1]:80"}, {"Origin", "https://[::1]"}})), 403);
}

TEST(CrossSite, RefusesPagesFromElsewhere) {
  const std::pair<std::string, std::string> host{"Host", "localhost:7787"}, json{"Content-Type", "application/json"};
  for (const char* site : {"cross-site", "same-site", "", "SAME-ORIGIN"}) {
    EXPECT_EQ(status_of(request_with("GET", {host, {"Sec-Fetch-Site", site}})), 403) << site;
  }
  for (const char* origin : {"null", "http://localhost:8888", "http://attacker.example", "", "localhost:7787"}) {
    EXPECT_EQ(status_of(request_with("POST", {host, json, {"Origin", origin}}, "{}")), 403) << origin;
  }
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"}) {
    EXPECT_EQ(status_of(request_with("POST", {host, {"Content-Type", type}}, "{}")), 415) << type;
  }
  EXPECT_EQ(status_of(request_with("GET", {{"Host", "rebound.attacker.example"}})), 403);
  EXPECT_EQ(status_of(request_with("GET", {})), 403);
}

}  // namespace
}  // namespace perseus::http
