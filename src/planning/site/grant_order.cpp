#include "planning/site/grant_order.h"

#include <algorithm>

namespace perseus::site {
namespace {

/// Sums of the same watts in another order differ in their last digits.
constexpr double kSameSum = 1 + 1e-9;

/// The guards of the domains that have a window, while grants change.
class Guards {
 public:
  Guards(std::span<const model::PowerDomain> domains, const GrantWindows& windows, std::span<const GrantedPower> jobs)
      : domains_(domains), windows_(windows), sums_(windows.of_domain.size()) {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      for_each_around(jobs[j].domain, [&](int d, Seconds window) { sums_[d] += windows_.swing_of(j, false, window); });
    }
  }

  /// Of the domain if that job rises; 0 W without a window.
  [[nodiscard]] Watts with(std::size_t job, int domain) const {
    if (sums_.empty() || !windows_.of_domain[domain]) return Watts(0);
    return window_guard(exchanged(job, domain, *windows_.of_domain[domain]));
  }
  void rises(const GrantedPower& power, std::size_t job) {
    for_each_around(power.domain, [&](int d, Seconds window) { sums_[d] = exchanged(job, d, window); });
  }

 private:
  template <class Visit>
  void for_each_around(int domain, Visit visit) const {
    for (int d = domain; d >= 0 && !sums_.empty(); d = domains_[d].parent) {
      if (windows_.of_domain[d]) visit(d, *windows_.of_domain[d]);
    }
  }
  [[nodiscard]] SwingSum exchanged(std::size_t job, int domain, Seconds window) const {
    const SwingSum before = windows_.swing_of(job, false, window);
    SwingSum sum = sums_[domain];
    sum.above -= before.above;
    sum.variance_w2 -= before.variance_w2;
    sum += windows_.swing_of(job, true, window);
    return sum;
  }

  std::span<const model::PowerDomain> domains_;
  const GrantWindows& windows_;
  std::vector<SwingSum> sums_;  ///< per domain; empty: no domain has a window
};

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
                               std::span<const GrantedPower> jobs, const GrantWindows& windows) {
  std::vector<Watts> next, counted;
  std::vector<int> domain_of;
  for (const GrantedPower& job : jobs) {
    next.push_back(std::min(job.granted, job.wanted));
    counted.push_back(std::max(job.counted, next.back()));
    domain_of.push_back(job.domain);
  }
  std::vector<Watts> sums = sums_of_domains(domains, domain_of, counted);
  Guards guards(domains, windows, jobs);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const GrantedPower& job = jobs[j];
    if (job.wanted <= job.granted || !job.may_rise) continue;
    const Watts more = std::max(counted[j], job.wanted) - counted[j];
    bool fits = true;
    for (int d = job.domain; d >= 0; d = domains[d].parent) {
      fits &= sums[d] + more + guards.with(j, d) <= kSameSum * limits[d];
    }
    if (!fits) continue;
    guards.rises(job, j);
    for (int d = job.domain; d >= 0; d = domains[d].parent) sums[d] += more;
    next[j] = job.wanted;
  }
  return next;
}

}  // namespace perseus::site
