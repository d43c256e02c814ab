// Finds the job of a request, and the rank that calls.
//
// Input:   ids in requests.
// Output:  `then` gets the job: at once if this server has it in memory, otherwise after reading it. A request to
//          change a job counts as activity of the job (LiveJob::last_seen_s), a read does not.
// Errors:  not_found: no such job or rank; unavailable: the store, or a job that a later version of Perseus changed;
//          internal: a damaged job.
// Cost:    a lookup; reading a job: see JobCache.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/live/job_cache.h"

namespace perseus::live {

class JobAccess {
 public:
  JobAccess(JobCache& jobs, const Clock& clock) : jobs_(jobs), clock_(clock) {}

  /// JobCache::with() for a request to change the job.
  template <class Then>
  void with(const std::string& id, Then then) {
    jobs_.with(id, [this, id, then = std::move(then)](const Result<LiveJob*>& live) mutable {
      if (live && (*live)->job.unknown_events > 0) return then(Result<LiveJob*>(later_version(id)));
      if (live) (*live)->last_seen_s = clock_.now_s();
      then(live);
    });
  }
  /// JobCache::execute() for a request.
  void execute(const std::string& id, JobCommand command);

  /// Calls `then` with the job once this server knows the rank and the plan of that version: at once if it does,
  /// whatever the state of the store. Otherwise it reads the job first.
  template <class Then>
  void with_rank(const std::string& id, int rank, std::int64_t version, Then then) {
    if (LiveJob* const live = known(id, rank, version)) return then(Result<LiveJob*>(live));
    find_rank(id, rank, version, std::move(then));
  }
  /// The job in memory if this server knows the rank and the plan of that version, otherwise null.
  LiveJob* known(const std::string& id, int rank, std::int64_t version);
  /// Call it where known() is null.
  void find_rank(const std::string& id, int rank, std::int64_t version, JobCache::Found then);
  /// True if the job had expired and is being revived; the rank must ask again (job_is_revived()).
  bool revive_if_expired(LiveJob& live);

  /// Answers with the result of `make` for the job as clients may see it, see ShownJob. A job in memory
  /// is shown also while the store does not answer.
  template <class T, class Make>
  void show(const std::string& id, Make make, work::Done<T> done) {
    look(id, [make = std::move(make), done = std::move(done)](const Result<LiveJob*>& live) {
      if (!live) return done(live.error());
      // The callback changes the job itself.
      done([&]() -> Result<T> {
        const AsShown as_shown(**live, (*live)->shown.to_clients());
        return make(**live);
      }());
    });
  }

 private:
  void look(const std::string& id, JobCache::Found then);

  JobCache& jobs_;
  const Clock& clock_;
};

/// For a rank that asks again, including one whose client has given up on a job that is over.
Error job_is_revived(const std::string& job);
/// For a change of a job that is over.
Error job_is_over(const jobs::Job& job);

/// A command that a job that is over rejects.
JobCommand command_for_live_job(std::function<Result<std::vector<jobs::EventBody>>(const jobs::Job&)> decide,
                                work::Done<Ok> done);

}  // namespace perseus::live
