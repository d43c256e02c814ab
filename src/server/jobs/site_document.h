// The power limits of a site as a server keeps them: a tree of domains, limits over time, and which hosts are where.
//
// Input:   JSON, the body of PUT /v1/site; docs/openapi.json documents its members. Times are seconds since 1970.
// Output:  parse_site_document() accepts what format_site_document() writes. The description has no jobs.
// Errors:  usage: the first member that is wrong, its value and what is allowed.
// Cost:    linear; tier_of() O(ranks x rules).
// Threads: plain values, pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planning/model/site_description.h"
#include "planning/model/site_objective.h"
#include "server/jobs/job.h"

namespace perseus::jobs {

/// Hosts of that name, or whose names begin so, are in a domain.
struct HostRule {
  std::string host, prefix;  ///< one of them is empty
  int domain = 0;
};

/// The tier of a team's jobs that name none, and the most that its tokens may name; nothing: the site's, and 1. Jobs of
/// its tokens count in `domain` or in one inside it, whatever hosts their ranks name.
struct TeamTier {
  std::string name;  ///< of the team, or the id of a token without one
  std::optional<double> least_rate, priority;
  int domain = 0;
};

struct SiteDocument {
  model::SiteDescription site;
  model::SiteObjective objective = model::SiteObjective::slowdown;
  std::vector<HostRule> hosts;
  std::vector<TeamTier> teams;
  double least_rate = 0;   ///< of jobs that name none, as far as their team has none
  bool pacing = false;     ///< jobs may be slowed by waits, where that is their tier and their ranks can
  Seconds lease{15};       ///< see PowerBudget
  Seconds dwell{10};       ///< a grant rises this long after its last change at the earliest
  Seconds admission{600};  ///< how long watts are kept for a job that has not started
  /// Per domain: of an accelerator of a job in it, at maximum clock; no more than that of the domain around.
  std::vector<Watts> accelerator_power;
};

Result<SiteDocument> parse_site_document(std::string_view text, const std::string& name);
std::string format_site_document(const SiteDocument& document);
/// Of a formatted document, as an ETag: other documents have other tags.
std::string site_tag(std::string_view text);

/// What a job's tier is under these limits.
struct TierHere {
  int domain = 0;
  double least_rate = 0, priority = 1;
  std::string reason;  ///< why it is not what was asked for; empty: it is
};
/// Error usage: there is no domain of that name; empty is allowed.
Status check_domain(const SiteDocument& document, std::string_view name);
/// Its domain: the one that it names, if there is one of that name; otherwise the one around those hosts of its ranks
/// that a rule names; otherwise the site. Where a token of a job names the tier, hosts in domains come before its
/// domain, and its team's tier is the most. What an operator has set comes before all of it.
TierHere tier_of(const SiteDocument& document, const Job& job);
/// The domain of a name, which may be empty, and hosts.
int domain_of(const SiteDocument& document, const std::string& name, const std::vector<std::string>& hosts);

}  // namespace perseus::jobs
