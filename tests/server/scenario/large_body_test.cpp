// Large bodies through the API: the I/O thread only passes them on, and their values are limited.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "io/http/http_server.h"
#include "server/routes/call_input.h"
#include "server/routes/exchange.h"
#include "tests/server/scenario/in_process.h"
#include "tests/support/eventually.h"

namespace perseus::testing {
namespace {

namespace asio = boost::asio;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// One request on its own connection, and what the server answers.
class Asked {
 public:
  Asked(asio::io_context& io, std::uint16_t port, std::string_view method, std::string_view target,
        const std::string& body)
      : socket_(io),
        request_(fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             "Content-Length: {}\r\n\r\n{}",
                             method, target, body.size(), body)) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
    asio::async_write(socket_, asio::buffer(request_), [](boost::system::error_code, std::size_t) {});
    read();
  }
  [[nodiscard]] const std::string& heard() const { return heard_; }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(bytes_), [this](boost::system::error_code problem, std::size_t count) {
      if (problem) return;  // also after this object's end
      heard_.append(bytes_.data(), count);
      read();
    });
  }
  asio::ip::tcp::socket socket_;
  std::string request_, heard_;
  std::array<char, 4096> bytes_{};
};

class LargeBody : public ::testing::Test, protected routes::ApiHost {
 protected:
  LargeBody()
      : api_(target_.service(), tokens_, clock_, options()),
        http_(io_, {}, [this](http::HttpRequest request, http::Responder responder) {
          ++handled_;
          api_.handle(std::move(request), std::move(responder));
        }) {
    port_ = http_.listen({"127.0.0.1", 0}).value();
  }
  Asked ask(std::string_view target, const std::string& body = "") {
    return {io_, port_, body.empty() ? "GET" : "POST", target, body};
  }
  routes::ApiOptions options() {
    routes::ApiOptions options;
    options.host = this;
    return options;
  }
  void read_large(work::Executor::Work work) override {
    target_.submit(work::Executor::Kind::request, std::move(work));
  }
  /// Runs the I/O thread alone until the handler has had so many requests.
  void run_until_handled(int requests) {
    ASSERT_TRUE(run_until(io_, [&] { return handled_ == requests; }));
  }
  /// Runs the threads of requests too, until the answer has come.
  void run_until_answered(const Asked& asked) {
    target_.settle();
    ASSERT_TRUE(run_until(io_, [&] { return asked.heard().find("\r\n\r\n") != std::string::npos; }));
  }

  asio::io_context io_{1};
  InProcess target_;
  HandTurnedClock clock_{0};
  access::Tokens tokens_{target_.store()};
  routes::Api api_;
  http::HttpServer http_;
  int handled_ = 0;
  std::uint16_t port_ = 0;
};

/// All routes that may have a large body, with a path of each.
std::vector<std::pair<const routes::Api::Route*, std::string>> large_routes() {
  std::vector<std::pair<const routes::Api::Route*, std::string>> large;
  for (const routes::Api::Route& route : routes::Api::routes()) {
    if (route.body != routes::Api::Body::large) continue;
    std::string path;
    bool name = false;
    for (const char c : route.path) {
      if (c == '{') path += "0";
      name = (name && c != '}') || c == '{';
      if (!name && c != '}') path += c;
    }
    large.emplace_back(&route, path);
  }
  return large;
}

TEST_F(LargeBody, IsReadByAnotherThreadAndHoldsUpNobody) {
  for (const auto& [route, path] : large_routes()) {
    SCOPED_TRACE(path);
    handled_ = 0;
    const Asked large(io_, port_, route->method, path, std::string(100'000, ' ') + "no JSON");
    run_until_handled(1);
    const Asked other = ask("/healthz");
    ASSERT_TRUE(run_until(io_, [&] { return !other.heard().empty(); }));
    EXPECT_EQ(large.heard(), "");
    run_until_answered(large);
    EXPECT_THAT(large.heard(), StartsWith("HTTP/1.1 422"));
  }
}

TEST_F(LargeBody, OfMoreValuesThanAllowedIsRefused) {
  std::string values = "{\"rank\":[0";
  for (int i = 0; i < 1 << 20; ++i) values += ",0";
  for (const auto& [route, path] : large_routes()) {
    SCOPED_TRACE(path);
    handled_ = 0;
    const Asked large(io_, port_, route->method, path, values + "]}");
    run_until_handled(1);
    run_until_answered(large);
    EXPECT_THAT(large.heard(), StartsWith("HTTP/1.1 413"));
    EXPECT_THAT(large.heard(), HasSubstr("JSON values; allowed: 1048576"));
  }
}

TEST(LargeExchange, OfTooManyPartsIsRefusedBeforeTheyAreRead) {
  std::string text = R"({"reports":[{"job":"absent","body":"no JSON"})";
  for (int i = 0; i < 1024; ++i) text += R"(,{"job":"absent","body":"no JSON"})";
  const auto parsed = routes::parse_body<routes::ParsedExchange>(text + "]}");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "1025 ranks, reports and waits; allowed: 1024");
}

/// Bodies of several tokens, and the thread that reads them, by hand.
class LargeBodiesInTurn : public ::testing::Test, protected routes::BodyReader {
 protected:
  void read_large(work::Executor::Work work) override { to_read_.push_back(std::move(work)); }
  bool add(const std::string& token, std::size_t bytes = 1) {
    return bodies_.add(token, bytes, [this, token]() -> std::function<void()> {
      read_ += token;
      return {};
    });
  }
  void read_all() {
    for (; !to_read_.empty(); to_read_.pop_front()) to_read_.front()()();
  }

  std::deque<work::Executor::Work> to_read_;
  std::string read_;  ///< tokens
  routes::LargeBodies bodies_{this};
};

TEST_F(LargeBodiesInTurn, OneTokenHasOneInWorkAndOthersGoFirst) {
  for (const char* token : {"a", "a", "a", "b", "c"}) EXPECT_TRUE(add(token));
  EXPECT_EQ(to_read_.size(), 3U);
  read_all();
  EXPECT_EQ(read_, "abcaa");
}

TEST_F(LargeBodiesInTurn, OneTokenTakesHalfOfTheRoom) {
  constexpr std::size_t half = std::size_t{64} << 20U;
  EXPECT_TRUE(add("a", half));
  EXPECT_FALSE(add("a"));
  EXPECT_TRUE(add("b", half));
  EXPECT_FALSE(add("c"));
  read_all();
  EXPECT_TRUE(add("a"));
}

TEST_F(LargeBody, OfARouteThatNeedsNoneIsRefused) {
  const Asked large = ask("/v1/jobs/absent/stragglers", std::string(std::size_t{64} << 10U, ' ') + "{}");
  run_until_handled(1);
  run_until_answered(large);
  EXPECT_THAT(large.heard(), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(large.heard(), HasSubstr("the body has 65538 bytes; allowed: 65536"));
}

}  // namespace
}  // namespace perseus::testing
