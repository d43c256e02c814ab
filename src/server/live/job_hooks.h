// The calls by which JobCache asks and notifies the rest of the service about a job.
//
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/live/live_job.h"

namespace perseus::live {

struct JobHooks {
  /// The next event that follows from the job and the time alone; called until there is none.
  std::function<std::optional<jobs::EventBody>(LiveJob&, double now_s)> next_follow_up;
  /// Called when events became durable, or were read again.
  std::function<void(LiveJob&, const std::vector<SequencedEvent>&)> committed;
  /// Called with events that this server wrote, once they are durable. May be empty.
  std::function<void(const std::vector<SequencedEvent>&)> written = {};
  /// The job's entry in lists, for the index.
  std::function<std::string(const LiveJob&)> summary;
  /// When time makes something due; for the index.
  std::function<std::optional<double>(const LiveJob&, double now_s)> next_wake;
  /// The job was removed from the store: it is about to leave memory.
  std::function<void(LiveJob&)> removed;
  /// Called with the bytes of the job that are being written to the store. May be empty.
  std::function<void(const LiveJob&, std::int64_t bytes)> writing = {};
  /// Called when the ranks' view has changed though nothing became durable.
  std::function<void(LiveJob&)> shown;
};

}  // namespace perseus::live
