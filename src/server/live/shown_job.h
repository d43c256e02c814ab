// The job as ranks and clients see it, where that is not the job in memory.
//
// Problem: the job in memory may be ahead of the store, and while the store does not accept what time has made due (an
//          announced onset, a signal's change), ranks must follow it nevertheless.
// Input:   the job before a change that a client waits for; once the store is late, what has become due since.
// Output:  the job that a rank or a client sees; null: the job in memory itself. While the store is late, its plans
//          have separate versions, see is_provisional(), so that whatever becomes durable afterwards, here, at another
//          server or after a restart, has a different version and reaches the rank.
// Errors:  none.
// Cost:    a copy of the job, O(ranks), for the first change of an append that a client waits for, or when the store
//          becomes late.
// Threads: io thread.
// Source:  docs/decisions/0032.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "server/jobs/job.h"

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

  /// The job that the rank sees: what time has made of it, or, during a commit, the durable job.
  [[nodiscard]] jobs::Job* to_rank(int rank) const;
  /// The job as clients may see it: without changes that are not durable, and with what time makes due while the
  /// store does not accept it.
  [[nodiscard]] jobs::Job* to_clients() const { return job_.get(); }
  /// Version of the plan that ranks see now.
  [[nodiscard]] std::int64_t version() const { return is_late_ ? job_->version : committed_plan; }
  /// The store has failed or is slow: time goes on in the job that is shown.
  [[nodiscard]] bool is_late() const { return is_late_; }

  /// Call with the job in memory before a change that a client waits for.
  void keep(const jobs::Job& job) {
    if (!job_) job_ = std::make_unique<jobs::Job>(job);
  }
  /// Applies an event to the job that is shown, if that is not the one in memory.
  void fold(const jobs::Event& event) {
    if (job_) static_cast<void>(jobs::apply(*job_, event));
  }
  /// The store is late: the job that is shown, for what time makes due. Given the job in memory.
  jobs::Job& go_on(const jobs::Job& job) {
    keep(job);
    is_late_ = true;
    return *job_;
  }
  /// Gives a plan that is not durable its version; the same plan keeps it.
  void number(jobs::Job& job, double now_s);
  /// The changes of clients are durable. True if time went on in the job that was shown.
  bool end() {
    job_.reset();
    return std::exchange(is_late_, false);
  }

 private:
  std::unique_ptr<jobs::Job> job_;  ///< null: the job in memory
  bool is_late_ = false;
  std::optional<jobs::PlanDeployed> provisional_;  ///< the last one
};

}  // namespace perseus::live
