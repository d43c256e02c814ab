// The jobs in memory, and the only path by which they change: decide, fold, append to the store, then answer.
//
// Problem: an answered change must be durable; several servers may change the same job; a commit takes milliseconds
//          while thousands of ranks register at once; a store that hangs must not delay requests for known data.
// Input:   commands: functions from a job to the events that a request makes.
// Output:  `done` after the commit of these events and of every event that they were decided on. Each job has one
//          append in progress; later events are folded into memory at once and go to the store together afterwards
//          (group commit). If another server committed first, the job is read again and the commands decide again.
// Errors:  a command's own: nothing happens; not_found: no such job; the store's: memory drops the rejected events
//          and the commands return the error; unavailable: no answer within the time limit, so the outcome is
//          unknown. While the store does not accept what time has made due, the job has a shadow, see live_job.h.
// Cost:    O(1) per command besides its events; reading a job O(its events), on the executor. The first change that a
//          client waits for, while no other is in progress, copies the job, O(ranks), unless it is only a rank or a
//          count.
// Threads: io thread only.
// Source:  docs/decisions/0008, 0032.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "server/service/job_index.h"
#include "server/service/live_job.h"
#include "server/service/store_access.h"

namespace perseus::service {

class LiveJobs : public std::enable_shared_from_this<LiveJobs> {
 public:
  struct Hooks {
    /// The next event that follows from the job and the time alone; called until there is none.
    std::function<std::optional<jobs::EventBody>(LiveJob&, double now_s)> next_follow_up;
    /// Called when events became durable here or arrived from another server.
    std::function<void(LiveJob&, const std::vector<SequencedEvent>&)> committed;
    /// The job's entry in lists, for the index.
    std::function<std::string(const LiveJob&, double now_s)> summary;
    /// When time makes something due; for the index.
    std::function<std::optional<double>(const LiveJob&, double now_s)> next_wake;
    /// The job was removed from the store: it is about to leave memory.
    std::function<void(LiveJob&)> removed;
    /// Called with the bytes of the job that are being written to the store. May be empty.
    std::function<void(const LiveJob&, std::int64_t bytes)> writing = {};
    /// Called when the ranks' view has changed though nothing became durable.
    std::function<void(LiveJob&)> shown;
  };
  using Found = std::function<void(Result<LiveJob*>)>;

  LiveJobs(StoreAccess& store, const Clock& clock, Hooks hooks);
  /// Reads the index, on this thread: for the start.
  Status open(store::Store& store);

  /// Calls `then` with the job: at once if it is in memory and up to date, otherwise after reading it, in the order
  /// of the calls.
  template <class Then>
  void with(const std::string& id, Then then) {
    if (LiveJob* live = current(id)) return then(Result<LiveJob*>(live));
    load(id, std::move(then));
  }
  /// The same, after reading what other servers have written. Call before rejecting a request: another replica may
  /// have committed newer events.
  void with_news(const std::string& id, Found then);
  /// The job in memory, though the store may have newer events.
  [[nodiscard]] LiveJob* in_memory(const std::string& id);
  void execute(const std::string& id, JobCommand command);
  void create(const std::string& id, JobCommand command);
  /// Applies what follows from time or from news.
  void touch(LiveJob& live);
  /// Applies the same to the ranks' view while the store cannot accept it.
  void touch_shadow(LiveJob& live);
  /// Another server appended (0: removed the job).
  void on_foreign(const std::string& id, std::int64_t sequence);
  void forget_finished(std::size_t keep);
  /// Removes the job and its log permanently. unavailable while an append is in progress.
  void remove(const std::string& id, std::function<void(const Status&)> done);

  [[nodiscard]] const JobIndex& index() const { return index_; }
  [[nodiscard]] JobIndex& index() { return index_; }
  [[nodiscard]] const std::unordered_map<std::string, std::unique_ptr<LiveJob>>& live() const { return live_; }
  /// The jobs whose wake is due; removes their wakes from the list.
  std::vector<std::string> take_due(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const;
  void set_wake(LiveJob& live, double now_s);
  /// The job could not be read: take_due() returns it again at that time.
  void wake_again(const std::string& id, double at_s);
  std::function<void()> earlier_wake;

 private:
  /// A log, folded.
  struct Read {
    jobs::Job job;
    std::vector<SequencedEvent> events;  ///< after those in memory at the time of the request
  };
  /// Requests for the changes by other servers.
  struct News {
    std::vector<Found> asking;  ///< their query is in progress
    std::vector<Found> next;    ///< arrived after that query was sent
    bool reading = false;
  };
  LiveJob* current(const std::string& id);
  void load(const std::string& id, Found then);
  void read(const std::string& id);
  static Result<Read> read_log(store::Store& store, const std::string& id, std::int64_t after);
  void was_read(const std::string& id, Result<Read> read);
  /// The answer for the waiting callbacks: the job, an error, or nothing, to read again.
  std::optional<Result<LiveJob*>> take(const std::string& id, Result<Read> read);
  void install(LiveJob& live, Read read);
  void ask_for_news(const std::string& id);
  void heard(const std::string& id, const Result<std::int64_t>& last);
  void forget(const std::string& id);
  void run(LiveJob& live, JobCommand command, bool has_news = false);
  Status decide_into(LiveJob& live, LiveJob::Entry& entry);
  void follow_up(LiveJob& live, LiveJob::Entry& entry, double now_s);
  Status fold(LiveJob& live, LiveJob::Entry& entry, jobs::EventBody body, double now_s);
  void flush(LiveJob& live);
  void appended(const std::string& id, Result<store::Appended> result);
  void append_is_slow(const std::string& id);
  void append_is_late(const std::string& id);
  void again(const std::string& id, std::vector<LiveJob::Entry> entries);
  void fail(LiveJob& live, std::vector<LiveJob::Entry> entries, const Error& error);
  void keep_known(LiveJob& live, const std::vector<SequencedEvent>& events);
  void go_adrift(LiveJob& live);
  void cast_shadow(LiveJob& live, const jobs::Job* before);
  /// What time makes due is durable again.
  void end_shadow(LiveJob& live);
  void retry_at(LiveJob& live, double at_s);
  void became_durable(LiveJob& live, const std::vector<SequencedEvent>& events);
  [[nodiscard]] store::JobIndexRow row_of(const LiveJob& live, double now_s) const;

  StoreAccess& store_;
  const Clock& clock_;
  Hooks hooks_;
  std::unordered_map<std::string, std::vector<Found>> loading_;
  std::set<std::string> changed_while_read_;  ///< by other servers, among those in loading_
  std::unordered_map<std::string, News> news_;
  JobIndex index_;
  std::unordered_map<std::string, std::unique_ptr<LiveJob>> live_;
  std::set<std::pair<double, std::string>> wakes_;
};

}  // namespace perseus::service
