// The jobs in memory, and the only path by which they change: decide, fold, append to the store, then answer.
//
// Problem: an answered change must be durable; a commit takes milliseconds while thousands of ranks register at once; a
//          store that hangs must not delay requests for known data.
// Input:   commands: functions from a job to the events that a request makes.
// Output:  `done` after the commit of these events and of every event that they were decided on. Each job has one
//          append in progress. Commands that a client waits for meanwhile are decided after it, and go to the store
//          together (group commit); other events are folded into memory at once.
// Errors:  a command's own: nothing happens; not_found: no such job; the store's: memory drops the rejected events
//          and the commands return the error; unavailable: no answer within the time limit, so the outcome is
//          unknown. While the store does not accept what time has made due, ranks see it, see shown_job.h.
// Cost:    O(1) per command besides its events; reading a job O(its events), on the executor. An append with a change
//          that a client waits for copies the job, O(ranks), unless it is only a rank or a count.
// Threads: io thread only.
// Source:  docs/decisions/0008, 0032.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "server/live/job_hooks.h"
#include "server/live/job_index.h"
#include "server/live/job_wakes.h"
#include "server/live/live_job.h"
#include "server/work/store_access.h"

namespace perseus::live {

/// The log of a job, read from the store and folded.
struct JobLog {
  jobs::Job job;
  std::vector<SequencedEvent> events;  ///< after those in memory at the time of the request
};

Result<JobLog> read_log(store::Store& store, const std::string& id, std::int64_t after);

class JobCache {
 public:
  using Found = FoundJob;

  JobCache(work::StoreAccess& store, const Clock& clock, work::Due& due, JobHooks& hooks);
  /// Reads the index, on this thread: for the start.
  Status open(store::Store& store);

  /// Calls `then` with the job: at once if it is in memory and up to date, otherwise after reading it, in the order
  /// of the calls.
  template <class Then>
  void with(const std::string& id, Then then) {
    if (LiveJob* live = current(id)) return then(Result<LiveJob*>(live));
    load(id, std::move(then));
  }
  /// The job in memory, though the store may have newer events.
  [[nodiscard]] LiveJob* in_memory(const std::string& id);
  void execute(const std::string& id, JobCommand command);
  void create(const std::string& id, JobCommand command);
  /// Applies what follows from time or from news.
  void touch(LiveJob& live);
  /// The store is late: applies the same to the job that ranks see, see ShownJob, again every second.
  void go_on_as_shown(LiveJob& live);
  /// What the ranks are to run may have changed though nothing became durable.
  void shown(LiveJob& live) { hooks_.shown(live); }
  void forget_finished(std::size_t keep);
  /// Removes the job and its log permanently. unavailable while an append is in progress.
  void remove(const std::string& id, work::Done<Ok> done);

  [[nodiscard]] const JobIndex& index() const { return index_; }
  [[nodiscard]] JobIndex& index() { return index_; }
  [[nodiscard]] const std::unordered_map<std::string, std::unique_ptr<LiveJob>>& live() const { return live_; }
  void set_wake(LiveJob& live, double now_s) { wakes_.set(live, now_s); }
  /// Compares the job's plan with the desired one again at that time.
  void plan_anew(LiveJob& live, double now_s) {
    live.settled = false;
    live.retry_s = now_s;
    set_wake(live, now_s);
  }
  /// A rank has called; if it or the job was silent, its wake notes that it no longer is.
  void rank_called(LiveJob& live, int rank) {
    const double now_s = clock_.now_s();
    const bool all_waited = live.calls.all_wait();
    live.calls.record(rank, now_s);
    if (all_waited) set_wake(live, now_s);
    if (live.job.silent || live.job.silent_ranks.contains(rank)) plan_anew(live, now_s);
    const bool may_look = live.job.live() && live.job.ranks_registered > 1;
    if (may_look && now_s >= live.calls.next_look_s) wakes_.set_to(live, now_s);
  }
  /// The wait of a rank has ended; without a rank: a process called that does not hold its rank yet.
  void rank_waited(LiveJob& live, std::optional<int> rank) {
    const double now_s = clock_.now_s();
    const bool all_waited = live.calls.all_wait();
    rank ? live.calls.heard(*rank, now_s) : live.calls.heard(now_s);
    if (all_waited) set_wake(live, now_s);
  }
  /// The job could not be read: it is woken again at that time.
  void wake_again(const std::string& id, double at_s) { wakes_.put(at_s, id); }

  /// Reads the job, and calls `then` as with() does.
  void load(const std::string& id, Found then);
  [[nodiscard]] bool is_loading(const std::string& id) const { return loading_.contains(id); }

 private:
  LiveJob* current(const std::string& id);
  void read(const std::string& id);
  /// `durable`: the job's durable events when the read began.
  void was_read(const std::string& id, std::int64_t durable, Result<JobLog> read);
  /// The answer for the waiting callbacks: the job, an error, or nothing, to read again.
  std::optional<Result<LiveJob*>> take(const std::string& id, std::int64_t durable, Result<JobLog> read);
  /// The log is newer than memory, or as new.
  Result<LiveJob*> take_newer(const std::string& id, JobLog read, bool was_unanswered);
  void install(LiveJob& live, JobLog read);
  void forget(const std::string& id);
  struct Answer {
    JobCommand command;
    Status status;
  };
  void run(LiveJob& live, JobCommand command);
  /// The answer to give now. Nothing: the command is decided again after the append in progress, or is in the outbox.
  std::optional<Answer> decide(LiveJob& live, JobOutbox::Undecided asked);
  std::vector<Answer> decide_waiting(LiveJob& live);
  Status decide_into(LiveJob& live, JobOutbox::Entry& entry);
  Status fold(LiveJob& live, JobOutbox::Entry& entry, jobs::EventBody body, double now_s);
  void flush(LiveJob& live);
  void appended(const std::string& id, Result<store::Appended> result);
  void append_is_slow(const std::string& id);
  void append_is_late(const std::string& id);
  void was_changed(LiveJob& live, std::vector<JobCommand> commands);
  void fail(LiveJob& live, const std::vector<JobCommand>& commands, const Error& error);
  void became_durable(LiveJob& live, const std::vector<SequencedEvent>& events);
  [[nodiscard]] store::JobIndexRow row_of(const LiveJob& live, double now_s) const;

  work::StoreAccess& store_;
  const Clock& clock_;
  JobHooks& hooks_;
  std::unordered_set<std::string> unanswered_;  ///< new jobs of which the store has not said whether it has them
  std::unordered_map<std::string, std::vector<Found>> loading_;
  JobIndex index_;
  std::unordered_map<std::string, std::unique_ptr<LiveJob>> live_;
  JobWakes wakes_;
};

}  // namespace perseus::live
