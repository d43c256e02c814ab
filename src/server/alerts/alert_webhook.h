// Sends messages to the receiver of alerts, in order, without delaying its caller.
//
// Problem: a receiver that is down, slow, or never answers must not delay requests or planning, nor fill the memory.
// Input:   a receiver; messages, JSON texts.
// Output:  one POST per message, on one connection. It is repeated after an answer of 408, 429 or 5xx and without an
//          answer, with growing delays, for as long as `kept`. The receiver may get a message twice, if its answer is
//          lost.
// Errors:  a message is dropped, and counted, after any other answer but 2xx, when `kept` is over, and, the oldest
//          first, when too many wait. Lines for the log give the reason; one that repeats makes one line.
// Cost:    send(): a lock. A thread, from the first receiver on.
// Threads: any; set_receiver() and stop() from one thread, set_receiver() not after finish().
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "server/alerts/alerts.h"
#include "server/jobs/alert.h"
#include "server/work/executor.h"

namespace perseus::alerts {

struct AlertReceiver {
  std::string url;    ///< with path and query; empty: alerts are not sent
  std::string token;  ///< bearer token; empty: none
  bool operator==(const AlertReceiver&) const = default;
};

/// Ok for http:// or https://, a host, and optionally a port, a path and a query.
Status check_receiver_url(const std::string& url);
/// "https://hooks.example.org:8443" of such a URL
std::string host_of_receiver(const std::string& url);
/// The path and the query, unchanged.
std::string target_of_receiver(const std::string& url);

/// Since the start.
struct WebhookCounts {
  std::int64_t sent = 0, dropped = 0;  ///< messages
  std::int64_t failed = 0;             ///< calls
  std::int64_t waiting = 0;            ///< messages now
};

struct AlertWebhookOptions {
  std::chrono::milliseconds answer{10'000};  ///< longest wait for an answer
  std::chrono::milliseconds first_delay{1'000}, longest_delay{60'000};
  std::chrono::milliseconds kept{3'600'000};
  std::size_t most_waiting = 10'000;  ///< messages
};

class AlertWebhook final : public AlertSink {
 public:
  explicit AlertWebhook(AlertWebhookOptions options = {}) : options_(options) {}
  AlertWebhook(const AlertWebhook&) = delete;
  AlertWebhook& operator=(const AlertWebhook&) = delete;
  /// Abandons messages that wait.
  ~AlertWebhook();

  /// Messages that wait go to the new receiver.
  void set_receiver(AlertReceiver receiver);
  /// Sends it as a message.
  void changed(const jobs::Alert& alert) override;
  /// `end`: the alert whose end the message says, if it does.
  void send(std::string message, std::optional<jobs::Alert> end = {});
  [[nodiscard]] WebhookCounts counts() const;
  /// The alerts whose ends the receiver has taken since the last call.
  std::vector<jobs::Alert> take_delivered_ends();
  /// Lines for the log since the last call.
  std::vector<std::string> take_lines();
  /// Sends nothing from now on.
  void stop();
  /// For an orderly stop, on any thread: tries each message that waits once more, without delays, at most for `limit`.
  /// Returns when that is over; then as after stop().
  void finish(std::chrono::milliseconds limit);
  /// True until its thread has ended, which may take as long as the lookup of the receiver's name.
  [[nodiscard]] bool is_running() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Message {
    std::string text;
    Time until;
    std::optional<jobs::Alert> end;
  };
  struct Outcome {
    bool sent = false, again = false;
    std::string why;
  };
  class ReceiverConnection;

  void run(const std::stop_token& stop);
  Outcome post(ReceiverConnection& connection, const std::string& message, const std::stop_token& stop) const;
  void take(Message message, const Outcome& outcome);
  void report(const std::string& state);

  const AlertWebhookOptions options_;
  mutable std::mutex mutex_;  ///< guards the following
  std::condition_variable_any changed_;
  AlertReceiver receiver_;
  std::uint64_t receivers_ = 0;  ///< how many there have been
  std::deque<Message> waiting_;
  bool sending_ = false;
  std::chrono::milliseconds delay_{0};
  WebhookCounts counts_;
  std::string state_;  ///< the last reason reported; empty: messages arrive
  std::vector<std::string> lines_;
  std::vector<jobs::Alert> delivered_ends_;
  bool running_ = false, finishing_ = false;
  std::jthread thread_;
};

/// finish() on the executor; then `done` on the io thread.
void finish_off_thread(const std::shared_ptr<AlertWebhook>& webhook, work::Executor& executor, double limit_s,
                       work::Done<Ok> done);

}  // namespace perseus::alerts
