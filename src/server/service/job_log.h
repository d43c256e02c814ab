// Reads the log of a job from the store, and folds it.
//
// Input:   the store; a job's id; the events that are in memory already.
// Output:  the job and its newer events; or only the newer events (a tail), to be folded into the job in memory.
// Errors:  the store's; internal: a log that is broken.
// Cost:    O(events read).
// Threads: off the io thread: it reads the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/service/live_job.h"

namespace perseus::service {

struct JobLog {
  jobs::Job job;                       ///< of a tail: not folded yet
  std::vector<SequencedEvent> events;  ///< after those in memory at the time of the request
  bool is_tail = false;
  std::optional<int> restarts_before;  ///< of a tail: Job::restarts before it
};

Result<JobLog> read_log(store::Store& store, const std::string& id, std::int64_t after);
/// Only the events after that sequence.
Result<JobLog> read_tail(store::Store& store, const std::string& id, std::int64_t after);

}  // namespace perseus::service
