// The changes of a job that are not durable yet: those in an append, those that wait for the next one, and the commands
// that are decided after it.
//
// Input:   entries: a command with the events and blobs that it decided on, or a command that only waits; commands that
//          are not decided yet.
// Output:  the next append, of everything that waits; its entries when it is over.
// Errors:  none.
// Cost:    O(events and blobs) per append.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/jobs/event.h"
#include "server/jobs/job.h"
#include "server/store/store.h"
#include "server/work/executor.h"

namespace perseus::live {

struct Decision {
  std::vector<jobs::EventBody> events;
  std::vector<store::Blob> blobs;
  std::vector<std::string> holds = {};  ///< keys of other blobs that stay while the job exists
};

/// One with `done`, for which a client waits, is decided on a job whose clients' changes are all durable.
struct JobCommand {
  std::function<Result<Decision>(const jobs::Job&, double now_s)> decide;
  work::Done<Ok> done;
  bool once_durable = false;  ///< ranks and clients do not see it before that; as what a client waits for

  [[nodiscard]] bool shown_once_durable() const { return done || once_durable; }
};

/// An event with its place in the job's log.
struct SequencedEvent {
  std::int64_t sequence = 0;
  jobs::Event event;
};

class JobOutbox {
 public:
  struct Entry {
    JobCommand command;
    std::vector<SequencedEvent> events;
    std::vector<store::Blob> blobs;
    std::vector<std::string> holds = {};
  };

  struct Undecided {
    JobCommand command;
    bool is_refused = false;  ///< because of changes that were not durable
  };

  void add(Entry entry) { waiting_.push_back(std::move(entry)); }
  void put_off(Undecided undecided) { undecided_.push_back(std::move(undecided)); }
  std::vector<Undecided> take_undecided() { return std::exchange(undecided_, {}); }
  /// Nothing waits for an append.
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  /// An append is in progress.
  [[nodiscard]] bool is_appending() const { return appending_; }
  [[nodiscard]] bool all_durable() const { return !appending_ && waiting_.empty(); }
  /// True if the blob still waits to be written.
  [[nodiscard]] bool is_pending(std::string_view blob) const;

  /// The append of everything that waits, which is in progress from now on. `committed`: the job's durable events.
  store::Append begin_append(const std::string& job, std::int64_t committed);
  /// The append is over: its entries.
  std::vector<Entry> end_append();
  /// What is not durable is given up, but for an append in progress: the commands whose clients wait.
  std::vector<JobCommand> give_up();
  /// The commands whose clients wait; what they have decided on, or will, stays.
  std::vector<JobCommand> take_commands();

 private:
  std::vector<Entry> waiting_;
  std::vector<Entry> in_flight_;
  std::vector<Undecided> undecided_;
  bool appending_ = false;
};

}  // namespace perseus::live
