#include "io/http/url.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace perseus::http {
namespace {

using ::testing::HasSubstr;

RC_GTEST_PROP(PercentCoding, AnyTextComesBackFromAPathAndAQuery, (const std::string& text)) {
  const std::string encoded = percent_encode(text);
  RC_ASSERT(encoded.find_first_of("/?#&+= ") == std::string::npos);
  const auto target = parse_target("/a/" + encoded + "?x=" + encoded + "&" + encoded + "=");
  RC_ASSERT(target.ok());
  RC_ASSERT(path_segments(target->path) == (std::vector<std::string>{"a", text}));
  RC_ASSERT(target->query == (NamedValues{{"x", text}, {text, ""}}));
}

TEST(ParseTarget, AcceptsTargetsOfBrowsersAndProxies) {
  EXPECT_EQ(parse_target("http://h:1/a?b=c+d").value().query, (NamedValues{{"b", "c d"}}));
  EXPECT_EQ(parse_target("https://h").value().path, "/");
  EXPECT_EQ(parse_target("/a+b|[1]#x").value().path, "/a+b|[1]");
  EXPECT_EQ(parse_target("/?&a&&b=").value().query, (NamedValues{{"a", ""}, {"b", ""}}));
  for (const char* const bad : {"a", "", "*", "/%", "/%4", "/%g1", "/?a=%"})
    EXPECT_FALSE(parse_target(bad).ok()) << bad;
}

TEST(PathSegments, AreSplitBeforeTheyAreDecoded) {
  EXPECT_EQ(path_segments(parse_target("/v1/jobs/a%2Fpolicies%2Fpower_cap?x=1").value().path),
            (std::vector<std::string>{"v1", "jobs", "a/policies/power_cap"}));
  EXPECT_EQ(path_segments("/a%252Fb//"), (std::vector<std::string>{"a%2Fb", "", ""}));
  EXPECT_EQ(path_segments("/%2e%2E/b%20c"), (std::vector<std::string>{"..", "b c"}));
}

TEST(HostPort, IsPrintedAsItIsRead) {
  for (const char* const text : {"127.0.0.1:7787", "[::1]:0", "localhost:80", "[fe80::1]:443"}) {
    EXPECT_EQ(format_host_port(parse_host_port(text).value()), text);
  }
  for (const char* const host : {"localhost", "::1", "127.0.0.1", "127.9.9.9"}) EXPECT_TRUE(is_loopback_host(host));
  for (const char* const host : {"0.0.0.0", "::", "10.0.0.1", "127.example.com", ""})
    EXPECT_FALSE(is_loopback_host(host));
}

TEST(Url, NoCredentialsOfAUrlAreLeft) {
  EXPECT_EQ(without_user("http://any:secret@head:7787/p"), "http://head:7787/p");
  EXPECT_EQ(without_user("https://secret@head"), "https://head");
  EXPECT_EQ(without_user("ftp://a:s@c@head/x@y"), "ftp://head/x@y");
  EXPECT_EQ(without_user("a:s@head"), "head");
  EXPECT_EQ(without_user("http://head/a@b"), "http://head/a@b");
  EXPECT_EQ(parse_url("ftp://a:secret@head").error().message.find("secret"), std::string::npos);
}

TEST(HostPort, RefusesTextWithoutHostAndPort) {
  for (const char* const text : {"", ":80", "h", "::1", "::1:80", "[::1]", "[::1:80", "[]:80", "[::1]x:80", "a:b:1"}) {
    const auto address = parse_host_port(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error().message, HasSubstr("is not HOST:PORT")) << text;
  }
  for (const char* const text : {"h:", "h:65536", "h:-1", "h:8x", "[::1]:"}) {
    const auto address = parse_host_port(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error().message, HasSubstr("is not a port from 0 to 65535")) << text;
  }
}

TEST(Url, HasHostPortPathAndToken) {
  const Url full = parse_url("https://any:a%40b@[::1]:7787/prefix/").value();
  EXPECT_TRUE(full.tls);
  EXPECT_EQ(format_host_port(full.address), "[::1]:7787");
  EXPECT_EQ(full.path, "/prefix");
  EXPECT_EQ(full.password, "a@b");
  EXPECT_EQ(format_host_port(parse_url("http://head").value().address), "head:80");
  EXPECT_EQ(format_host_port(parse_url("https://[fe80::1]/").value().address), "[fe80::1]:443");
  for (const char* const bad : {"head:80", "http://", "http://:80", "http://h:x", "http://::1", "http://a:%@h"}) {
    EXPECT_FALSE(parse_url(bad).ok()) << bad;
  }
}

TEST(Url, SeveralHaveCommasBetween) {
  const auto urls = parse_urls("http://a:1,https://u:x,y@b/p,http://[::1]:3").value();
  ASSERT_EQ(urls.size(), 3U);
  EXPECT_EQ(urls[0].address.host, "a");
  EXPECT_EQ(urls[1].password, "x,y") << "a comma may be part of a password";
  EXPECT_EQ(urls[1].path, "/p");
  EXPECT_EQ(urls[2].address.port, 3);
  for (const char* const bad : {"", "http://a,", "http://a,b", ",http://a", "http://a,,http://b", "http://a,http://"}) {
    EXPECT_FALSE(parse_urls(bad).ok()) << bad;
  }
  EXPECT_EQ(without_user("http://u:x,y@a:1,https://t@b/p"), "http://a:1,https://b/p");
}

}  // namespace
}  // namespace perseus::http
