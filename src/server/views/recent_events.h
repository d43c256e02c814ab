// The last events of all jobs, by time: what happened on the cluster, and who did it.
//
// Problem: each job has a log of its own, and most of its events are reports of ranks.
// Input:   events as they become durable; changes of limits (limit_changes.h).
// Output:  the last kMostEvents events that is_notable() keeps, each once, in pages, the last one first. At its first
//          use page() reads what was before the server's start: the last kEventsRead events of the kJobsRead jobs that
//          changed last.
// Errors:  of that read: the store's; the next page() reads again.
// Cost:    O(log events) per event; O(jobs) at the first use.
// Threads: io thread; logs are read on the executor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "server/jobs/requests.h"
#include "server/live/job_cache.h"
#include "server/views/list_cursor.h"

namespace perseus::views {

class RecentEvents {
 public:
  static constexpr std::size_t kMostEvents = 2000, kJobsRead = 200;
  static constexpr std::int64_t kEventsRead = 100;

  /// A place in the order: later events come first.
  struct Place {
    double at_s = 0;
    std::string job;
    std::int64_t sequence = 0;
    bool operator<(const Place& other) const;
  };
  using Query = ListQuery<Place, jobs::JobEvent>;
  struct Page {
    std::vector<jobs::JobEvent> events;
    std::optional<Place> next;  ///< the next page starts after it; nothing: no more events
  };

  RecentEvents(const live::JobCache& jobs, work::StoreAccess& store, const Clock& clock)
      : jobs_(jobs), store_(store), clock_(clock) {}

  void take(const std::string& job, const std::vector<live::SequencedEvent>& events);
  /// The job is about to be removed, by that caller; forget_removal() ends that.
  void expect_removal(const std::string& job, const std::string& by) { removed_by_[job] = by; }
  void forget_removal(const std::string& job) { removed_by_.erase(job); }
  void job_removed(const store::JobIndexRow& gone);
  /// An event that no log has. Twice the same one counts once.
  void add(jobs::JobEvent event);
  void page(Query query, work::Done<Page> done);

 private:
  [[nodiscard]] std::vector<store::JobIndexRow> changed_last() const;
  [[nodiscard]] Page made(const Query& query) const;

  const live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  std::map<Place, jobs::JobEvent> events_;
  std::map<std::string, std::string> removed_by_;
  bool past_read_ = false;
};

/// False for events that ranks or time cause again and again.
bool is_notable(std::string_view kind);

/// "1700000000.25,17,j_..."
std::string format_event_cursor(const RecentEvents::Place& place);
std::optional<RecentEvents::Place> parse_event_cursor(std::string_view text);

}  // namespace perseus::views
