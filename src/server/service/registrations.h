// Registers jobs and their ranks.
//
// Problem: a client that repeats a request must not create a second job, at any server.
// Input:   requests, checked by server/live/registration_checks.h.
// Output:  the job with the profiles that it names (server/plans/profile_uploads.h); the rank with its epoch, and its
//          plan if it asks for it.
// Errors:  those of the checks; invalid_input: a different request used the idempotency key.
// Cost:    O(1) per rank; profiles are read and completed on the executor.
// Threads: io thread.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "server/live/job_access.h"
#include "server/plans/profile_uploads.h"
#include "server/plans/waiting_ranks.h"
#include "server/service/service_options.h"
#include "server/views/job_list.h"

namespace perseus::service {

class Registrations {
 public:
  /// `opened_s`: when this server began to listen for ranks.
  Registrations(const ServiceOptions& options, double opened_s, live::JobCache& jobs, work::StoreAccess& store,
                const Clock& clock, work::Executor& executor, live::JobAccess& access, plans::WaitingRanks& waiting)
      : options_(options),
        opened_s_(opened_s),
        jobs_(jobs),
        store_(store),
        clock_(clock),
        executor_(executor),
        access_(access),
        waiting_(waiting) {}

  void register_job(jobs::RegisterJob request, work::Done<jobs::RegisterJobAnswer> done);
  /// The job that the same request has already created under its key. not_found: none; invalid_input: a different
  /// request used the key.
  void registered_before(const jobs::RegisterJob& request, work::Done<jobs::RegisterJobAnswer> done);
  void register_rank(jobs::RegisterRank request, work::Done<jobs::RegisterRankAnswer> done);
  /// Jobs of the token that are neither in the list nor rejected yet.
  [[nodiscard]] views::JobList::Owned under_way(const std::string& token) const;

 private:
  void make_job(const std::string& id, jobs::RegisterJob request, work::Done<jobs::RegisterJobAnswer> done);
  void create_job(const std::string& id, const jobs::RegisterJob& request, live::Decision decision,
                  const work::Done<jobs::RegisterJobAnswer>& done);
  /// The answer to its registration.
  [[nodiscard]] jobs::RegisterJobAnswer registered(const std::string& id);
  /// Wraps `done`; until it is called, the job counts for its token.
  work::Done<jobs::RegisterJobAnswer> counted_as_owned(const jobs::RegisterJob& request,
                                                       work::Done<jobs::RegisterJobAnswer> done);
  Result<live::Decision> decide_registration(const jobs::Job& given, const jobs::RegisterRank& request);
  void rank_registered(const std::string& id, int rank, bool is_new, bool with_plan,
                       const work::Done<jobs::RegisterRankAnswer>& done);
  /// Time since the rank's last call to this server; nothing: shorter than its lease, or the rank waits for a plan.
  [[nodiscard]] std::optional<double> silence_of(const live::LiveJob& live, int rank) const;

  const ServiceOptions& options_;
  double opened_s_;
  live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  work::Executor& executor_;
  live::JobAccess& access_;
  plans::WaitingRanks& waiting_;
  std::unordered_map<std::string, views::JobList::Owned> under_way_;  ///< by token
};

}  // namespace perseus::service
