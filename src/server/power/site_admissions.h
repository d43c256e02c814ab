// Answers requests to admit a job before it starts, and keeps the watts of those that are admitted.
//
// Problem: a job that starts counts as at maximum clock at once, and others need time to give the watts up.
// Input:   requests; the jobs under the site's limits; the reservations.
// Output:  admit(): admitted: its watts are stored as a reservation, and others give them up; `ready` as soon as they
//          have. waits, refused: see admission_decision.h. The same request again renews the reservation. One for
//          other watts replaces it if it is admitted; otherwise the reservation stays.
// Errors:  not_found: there is no site; an unknown job or profile. usage: a wrong name. unavailable: the jobs are still
//          being read. too_large: too many reservations. Those of the store.
// Cost:    a change of the reservations, unless nothing changes; admission_decision.h on the executor.
// Threads: io thread.
// Source:  docs/decisions/0056.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/live/job_cache.h"
#include "server/policies/deployment.h"
#include "server/power/admission_decision.h"
#include "server/power/site_power.h"
#include "server/work/executor.h"

namespace perseus::power {

struct Admission {
  enum class State : unsigned char { admitted, waits, refused };
  struct Missing {
    std::string domain;
    Watts watts;
  };
  State state = State::admitted;
  bool ready = false;
  bool reserved = false;          ///< false: nothing is stored
  jobs::Reservation reservation;  ///< what is asked for, or stored
  std::string domain;             ///< in which it counts
  std::vector<Missing> missing;   ///< refused: even without any other job
  std::optional<double> from_s;   ///< waits: the announced limits leave enough from then on
  /// Admitted: from then on the announced limits lack watts for it, and `missing` says how many.
  std::optional<double> short_from_s = std::nullopt;
  std::optional<Watts> replaced = std::nullopt;  ///< of an earlier reservation of that name, which this one replaces
};
std::string_view name_of(Admission::State state);

class SiteAdmissions {
 public:
  static constexpr std::size_t kMostReservations = 10'000;
  /// A reservation is not stored again while more than this part of its time is left.
  static constexpr double kRenewed = 0.9;

  SiteAdmissions(const plans::PlanningOptions& options, SitePower& site, live::JobCache& jobs, work::StoreAccess& store,
                 const Clock& clock, work::Executor& executor)
      : options_(options), site_(site), jobs_(jobs), store_(store), clock_(clock), executor_(executor) {}

  void admit(jobs::AdmissionRequest request, work::Done<Admission> done);
  /// not_found: there is no such reservation.
  void release(const std::string& job, work::Done<Ok> done, const std::string& by = {});

 private:
  using List = Reservations::List;
  /// What it can draw.
  struct KnownPower {
    std::shared_ptr<const policies::PowerChoices> choices;  ///< null: not known
    double correction = 1;                                  ///< of the job that it is like
    Watts accelerator;                                      ///< where they are not known, and the request does not say
  };
  /// A request on its way.
  struct Asked {
    jobs::AdmissionRequest request;
    Admission answer;
    KnownPower power;
    std::optional<FoundJobs> found;  ///< with the newcomer last, if it does not fit
    work::Done<Admission> done;
    bool is_new = false;  ///< it had no such reservation before
  };
  using AskedPtr = std::shared_ptr<Asked>;

  [[nodiscard]] Watts accelerator_power(const jobs::AdmissionRequest& request) const;
  void find_power(const jobs::AdmissionRequest& request, work::Done<KnownPower> done);
  void find_power_like(const jobs::AdmissionRequest& request, work::Done<KnownPower> done);
  void decide(const AskedPtr& asked);
  void decide_among(const AskedPtr& asked, List list, const work::Done<std::optional<List>>& then);
  void decided(const AskedPtr& asked);
  void explain(const AskedPtr& asked);
  void look_ahead(const AskedPtr& asked, FoundJobs found);
  [[nodiscard]] LaterCase later_case(const FoundJobs& found, const Asked& asked) const;
  void name_missing(const std::vector<MissingWatts>& missing, Admission& answer) const;
  /// With the job last, after what counts and the reservations before it.
  Result<FoundJobs> jobs_before(const jobs::Reservation& own);
  Result<FoundJobs> jobs_with(const List& list);

  const plans::PlanningOptions& options_;
  SitePower& site_;
  live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  work::Executor& executor_;
  std::optional<double> reading_since_s_;
};

}  // namespace perseus::power
