// The relay's threads and order of calls against a server that answers when the test says so. With the real server:
// tests/http/test_relay.py.
#include "server/relay/relay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/support/eventually.h"

namespace perseus::relay {
namespace {

using ::testing::HasSubstr;

/// An HTTP server on its own thread.
class OnThread {
 public:
  explicit OnThread(http::HttpHandler handler)
      : server_(std::make_unique<http::HttpServer>(io, http::HttpServerOptions{}, std::move(handler))) {
    const auto port = server_->listen({"127.0.0.1", 0});
    PERSEUS_CHECK(port.ok(), "a free port");
    url = fmt::format("http://127.0.0.1:{}", *port);
  }
  ~OnThread() { close(); }
  void close() {
    if (!thread_.joinable()) return;
    io.stop();
    thread_.join();
    server_.reset();
  }
  OnThread(const OnThread&) = delete;
  OnThread& operator=(const OnThread&) = delete;
  void run() {
    thread_ = std::thread([this] { io.run(); });
  }

  boost::asio::io_context io{1};
  std::string url;

 private:
  std::unique_ptr<http::HttpServer> server_;
  std::thread thread_;
};

class RelayTest : public ::testing::Test {
 protected:
  RelayTest()
      : server_([this](const http::HttpRequest& request, const http::Responder& responder) {
          const std::lock_guard lock(mutex_);
          if (request.method == "POST" && request.parameter("epoch")) {
            posted_.push_back(request.path + "?epoch=" + std::string(*request.parameter("epoch")));
          }
          if (request.path != "/v1/exchange")
            return responder.send(http::json_response(200, R"({"rank":0,"unchanged":true})"));
          exchanges_.push_back(
              {request.body, request.header("Authorization").value_or("") == "" ? "" : "some", responder});
        }),
        local_([this](http::HttpRequest request, http::Responder responder) {
          relay_->handle(std::move(request), std::move(responder));
        }) {
    relay::RelayOptions options;
    options.server.url = server_.url;
    options.exchange_s = 0.2;
    relay_ = std::make_unique<relay::Relay>(local_.io, options);
    server_.run();
    local_.run();
  }
  ~RelayTest() override { end_relay(); }
  /// Runs on its own I/O thread, which then ends together with its requests.
  void end_relay() {
    std::promise<void> gone;
    if (!relay_) return;
    boost::asio::post(local_.io, [&] {
      relay_.reset();
      local_.io.stop();
      gone.set_value();
    });
    gone.get_future().wait();
    local_.close();
  }
  std::future<Result<http::HttpReply>> ask(const std::string& method, const std::string& target,
                                           const std::string& body = "") {
    return std::async(std::launch::async, [=, this] {
      return http::http_call({local_.url, "token", "", std::chrono::seconds(60)}, {method, target, body});
    });
  }
  std::future<Result<http::HttpReply>> wait_for_plan(int rank, int have = 1) {
    return ask("GET", fmt::format("/v1/jobs/j/ranks/{}/plan?have={}&wait_s=50", rank, have));
  }
  struct Asked {
    std::string body, token;
    http::Responder responder;
  };
  /// The next exchange that the server receives.
  Asked exchange() {
    std::optional<Asked> next;
    const bool came = testing::eventually([&] {
      const std::lock_guard lock(mutex_);
      if (exchanges_.empty()) return false;
      next = std::move(exchanges_.front());
      exchanges_.pop_front();
      return true;
    });
    PERSEUS_CHECK(came, "the relay sends an exchange within a minute");
    return *std::move(next);
  }
  void answer(const Asked& asked, const std::string& text, int status = 200) {
    boost::asio::post(server_.io, [=] { asked.responder.send(http::json_response(status, text)); });
  }

  std::vector<Asked> kept_;  ///< keeps them alive beyond the server's thread, which owns them
  std::mutex mutex_;
  std::deque<Asked> exchanges_;
  std::vector<std::string> posted_;  ///< targets of other requests with an epoch
  OnThread server_, local_;
  std::unique_ptr<relay::Relay> relay_;
};

TEST_F(RelayTest, WaitsThatAreNotAnsweredGoIntoTheNextExchange) {
  auto first = ask("GET", "/v1/jobs/j/ranks/3/plan?have=1&epoch=77&wait_s=50");
  Asked asked = exchange();
  EXPECT_EQ(asked.body, R"({"wait_s":0.2,"reports":[],"waits":[{"job":"j","rank":3,"have":1,"epoch":77}]})");
  EXPECT_EQ(asked.token, "some");
  auto second = wait_for_plan(4);
  answer(asked, R"({"reports":[],"waits":[]})");
  asked = exchange();
  for (int i = 0; i < 1000 && asked.body.find("\"rank\":4") == std::string::npos; ++i) {
    answer(asked, R"({"reports":[],"waits":[]})");
    asked = exchange();
  }
  answer(asked, R"({"reports":[],"waits":[{"wait":1,"status":200,"body":"{\"version\":2}"},)"
                R"({"wait":0,"status":409,"body":"{}"}]})");
  EXPECT_EQ(second.get()->body, R"({"version":2})");
  EXPECT_EQ(first.get()->status, 409);
}

TEST_F(RelayTest, ReportsAreAnsweredInTheirOrder) {
  auto waiting = wait_for_plan(0);
  Asked asked = exchange();
  std::vector<std::future<Result<http::HttpReply>>> reports;
  for (int rank = 0; rank < 5; ++rank) {
    reports.push_back(ask("POST", "/v1/jobs/j/iterations", fmt::format(R"({{"rank":{}}})", rank)));
  }
  int answered = 0;
  while (answered < 5) {
    std::vector<std::string> answers;
    // Each rank gets the answer for the rank that it named.
    for (std::size_t at = 0; (at = asked.body.find(R"({\"rank\":)", at)) != std::string::npos; ++answered) {
      at += std::string_view(R"({\"rank\":)").size();
      answers.push_back(fmt::format(R"({{"status":200,"body":"{}"}})", asked.body[at]));
    }
    answer(asked, fmt::format(R"({{"reports":[{}],"waits":[]}})", fmt::join(answers, ",")));
    if (answered < 5) asked = exchange();
  }
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(reports[rank].get()->body, std::to_string(rank));
  end_relay();
}

TEST_F(RelayTest, NumbersWithLeadingZerosAreSentAsJson) {
  auto wait = ask("GET", "/v1/jobs/j/ranks/03/plan?have=01&iteration=00&epoch=077&wait_s=50");
  const Asked asked = exchange();
  EXPECT_EQ(asked.body,
            R"({"wait_s":0.2,"reports":[],"waits":[{"job":"j","rank":3,"have":1,"iteration":0,"epoch":77}]})");
  answer(asked, R"({"reports":[],"waits":[{"wait":0,"status":200,"body":"{\"version\":2}"}]})");
  EXPECT_EQ(wait.get()->body, R"({"version":2})");
  end_relay();
}

