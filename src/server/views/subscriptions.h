// Events of one job or of all jobs, for subscribers.
//
// Problem: a subscriber of one job gets every event after a given one exactly once, though past ones come from the
//          store while new ones arrive.
// Input:   publish(): the events that became durable; job_removed(): the removal of a job's log.
// Output:  past events in parts of about 2 MiB (see kPartOver), then each new event, in order, until unsubscribed.
// Errors:  not_found: no such job. While the store does not answer, a subscriber waits: it gets no gap.
// Cost:    O(subscriptions) per event; past events are read on the executor.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "server/jobs/requests.h"
#include "server/live/job_cache.h"

namespace perseus::views {

class Subscriptions {
 public:
  using Take = std::function<void(const jobs::JobEvent&)>;

  Subscriptions(live::JobCache& jobs, work::StoreAccess& store, const Clock& clock, work::Due& due)
      : jobs_(jobs), store_(store), clock_(clock), alarm_(due, work::Due::Turn::streams, *this) {}

  /// Every event of the job after that sequence, past ones first, each once and in order, until unsubscribed. `after`
  /// beyond the last event (or -1): from now on. `done` is called before the first event. A long past comes in parts,
  /// see kPartOver.
  void subscribe(const std::string& job, std::int64_t after, Take take, work::Done<jobs::SubscriptionId> done);
  /// Events of all jobs from now on.
  jobs::SubscriptionId subscribe_all(Take take);
  void unsubscribe(jobs::SubscriptionId subscription);
  [[nodiscard]] std::size_t size() const { return subscriptions_.size(); }

  void publish(const std::string& job, const live::SequencedEvent& event);
  /// Sends the last event of the job's streams.
  void job_removed(const store::JobIndexRow& gone);

 private:
  struct Subscription {
    std::string job;  ///< empty: all
    std::int64_t after = 0;
    std::shared_ptr<const Take> take;  ///< shared with a call in progress
  };
  struct Part {
    std::vector<jobs::JobEvent> events;
    bool is_last = true;
  };
  static Result<Part> read_part(store::Store& store, const std::string& job, std::int64_t after);

  /// Sends past events until the subscriber has caught up; events that arrive meanwhile are read from the store.
  void send_past(jobs::SubscriptionId id, std::int64_t after);
  void send_part(jobs::SubscriptionId id, std::int64_t after, const Part& part);
  void retry_past(jobs::SubscriptionId id, std::int64_t after);
  /// Reads past events again that the store did not return.
  void read_again(double now_s);
  void set_alarm();
  void send(const jobs::JobEvent& event);

  live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  work::AlarmOf<&Subscriptions::read_again> alarm_;
  std::map<jobs::SubscriptionId, Subscription> subscriptions_;
  jobs::SubscriptionId next_ = 1;
  std::multimap<double, std::pair<jobs::SubscriptionId, std::int64_t>> late_past_;  ///< to be read again, by time
};

}  // namespace perseus::views
