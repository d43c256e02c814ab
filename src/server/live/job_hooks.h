// What JobCache asks and tells the rest of the service about a job; service::Service implements it.
//
// Threads: io thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/live/live_job.h"

namespace perseus::live {

class JobHooks {
 public:
  JobHooks() = default;
  JobHooks(const JobHooks&) = delete;
  JobHooks& operator=(const JobHooks&) = delete;
  virtual ~JobHooks() = default;

  /// The next event that follows from the job and the time alone; called until there is none.
  virtual std::optional<jobs::EventBody> next_follow_up(LiveJob& live, double now_s) = 0;
  /// When time makes something due.
  [[nodiscard]] virtual std::optional<double> due_s(const LiveJob& live, double now_s) const = 0;
  /// That time has come.
  virtual void wake(const std::string& id) = 0;
  /// The job's entry in lists, for the index.
  [[nodiscard]] virtual std::string summary(const LiveJob& live) const = 0;
  /// So many bytes of the job are being written to the store.
  virtual void writing(const LiveJob& live, std::int64_t bytes) = 0;
  /// This server's events are durable.
  virtual void written(const std::vector<SequencedEvent>& events) = 0;
  /// Events became durable, or were read again.
  virtual void committed(LiveJob& live, const std::vector<SequencedEvent>& events) = 0;
  /// What the ranks are to run may have changed though nothing became durable.
  virtual void shown(LiveJob& live) = 0;
  /// The job was removed from the store: it is about to leave memory.
  virtual void removed(LiveJob& live) = 0;
  /// A row of the index has changed.
  virtual void row_changed() = 0;
  /// The job and its log are removed.
  virtual void row_erased(const store::JobIndexRow& gone) = 0;
};

}  // namespace perseus::live
