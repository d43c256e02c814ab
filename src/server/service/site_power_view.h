// What a site's limits allow and what its jobs draw, at one time.
//
// Units:   W of accelerators, except `metered`.
// Threads: plain values; site_power_view() io thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/jobs/site_document.h"
#include "server/service/job_cache.h"
#include "server/service/site_shares.h"

namespace perseus::service {

class PoweredJobs;

struct SiteJobView {
  std::string job, name;
  int domain = 0;
  double least_rate = 0;
  std::string state;             ///< "granted", "unlimited", or "fixed": its power does not follow grants
  std::string reason;            ///< why it is fixed, and why it is not in the domain that it names
  std::optional<Watts> granted;  ///< nothing: no limit applies
  Watts counted;                 ///< the most that its ranks may draw now
  double correction = 1;         ///< measured over planned power
  std::optional<Watts> reported;
};
struct SiteDomainView {
  std::string name, parent;
  std::optional<Watts> metered, limit;  ///< now: as metered, and what it leaves for accelerators; nothing: none
  Watts granted, counted, reported, missing;
  double price = 0;
  std::vector<TierGives> gives;
};
struct SitePowerView {
  double now_s = 0;
  bool allocates = false;  ///< this server; prices and missing watts are known there only
  std::vector<SiteDomainView> domains;
  std::vector<SiteJobView> jobs;
};

/// `shares`: of the last division by this server; prices and missing watts come from it.
SitePowerView site_power_view(const jobs::SiteDocument& document, PoweredJobs& powered_jobs, JobCache& jobs,
                              double now_s, const SiteShares& shares);

}  // namespace perseus::service
