// A command that changes a job: it decides on events, and its client gets an answer once they are durable.
//
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/jobs/event.h"
#include "server/jobs/job.h"
#include "server/store/store.h"
#include "server/work/done.h"

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

}  // namespace perseus::live
