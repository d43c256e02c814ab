// Reads the log of a job from the store, and folds it.
//
// Input:   the store; a job's id; the events that are in memory already.
// Output:  the job and its newer events.
// Errors:  the store's; internal: a log that is broken.
// Cost:    O(events read).
// Threads: off the io thread: it reads the store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/live/live_job.h"

namespace perseus::live {

struct JobLog {
  jobs::Job job;
  std::vector<SequencedEvent> events;  ///< after those in memory at the time of the request
};

Result<JobLog> read_log(store::Store& store, const std::string& id, std::int64_t after);

}  // namespace perseus::live