TEST_F(RelayTest, RanksThatRegisterTogetherAreOneExchangeThatDoesNotWait) {
  auto first = ask("POST", "/v1/jobs/j/ranks?plan=true", R"({"rank":0})");
  Asked asked = exchange();
  EXPECT_EQ(asked.body, R"({"wait_s":0,"ranks":[{"job":"j","body":"{\"rank\":0}"}],"reports":[],"waits":[]})");
  // The relay forwards a request that arrives meanwhile, and one that does not wait for a plan, as single calls.
  EXPECT_EQ(ask("POST", "/v1/jobs/j/ranks?plan=true", R"({"rank":1})").get()->body, R"({"rank":0,"unchanged":true})");
  EXPECT_EQ(ask("POST", "/v1/jobs/j/ranks", R"({"rank":2})").get()->body, R"({"rank":0,"unchanged":true})");
  answer(asked, R"({"ranks":[{"status":409,"body":"{\"other\":1}"}],"reports":[],"waits":[]})");
  const auto reply = first.get();
  EXPECT_EQ(reply->status, 409);
  EXPECT_EQ(reply->body, R"({"other":1})");
}

TEST_F(RelayTest, AnAnswerThatCannotBeReadIsNoAnswer) {
  for (const char* nonsense :
       {"{", "[]", R"({"waits":[]})", R"({"reports":[],"waits":[{"wait":-1,"status":1,"body":""}],"x":)"}) {
    auto waiting = wait_for_plan(0);
    answer(exchange(), nonsense);
    const auto reply = waiting.get();
    EXPECT_EQ(reply->status, 503) << nonsense;
    EXPECT_THAT(reply->body, HasSubstr("invalid answer"));
  }
}

TEST_F(RelayTest, AWaitWhoseTimeIsOverEndsOnceTheServerHasAnswered) {
  auto waiting = ask("GET", "/v1/jobs/j/ranks/3/plan?have=1&wait_s=0.1");
  const Asked asked = exchange();
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(1500)), std::future_status::timeout) << "renews a lease";
  answer(asked, R"({"reports":[],"waits":[]})");
  EXPECT_EQ(waiting.get()->body, R"({"rank":3,"unchanged":true})");
  end_relay();
}

TEST_F(RelayTest, ARefusalOfTheServerReachesAllRanks) {
  auto one = wait_for_plan(0);
  auto other = wait_for_plan(1);
  EXPECT_TRUE(testing::eventually([&] {
    const std::lock_guard lock(mutex_);
    if (!exchanges_.empty()) {
      answer(exchanges_.front(), R"({"detail":"no"})", 401);
      exchanges_.pop_front();
    }
    return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready &&
           other.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }));
  EXPECT_EQ(one.get()->status, 401);
  EXPECT_EQ(other.get()->status, 401);
}

TEST_F(RelayTest, TheServerHearsOfARankThatEndsWhileItWaits) {
  std::stop_source killed;
  auto wait = std::async(std::launch::async, [&] {
    return http::http_call({local_.url, "token", "", std::chrono::seconds(60)},
                           {"GET", "/v1/jobs/j/ranks/3/plan?have=1&epoch=77&wait_s=50", ""}, killed.get_token());
  });
  const Asked asked = exchange();
  killed.request_stop();  // closes the connection
  EXPECT_FALSE(wait.get().ok());
  const bool told = testing::eventually([&] {
    const std::lock_guard lock(mutex_);
    return std::ranges::find(posted_, "/v1/jobs/j/ranks/3/ended?epoch=77") != posted_.end();
  });
  EXPECT_TRUE(told);
  answer(asked, R"({"reports":[],"waits":[]})");
}

TEST_F(RelayTest, GoesWhileTheServerIsSilent) {
  auto waiting = wait_for_plan(0);
  kept_.push_back(exchange());
  auto report = ask("POST", "/v1/jobs/j/iterations", "{}");
  end_relay();
  for (auto* left : {&waiting, &report}) {  // closed, or answered that the server is unreachable
    const auto reply = left->get();
    EXPECT_TRUE(!reply || reply->status == 500) << reply->status;
  }
}

}  // namespace
}  // namespace perseus::relay
