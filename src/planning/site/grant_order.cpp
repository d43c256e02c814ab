#include "planning/site/grant_order.h"

#include <algorithm>

namespace perseus::site {
namespace {

/// Sums of the same watts in another order differ in their last digits.
constexpr double kSameSum = 1 + 1e-9;

}  // namespace

std::vector<Watts> sums_of_domains(std::span<const model::PowerDomain> domains, std::span<const int> domain_of,
                                   std::span<const Watts> of_job) {
  std::vector<Watts> sums(domains.size());
  for (std::size_t j = 0; j < of_job.size(); ++j) {
    for (int d = domain_of[j]; d >= 0; d = domains[d].parent) sums[d] += of_job[j];
  }
  return sums;
}

std::vector<Watts> next_grants(std::span<const model::PowerDomain> domains, std::span<const Watts> limits,
                               std::span<const GrantedPower> jobs) {
  std::vector<Watts> next, counted;
  std::vector<int> domain_of;
  for (const GrantedPower& job : jobs) {
    next.push_back(std::min(job.granted, job.wanted));
    counted.push_back(std::max(job.counted, next.back()));
    domain_of.push_back(job.domain);
  }
  std::vector<Watts> sums = sums_of_domains(domains, domain_of, counted);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const GrantedPower& job = jobs[j];
    if (job.wanted <= job.granted || !job.may_rise) continue;
    const Watts more = std::max(counted[j], job.wanted) - counted[j];
    bool fits = true;
    for (int d = job.domain; d >= 0; d = domains[d].parent) fits &= sums[d] + more <= kSameSum * limits[d];
    if (!fits) continue;
    for (int d = job.domain; d >= 0; d = domains[d].parent) sums[d] += more;
    next[j] = job.wanted;
  }
  return next;
}

}  // namespace perseus::site
