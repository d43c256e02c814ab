// The order in which the power grants of a site's jobs change, such that no limit is exceeded while they change.
//
// Problem: a job obeys a grant only some time after it was sent, and the sender learns even later that it does. So a
//          job counts as the greatest of the grants that its ranks may still follow, and watts that one job gives up
//          are granted to another one only when they no longer count.
// Input:   the domains of a site and a limit for each; per job what it counts as, its last grant, and its share of the
//          allocation. Where a meter averages over a window, how a job swings while it follows any of its grants.
// Output:  per job its next grant: a smaller share at once; a greater one if it fits beside everything that counts,
//          in the order of the jobs, otherwise the last grant. In a domain with a window, it fits beside the guard as
//          well (window_guard.h).
// Errors:  none. Where more counts than a limit allows, nothing rises in that domain.
// Cost:    O(jobs x levels).
// Threads: pure functions.
// Source:  docs/decisions/0052.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planning/model/site.h"
#include "planning/site/window_guard.h"

namespace perseus::site {

/// The power of a job while its grant changes.
struct GrantedPower {
  int domain = 0;
  Watts counted;         ///< the most that it may draw now, whichever of its grants its ranks follow
  Watts granted;         ///< its last grant; without a grant: its power at maximum clock
  Watts wanted;          ///< its share of the allocation
  bool may_rise = true;  ///< false: its grant changed a short time ago
};

/// Windows over which meters average.
struct GrantWindows {
  std::span<const std::optional<Seconds>> of_domain{};  ///< empty: no domain has one
  /// What a job adds to the sums of a domain with that window while it follows any of its grants; `rises`: its share
  /// too.
  std::function<SwingSum(std::size_t job, bool rises, Seconds window)> swing_of{};
};

std::vector<Watts> next_grants(std::span<const model::PowerDomain> domains, std::span<const Watts> limits,
                               std::span<const GrantedPower> jobs, const GrantWindows& windows = {});

/// Per domain the sum over the jobs in it and in the domains inside.
std::vector<Watts> sums_of_domains(std::span<const model::PowerDomain> domains, std::span<const int> domain_of,
                                   std::span<const Watts> of_job);

}  // namespace perseus::site
