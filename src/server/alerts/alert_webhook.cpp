#include "server/alerts/alert_webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/http/http_client.h"
#include "io/http/url.h"
#include "server/alerts/alert_message.h"

namespace perseus::alerts {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMostLines = 100;
constexpr int kTimedOut = 408, kTooMany = 429, kServerError = 500;

}  // namespace

/// The connection to one receiver.
class AlertWebhook::ReceiverConnection {
 public:
  ReceiverConnection(const AlertReceiver& receiver, milliseconds answer)
      : target_(target_of_receiver(receiver.url)),
        host_(host_of_receiver(receiver.url)),
        connection_({host_, receiver.token, "", answer}) {}
  Result<http::HttpReply> post(const std::string& message, const std::stop_token& stop) {
    return connection_.call({"POST", target_, message}, stop);
  }
  [[nodiscard]] const std::string& host() const { return host_; }
  void close() { connection_.close(); }

 private:
  std::string target_, host_;
  http::HttpConnection connection_;
};

AlertWebhook::~AlertWebhook() { stop(); }

void AlertWebhook::set_receiver(AlertReceiver receiver) {
  const std::lock_guard lock(mutex_);
  if (receiver == receiver_) return;
  receiver_ = std::move(receiver);
  ++receivers_;
  delay_ = milliseconds(0);
  if (receiver_.url.empty()) {
    counts_.dropped += std::ssize(waiting_);
    waiting_.clear();
  }
  if (!receiver_.url.empty() && !thread_.joinable()) {
    running_ = true;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  changed_.notify_all();
}

void AlertWebhook::changed(const jobs::Alert& alert) {
  send(format_alert_message(alert), alert.resolved_s ? std::optional(alert) : std::nullopt);
}

void AlertWebhook::send(std::string message, std::optional<jobs::Alert> end) {
  const std::lock_guard lock(mutex_);
  if (receiver_.url.empty()) return;
  waiting_.push_back({std::move(message), steady_clock::now() + options_.kept, std::move(end)});
  if (waiting_.size() > options_.most_waiting) {
    waiting_.pop_front();
    ++counts_.dropped;
  }
  changed_.notify_all();
}

WebhookCounts AlertWebhook::counts() const {
  const std::lock_guard lock(mutex_);
  WebhookCounts counts = counts_;
  counts.waiting = std::ssize(waiting_) + (sending_ ? 1 : 0);
  return counts;
}

std::vector<jobs::Alert> AlertWebhook::take_delivered_ends() {
  const std::lock_guard lock(mutex_);
  return std::exchange(delivered_ends_, {});
}

std::vector<std::string> AlertWebhook::take_lines() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lines_, {});
}

void AlertWebhook::stop() { thread_.request_stop(); }

void AlertWebhook::finish(milliseconds limit) {
  {
    std::unique_lock lock(mutex_);
    if (!running_) return;
    finishing_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, limit, [this] { return !running_; });
  }
  thread_.request_stop();
}

bool AlertWebhook::is_running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

void AlertWebhook::run(const std::stop_token& stop) {
  std::optional<ReceiverConnection> connection;
  std::uint64_t receiver = 0;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !(finishing_ && waiting_.empty())) {
    const std::uint64_t before = receivers_;
    if (delay_ > milliseconds(0)) {  // ends early for a new receiver
      changed_.wait_for(lock, stop, delay_, [&] { return receivers_ != before || finishing_; });
    }
    if (waiting_.empty()) {
      if (connection) connection->close();
      changed_.wait(lock, stop, [this] { return !waiting_.empty() || finishing_; });
    }
    if (stop.stop_requested() || waiting_.empty()) continue;
    if (waiting_.front().until <= steady_clock::now()) {
      waiting_.pop_front();
      ++counts_.dropped;
      continue;
    }
    if (!connection || receiver != receivers_) {
      connection.emplace(receiver_, options_.answer);
      receiver = receivers_;
    }
    Message message = std::move(waiting_.front());
    waiting_.pop_front();
    sending_ = true;
    lock.unlock();
    const Outcome outcome = post(*connection, message.text, stop);
    lock.lock();
    sending_ = false;
    if (!stop.stop_requested()) take(std::move(message), outcome);
  }
  running_ = false;
  changed_.notify_all();
}

AlertWebhook::Outcome AlertWebhook::post(ReceiverConnection& connection, const std::string& message,
                                         const std::stop_token& stop) const {
  const auto reply = connection.post(message, stop);
  if (!reply) return {false, true, reply.error().message};
  if (reply->status / 100 == 2) return {true, false, {}};
  const bool again = reply->status >= kServerError || reply->status == kTimedOut || reply->status == kTooMany;
  return {false, again, fmt::format("{} answered {}", connection.host(), reply->status)};
}

/// With the lock.
void AlertWebhook::take(Message message, const Outcome& outcome) {
  if (outcome.sent) ++counts_.sent;
  if (outcome.sent && message.end) delivered_ends_.push_back(*message.end);
  if (!outcome.sent) ++counts_.failed;
  report(outcome.sent ? "" : outcome.why);
  if (!outcome.again) {
    delay_ = milliseconds(0);
    if (!outcome.sent) ++counts_.dropped;
    return;
  }
  delay_ = std::clamp(2 * delay_, options_.first_delay, options_.longest_delay);
  if (!finishing_ && steady_clock::now() < message.until && waiting_.size() < options_.most_waiting &&
      !receiver_.url.empty()) {
    waiting_.push_front(std::move(message));
  } else {
    ++counts_.dropped;
  }
}

void AlertWebhook::report(const std::string& state) {
  if (state == state_) return;
  state_ = state;
  if (lines_.size() >= kMostLines) return;
  lines_.push_back(state.empty() ? "messages arrive again" : state);
}

void finish_off_thread(const std::shared_ptr<AlertWebhook>& webhook, work::Executor& executor, double limit_s,
                       work::Done<Ok> done) {
  const milliseconds limit(static_cast<std::int64_t>(1000 * limit_s));
  executor.submit(work::Executor::Kind::request, [webhook, limit, done = std::move(done)] {
    webhook->finish(limit);
    return std::function<void()>([done] { done(Ok{}); });
  });
}

namespace {

std::size_t end_of_host(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return std::min(url.find_first_of("/?#", begin), url.size());
}

}  // namespace

std::string host_of_receiver(const std::string& url) { return url.substr(0, end_of_host(url)); }

std::string target_of_receiver(const std::string& url) {
  std::string target = url.substr(end_of_host(url));
  target.resize(std::min(target.find('#'), target.size()));
  return target.starts_with('/') ? target : "/" + target;
}

Status check_receiver_url(const std::string& url) {
  const std::string host = host_of_receiver(url);
  if (host.find('@') != std::string::npos) {
    return Error{ErrorCode::usage, "the URL contains a user; allowed: a URL without one, and a bearer token in a file"};
  }
  if (const auto parsed = http::parse_url(host); !parsed) return parsed.error();
  const bool is_text = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  if (is_text) return Ok{};
  return Error{ErrorCode::usage, "the URL contains a space or a character that is not ASCII; allowed: %XX"};
}

}  // namespace perseus::alerts
