// Streams of changed rows of the list of jobs, which keep dashboards up to date.
//
// Problem: if every dashboard reloads the list after each event, some dozens of them saturate the server.
// Input:   notifications that the list has changed; streams.
// Output:  one event "jobs" with all rows that changed since the last one, at most two per second, formatted once for
//          all streams that see every job: {"jobs":[ROW...],"removed":[ID...]}.
// Errors:  none.
// Cost:    the changed rows, and a pointer per stream; nothing while there is no stream.
// Threads: io thread.
// Source:  docs/decisions/0034.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "io/http/http_server.h"
#include "server/views/job_list.h"

namespace perseus::views {

class JobChanges {
 public:
  using Id = std::uint64_t;
  /// Whether a stream may see the job; empty: all jobs.
  using Sees = std::function<bool(const JobList::Change&)>;

  /// The first stream needs changes from now on: see JobListUpdater::keep_changes().
  Id add(http::Responder responder, Sees sees);
  void remove(Id id);
  [[nodiscard]] bool empty() const { return streams_.empty(); }

  /// Call when the list has changed.
  void note(double now_s);
  [[nodiscard]] std::optional<double> next_wake_s() const { return due_s_; }
  void send(const std::vector<JobList::Change>& changes, double now_s);

 private:
  struct Stream {
    http::Responder responder;
    Sees sees;
  };
  std::map<Id, Stream> streams_;
  Id last_ = 0;
  std::optional<double> due_s_;
  double sent_s_ = 0;
};

}  // namespace perseus::views
