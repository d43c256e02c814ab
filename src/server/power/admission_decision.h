// Whether one more job fits under the limits of a site, beside the jobs that run and those that are admitted.
//
// Problem: a job that is about to start counts as at maximum clock. The others can give watts up, each down to its
//          least rate; if that does not suffice, the job should not start yet.
// Input:   the site as the server divides its watts, with the newcomer as its last job, which no grant controls.
// Output:  missing_for(): what the domains around the newcomer lack, as shares_of() says; empty: it fits. fits_now():
//          everything that counts now, with the newcomer and the guards of windows, is within the limits around it.
//          later_fit(): where it does not fit, the first time within kHorizon_s from which the announced limits leave
//          enough for it beside the same jobs; `never`: none of these limits leaves enough even without any other job,
//          and what is missing then. later_shortage(): where it fits, the first fall of these limits
//          that leaves too little for it.
// Units:   W of accelerators, as drawn.
// Errors:  none.
// Cost:    a division (site_shares.h); later_fit() and later_shortage(): up to two per step of the announced limits.
// Threads: pure functions.
// Source:  docs/decisions/0056.
#pragma once

#include <optional>
#include <vector>

#include "server/jobs/site_document.h"
#include "server/power/site_shares.h"

namespace perseus::power {

struct MissingWatts {
  int domain = 0;
  Watts watts;
};

std::vector<MissingWatts> missing_for(const PoweredSite& site);
bool fits_now(const PoweredSite& site);

/// What later limits depend on.
struct LaterCase {
  jobs::SiteDocument document;
  PoweredSite site;
  std::vector<int> accelerators;  ///< per domain, of the jobs directly in it and of the newcomer
  int newcomer = 0;               ///< accelerators of it alone
  std::vector<double> meter_factors;
  double now_s = 0;
};
struct LaterFit {
  static constexpr double kHorizon_s = 7 * 86400;
  std::optional<double> from_s;
  bool never = false;
  std::vector<MissingWatts> alone;  ///< with the limits of the step that lacks least; only if never
};
LaterFit later_fit(LaterCase given);

struct LaterShortage {
  double from_s = 0;
  std::vector<MissingWatts> missing;  ///< as missing_for(), with the newcomer
};
/// Of a newcomer that fits now, and may have choices: the first time within kHorizon_s from which the announced limits
/// lack watts for it.
std::optional<LaterShortage> later_shortage(LaterCase given);

}  // namespace perseus::power
