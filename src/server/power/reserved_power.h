// What reservations count as beside the jobs that run already.
//
// Problem: a reservation holds the watts of a job until it has started; from then on the job itself counts. A job that
//          starts again has its former run, which counts until it has ended.
// Input:   the reservations, and the running jobs with what they count as.
// Output:  per reservation, in their order: its domain, and the watts and accelerators that jobs of its name and team
//          in its domain do not count for already. `used`: all ranks of such a job have registered, one of them since
//          it got its watts.
// Errors:  none.
// Cost:    O(log reservations) per job.
// Threads: one.
// Source:  docs/decisions/0056.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "server/jobs/site_admission.h"

namespace perseus::power {

struct ReservedPower {
  int domain = 0;
  Watts counted;
  int accelerators = 0;
  bool used = false;
  std::string moved = {};  ///< a job that has used it in another domain
};

class ReservedPowers {
 public:
  ReservedPowers(const jobs::SiteDocument& document, std::span<const jobs::Reservation> reservations);

  /// False: watts are reserved under its name, but not for its team.
  bool take(const jobs::Job& job, int domain, Watts counted);
  [[nodiscard]] const std::vector<ReservedPower>& all() const { return all_; }

 private:
  std::span<const jobs::Reservation> reservations_;
  std::multimap<std::string, std::size_t> of_name_;
  std::vector<ReservedPower> all_;
};

}  // namespace perseus::power
