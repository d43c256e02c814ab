// The job as ranks and clients see it, where that is not the job in memory.
//
// Problem: the job in memory may be ahead of the store, and while the store does not accept what time has made due (an
//          announced onset, a signal's change), ranks must follow it nevertheless.
// Input:   the job before a change that a client waits for; events, once they are durable; the shadow of JobShadows:
//          the durable job plus what has become due since.
// Output:  the job that a rank or a client sees; null: the job in memory itself. The shadow's plans have separate
//          versions, see is_provisional(), so that whatever becomes durable afterwards, here, at another server or
//          after a restart, has a different version and reaches the rank.
// Errors:  none.
// Cost:    a copy of the job, O(ranks), for the first change that a client waits for.
// Threads: io thread.
// Source:  docs/decisions/0032.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/jobs/job.h"
#include "server/live/job_command.h"

namespace perseus::live {

/// First version of plans that were sent before they were durable: tenths of a second, above the range of durable
/// versions, which count from 1. A number repeats after three years.
constexpr std::int64_t kProvisional = std::int64_t{1} << 30;
constexpr bool is_provisional(std::int64_t version) { return version >= kProvisional; }
constexpr std::int64_t provisional_version(double now_s) {
  return kProvisional + static_cast<std::int64_t>(10 * now_s) % kProvisional;
}

class ShownJob {
 public:
  std::int64_t committed_plan = 0;  ///< version of the last durable plan or profiling window
  std::unique_ptr<jobs::Job> shadow;

  /// The job that the rank sees: the shadow, or, during a commit, the durable job.
  [[nodiscard]] jobs::Job* to_rank(int rank) const;
  /// The job as clients may see it: without changes that are not durable, and with what time makes due while the
  /// store does not accept it.
  [[nodiscard]] jobs::Job* to_clients() const { return shadow ? shadow.get() : durable_.get(); }
  /// Version of the plan that ranks see now.
  [[nodiscard]] std::int64_t version() const { return shadow ? shadow->version : committed_plan; }

  /// Call with the job in memory before a change that a client waits for.
  void keep_durable(const jobs::Job& job);
  /// The durable job, given the job in memory.
  [[nodiscard]] const jobs::Job& durable(const jobs::Job& job) const { return durable_ ? *durable_ : job; }
  /// These events became durable. `all_durable`: the job in memory contains no others.
  void became_durable(const std::vector<SequencedEvent>& events, bool all_durable);
  /// The job in memory is the durable one.
  void forget_durable() { durable_.reset(); }

 private:
  std::unique_ptr<jobs::Job> durable_;  ///< null: the job in memory is
};

}  // namespace perseus::live
