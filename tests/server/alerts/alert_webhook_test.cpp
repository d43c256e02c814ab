// Messages to a real HTTP receiver that answers, refuses, or never answers.
#include "server/alerts/alert_webhook.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/http/http_server.h"
#include "tests/support/eventually.h"

namespace perseus::alerts {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Answers with the next of `statuses`, then with 200; 0: never.
class TestReceiver {
 public:
  explicit TestReceiver(std::vector<int> statuses = {})
      : statuses_(std::move(statuses)),
        server_(std::make_unique<http::HttpServer>(
            io_, http::HttpServerOptions{},
            [this](const http::HttpRequest& request, const http::Responder& responder) { take(request, responder); })) {
    const auto port = server_->listen({"127.0.0.1", 0});
    PERSEUS_CHECK(port.ok(), "a free port");
    url = fmt::format("http://127.0.0.1:{}/hook/?key=a%20b", *port);
    thread_ = std::thread([this] { io_.run(); });
  }
  TestReceiver(const TestReceiver&) = delete;
  TestReceiver& operator=(const TestReceiver&) = delete;
  ~TestReceiver() {
    io_.stop();
    thread_.join();
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  http::HttpRequest last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

  std::string url;

 private:
  void take(const http::HttpRequest& request, const http::Responder& responder) {
    const std::lock_guard lock(mutex_);
    const std::size_t number = bodies_.size();
    bodies_.push_back(request.body);
    last_ = request;
    const int status = number < statuses_.size() ? statuses_[number] : 200;
    if (status == 0) {
      unanswered_.push_back(responder);
    } else {
      responder.send(http::json_response(status, "{}"));
    }
  }

  boost::asio::io_context io_{1};
  std::mutex mutex_;
  std::vector<int> statuses_;
  std::vector<std::string> bodies_;
  std::vector<http::Responder> unanswered_;
  http::HttpRequest last_;
  std::unique_ptr<http::HttpServer> server_;
  std::thread thread_;
};

AlertWebhookOptions quick() {
  AlertWebhookOptions options;
  options.first_delay = milliseconds(1);
  options.longest_delay = milliseconds(4);
  return options;
}
bool sent(const AlertWebhook& webhook, std::int64_t messages) {
  return testing::eventually([&] { return webhook.counts().sent == messages; });
}

TEST(AlertWebhook, SendsMessagesInOrderToTheWholeUrlWithTheToken) {
  TestReceiver receiver;
  AlertWebhook webhook(quick());
  webhook.send("{\"lost\":true}");  // there is no receiver yet
  webhook.set_receiver({receiver.url, "secret"});
  for (int k = 0; k < 50; ++k) webhook.send(fmt::format("{}", k));
  ASSERT_TRUE(sent(webhook, 50));
  const std::vector<std::string> bodies = receiver.bodies();
  ASSERT_EQ(bodies.size(), 50U);
  for (int k = 0; k < 50; ++k) EXPECT_EQ(bodies[k], fmt::format("{}", k));
  const http::HttpRequest last = receiver.last();
  EXPECT_EQ(last.method, "POST");
  EXPECT_EQ(last.path, "/hook/");
  EXPECT_EQ(last.parameter("key"), "a b");
  EXPECT_EQ(last.header("Authorization"), "Bearer secret");
  EXPECT_EQ(last.header("Content-Type"), "application/json");
  EXPECT_TRUE(webhook.take_lines().empty());
}

TEST(AlertWebhook, RepeatsAMessageThatTheReceiverCannotTakeNow) {
  TestReceiver receiver({500, 503, 429});
  AlertWebhook webhook(quick());
  webhook.set_receiver({receiver.url, ""});
  webhook.send("first");
  webhook.send("second");
  ASSERT_TRUE(sent(webhook, 2));
  EXPECT_THAT(receiver.bodies(), ElementsAre("first", "first", "first", "first", "second"));
  EXPECT_EQ(webhook.counts().failed, 3);
  EXPECT_EQ(webhook.counts().dropped, 0);
  const std::vector<std::string> lines = webhook.take_lines();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines.front(), HasSubstr("answered 500"));
  EXPECT_THAT(lines.front(), Not(HasSubstr("key"))) << "the path may be a secret";
  EXPECT_EQ(lines.back(), "messages arrive again");
}

TEST(AlertWebhook, DropsAMessageThatTheReceiverRefuses) {
  TestReceiver receiver({400, 302});
  AlertWebhook webhook(quick());
  webhook.set_receiver({receiver.url, ""});
  for (const char* const message : {"first", "second", "third"}) webhook.send(message);
  ASSERT_TRUE(sent(webhook, 1));
  EXPECT_THAT(receiver.bodies(), ElementsAre("first", "second", "third"));
  EXPECT_EQ(webhook.counts().dropped, 2);
}

TEST(AlertWebhook, AReceiverThatNeverAnswersDelaysNoCaller) {
  TestReceiver receiver({0, 0});
  AlertWebhookOptions options = quick();
  options.answer = milliseconds(50);
  AlertWebhook webhook(options);
  webhook.set_receiver({receiver.url, ""});
  webhook.send("first");
  ASSERT_TRUE(testing::eventually([&] { return receiver.bodies().size() == 1; }));
  for (int k = 0; k < 100; ++k) webhook.send("next");
  ASSERT_TRUE(sent(webhook, 101));
  EXPECT_GE(webhook.counts().failed, 2);
  EXPECT_EQ(webhook.counts().dropped, 0);
}

TEST(AlertWebhook, AnEndDuringACallWaitsForNoAnswer) {
  TestReceiver receiver({0});
  AlertWebhookOptions options = quick();
  options.answer = std::chrono::hours(1);
  AlertWebhook webhook(options);
  webhook.set_receiver({receiver.url, ""});
  webhook.send("first");
  ASSERT_TRUE(testing::eventually([&] { return receiver.bodies().size() == 1; }));
  webhook.stop();
  EXPECT_TRUE(testing::eventually([&] { return !webhook.is_running(); }));
}

TEST(AlertWebhook, AtAnOrderlyStopEachMessageIsTriedOnceMoreWithoutDelays) {
  TestReceiver receiver({500, 500, 200, 500});
  AlertWebhookOptions options;
  options.first_delay = options.longest_delay = std::chrono::hours(1);
  AlertWebhook webhook(options);
  webhook.set_receiver({receiver.url, ""});
  webhook.send("first");
  ASSERT_TRUE(testing::eventually([&] { return webhook.counts().failed == 1 && webhook.counts().waiting == 1; }));
  for (const char* const message : {"second", "third", "fourth"}) webhook.send(message);
  webhook.finish(std::chrono::minutes(1));
  EXPECT_FALSE(webhook.is_running());
  EXPECT_THAT(receiver.bodies(), ElementsAre("first", "first", "second", "third", "fourth"));
  EXPECT_EQ(webhook.counts().sent, 2);
  EXPECT_EQ(webhook.counts().dropped, 2);
  webhook.finish(std::chrono::minutes(1));  // without effect
}

TEST(AlertWebhook, AReceiverThatNeverAnswersDelaysAnOrderlyStopNoLongerThanTheLimit) {
  TestReceiver receiver({0});
  AlertWebhookOptions options = quick();
  options.answer = std::chrono::hours(1);
  AlertWebhook webhook(options);
  webhook.set_receiver({receiver.url, ""});
  webhook.send("first");
  ASSERT_TRUE(testing::eventually([&] { return receiver.bodies().size() == 1; }));
  webhook.finish(milliseconds(20));
  EXPECT_TRUE(testing::eventually([&] { return !webhook.is_running(); }));
}

TEST(AlertWebhook, BeyondTheLimitTheOldestMessagesAreDropped) {
  AlertWebhookOptions options;
  options.most_waiting = 3;
  AlertWebhook webhook(options);
  webhook.set_receiver({"http://127.0.0.1:1", ""});  // nothing listens there
  for (int k = 0; k < 10; ++k) webhook.send(fmt::format("{}", k));
  ASSERT_TRUE(testing::eventually([&] { return webhook.counts().failed >= 1 && webhook.counts().waiting <= 3; }));
  EXPECT_EQ(webhook.counts().waiting, 3);
  EXPECT_EQ(webhook.counts().dropped, 7);
  TestReceiver receiver;  // another setting does not wait for the delay
  webhook.set_receiver({receiver.url, ""});
  ASSERT_TRUE(sent(webhook, 3));
  EXPECT_EQ(receiver.bodies().back(), "9");
}

TEST(AlertWebhook, AMessageWhoseTimeIsOverIsNotSent) {
  TestReceiver receiver;
  AlertWebhookOptions options = quick();
  options.kept = milliseconds(0);
  AlertWebhook webhook(options);
  webhook.set_receiver({receiver.url, ""});
  webhook.send("old");
  EXPECT_TRUE(testing::eventually([&] { return webhook.counts().dropped == 1; }));
  EXPECT_TRUE(receiver.bodies().empty());
}

TEST(AlertWebhook, ReportsTheEndsThatTheReceiverHasTaken) {
  TestReceiver receiver({200, 400, 200});
  AlertWebhook webhook(quick());
  webhook.set_receiver({receiver.url, ""});
  const auto ended = [](const std::string& job) {
    return jobs::Alert{jobs::AlertKind::over_power, job, "", "", 5, 10, 20};
  };
  webhook.send("begin");
  webhook.send("refused", ended("refused"));
  webhook.send("taken", ended("taken"));
  ASSERT_TRUE(sent(webhook, 2));
  const std::vector<jobs::Alert> taken = webhook.take_delivered_ends();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken.front().job, "taken");
  EXPECT_TRUE(webhook.take_delivered_ends().empty());
}

TEST(AlertWebhook, WithoutAReceiverTheMessagesThatWaitAreDropped) {
  AlertWebhookOptions options;
  AlertWebhook webhook(options);
  webhook.set_receiver({"http://127.0.0.1:1", ""});
  for (int k = 0; k < 5; ++k) webhook.send("waits");
  webhook.set_receiver({"", ""});
  EXPECT_TRUE(testing::eventually([&] { return webhook.counts().dropped == 5 && webhook.counts().waiting == 0; }));
}

TEST(AlertWebhook, ItsUrlHasNoUser) {
  EXPECT_TRUE(check_receiver_url("https://hooks.example.org/services/T0/x@y?key=1").ok());
  EXPECT_TRUE(check_receiver_url("http://127.0.0.1:9094").ok());
  for (const char* const url : {"hooks.example.org", "https://any:secret@hooks.example.org/", "https://a/b c", ""}) {
    const Status checked = check_receiver_url(url);
    ASSERT_FALSE(checked.ok()) << url;
    EXPECT_THAT(checked.error().message, Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace perseus::alerts
