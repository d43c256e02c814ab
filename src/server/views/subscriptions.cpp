#include "server/views/subscriptions.h"

#include <limits>
#include <vector>

#include "server/jobs/event_text.h"

namespace perseus::views {

void Subscriptions::subscribe(const std::string& job, std::int64_t after, Take take,
                              work::Done<jobs::SubscriptionId> done) {
  jobs_.with(job,
             [this, job, after, take = std::move(take), done = std::move(done)](const Result<live::LiveJob*>& live) {
               if (!live) return done(live.error());
               const std::int64_t committed = (*live)->committed;
               const std::int64_t from = after < 0 || after > committed ? committed : after;
               const jobs::SubscriptionId id = next_++;
               constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  // past events come first
               subscriptions_.emplace(
                   id, Subscription{job, from < committed ? never : committed, std::make_shared<const Take>(take)});
               ++(*live)->subscribers;
               done(id);
               if (from < committed) send_past(id, from);
             });
}

jobs::SubscriptionId Subscriptions::subscribe_all(Take take) {
  const jobs::SubscriptionId id = next_++;
  subscriptions_.emplace(id, Subscription{"", 0, std::make_shared<const Take>(std::move(take))});
  return id;
}

void Subscriptions::unsubscribe(jobs::SubscriptionId subscription) {
  const auto found = subscriptions_.find(subscription);
  if (found == subscriptions_.end()) return;
  if (live::LiveJob* live = jobs_.in_memory(found->second.job)) --live->subscribers;
  subscriptions_.erase(found);
}

Result<Subscriptions::Part> Subscriptions::read_part(store::Store& store, const std::string& job, std::int64_t after) {
  // Bytes that may wait for a stream's reader before the stream is cut (HttpServerOptions::stream_bytes).
  constexpr std::size_t most_bytes = std::size_t{2} << 20U, bytes_beside_text = 200;
  const auto stored = store.read(job, after);
  if (!stored) return stored.error();
  Part part;
  std::size_t bytes = 0;
  for (const store::StoredEvent& item : *stored) {
    if (bytes > most_bytes) {
      part.is_last = false;
      break;
    }
    const jobs::Event event = jobs::event_in_log(item.body);
    part.events.push_back(job_event(job, item.sequence, event));
    bytes += part.events.back().text.size() + bytes_beside_text;
  }
  return part;
}

void Subscriptions::send_past(jobs::SubscriptionId id, std::int64_t after) {
  const auto found = subscriptions_.find(id);
  if (found == subscriptions_.end()) return;
  store_.read<Part>([job = found->second.job, after](store::Store& from) { return read_part(from, job, after); },
                    [this, id, after](const Result<Part>& past) {
                      // A reader gets nothing rather than a sequence with gaps; meanwhile the store is read again.
                      past ? send_part(id, after, *past) : retry_past(id, after);
                    });
}

void Subscriptions::send_part(jobs::SubscriptionId id, std::int64_t after, const Part& part) {
  std::int64_t last = after;
  for (const jobs::JobEvent& event : part.events) {
    const auto subscription = subscriptions_.find(id);
    if (subscription == subscriptions_.end()) return;
    last = event.sequence;
    const auto take = subscription->second.take;
    (*take)(event);
  }
  const auto subscription = subscriptions_.find(id);
  if (subscription == subscriptions_.end()) return;
  if (!part.is_last) {
    const auto take = subscription->second.take;
    return (*take)({subscription->second.job, last, std::string(jobs::kPartOver), 0, ""});
  }
  const live::LiveJob* const live = jobs_.in_memory(subscription->second.job);
  if (live != nullptr && live->committed > last) return send_past(id, last);
  subscription->second.after = last;
}

void Subscriptions::publish(const std::string& job, const live::SequencedEvent& event) {
  if (subscriptions_.empty()) return;
  send(job_event(job, event.sequence, event.event));
}

void Subscriptions::job_removed(const store::JobIndexRow& gone) {
  send({gone.job, gone.last_sequence + 1, std::string(jobs::kJobRemoved), clock_.now_s(),
        "the job was removed with its log"});
}

void Subscriptions::send(const jobs::JobEvent& event) {
  std::vector<std::shared_ptr<const Take>> listeners;  // they may unsubscribe meanwhile
  for (auto& [id, subscription] : subscriptions_) {
    const bool of_one = !subscription.job.empty();
    if (of_one && (subscription.job != event.job || event.sequence <= subscription.after)) continue;
    if (of_one) subscription.after = event.sequence;
    listeners.push_back(subscription.take);
  }
  for (const auto& take : listeners) (*take)(event);
}

// ---- Time

void Subscriptions::retry_past(jobs::SubscriptionId id, std::int64_t after) {
  late_past_.emplace(clock_.now_s() + live::kRetryAfter_s, std::pair(id, after));
  set_alarm();
}

void Subscriptions::read_again(double now_s) {
  while (!late_past_.empty() && late_past_.begin()->first <= now_s) {
    const auto [id, after] = late_past_.extract(late_past_.begin()).mapped();
    send_past(id, after);
  }
  set_alarm();
}

void Subscriptions::set_alarm() {
  alarm_.set(late_past_.empty() ? std::nullopt : std::optional(late_past_.begin()->first));
}

}  // namespace perseus::views
