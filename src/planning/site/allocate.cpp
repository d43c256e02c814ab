#include "planning/site/allocate.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "planning/site/fill.h"

namespace perseus::site {
namespace {

/// A well-mixed number (splitmix64): the same draws in every run.
std::uint64_t mixed(std::uint64_t n) {
  n = (n + 0x9e3779b97f4a7c15U);
  n = (n ^ n >> 30U) * 0xbf58476d1ce4e5b9U;
  n = (n ^ n >> 27U) * 0x94d049bb133111ebU;
  return n ^ n >> 31U;
}

}  // namespace

Allocator::Allocator(const model::Site& site, model::SiteObjective objective)
    : site_(site),
      objective_(objective),
      steps_(site, objective),
      order_(site.jobs.size()),
      begin_(site.domains.size()),
      end_(site.domains.size()),
      depth_(site.domains.size()),
      limits_w_(site.domains.size(), std::numeric_limits<double>::quiet_NaN()),
      price_(site.domains.size()),
      missing_w_(site.domains.size()) {
  const int domains = static_cast<int>(std::ssize(site.domains));
  std::vector<int> inside(domains), next(domains);
  for (const model::SiteJob& job : site.jobs) ++inside[job.domain];
  next = inside;  // of the jobs of a domain itself, which come before those of its children
  for (int d = domains - 1; d > 0; --d) inside[site.domains[d].parent] += inside[d];
  for (int d = 0; d < domains; ++d) {
    if (d > 0) {
      const int parent = site.domains[d].parent;
      depth_[d] = depth_[parent] + 1;
      begin_[d] = next[parent];
      next[parent] += inside[d];
    }
    end_[d] = begin_[d] + inside[d];
    next[d] += begin_[d];
  }
  std::vector<int> place = begin_;
  for (int j = 0; j < std::ssize(site.jobs); ++j) order_[place[site.jobs[j].domain]++] = j;
  std::vector<Share> full;
  for (const int job : order_) full.push_back({steps_.last(job), 0});
  level_.assign(*std::ranges::max_element(depth_) + 2, full);
}

model::Allocation Allocator::allocate(std::span<const Watts> limits) {
  assert(limits.size() == site_.domains.size());
  const int domains = static_cast<int>(std::ssize(site_.domains));
  std::vector<bool> changed(domains);
  for (int d = domains - 1; d >= 0; --d) {
    const double limit_w = limits[d].value();
    if (limits_w_[d] != limit_w) changed[d] = true;
    if (!changed[d]) continue;
    settle(d, limit_w);
    limits_w_[d] = limit_w;
    if (d > 0) changed[site_.domains[d].parent] = true;
  }
  model::Allocation allocation;
  allocation.chosen.resize(site_.jobs.size());
  for (std::size_t k = 0; k < order_.size(); ++k) allocation.chosen[order_[k]] = steps_.point(level_[0][k].vertex);
  if (objective_ != model::SiteObjective::max_min) fill(site_, objective_, limits, allocation.chosen);
  std::vector<double> inherited(domains);  // the greatest price of the domains around a job
  for (int d = 0; d < domains; ++d) {
    const double outer = d > 0 ? inherited[site_.domains[d].parent] : 0;
    inherited[d] = std::max(outer, price_[d]);
    allocation.price.push_back(std::isinf(inherited[d]) ? 0 : inherited[d] - outer);
    allocation.missing.emplace_back(missing_w_[d]);
  }
  allocation.value = value(allocation.chosen);
  allocation.bound = bound_of(limits, allocation);
  return allocation;
}

double Allocator::power_w(const Share& upper, int vertex) const {
  return vertex <= upper.vertex ? steps_.power_w(vertex) : power_w(upper);
}

void Allocator::settle(int domain, double limit_w) {
  const int begin = begin_[domain], end = end_[domain], depth = depth_[domain];
  const std::span<const Share> upper(level_[depth + 1].data() + begin, end - begin);
  const std::span<Share> shares(level_[depth].data() + begin, end - begin);
  double wanted_w = 0, floors_w = 0;
  for (std::size_t k = 0; k < upper.size(); ++k) {
    wanted_w += power_w(upper[k]);
    floors_w += steps_.power_w(steps_.floor(order_[begin + k]));
  }
  missing_w_[domain] = floors_w > kRoundingError * limit_w ? floors_w - limit_w : 0;
  price_[domain] = 0;
  if (wanted_w <= kRoundingError * limit_w) {
    std::ranges::copy(upper, shares.begin());
  } else {
    divide(domain, kRoundingError * limit_w, upper, shares);
  }
}

void Allocator::divide(int domain, double limit_w, std::span<const Share> upper, std::span<Share> shares) {
  const int* const jobs = order_.data() + begin_[domain];
  std::vector<Open> open;
  double given_w = 0;
  for (int k = 0; k < std::ssize(upper); ++k) {
    const int low = steps_.first(jobs[k]), high = upper[k].vertex + (upper[k].extra_w > 0 ? 1 : 0);
    shares[k] = {low, 0};
    given_w += steps_.power_w(low);
    if (low < high) open.push_back({k, low, high});
  }
  if (given_w > limit_w) {  // all jobs wait: a watt more inside brings nothing
    price_[domain] = std::numeric_limits<double>::infinity();
    return;
  }
  while (!open.empty()) {
    const double pivot = pivot_of(open);
    double above_w = given_w, with_ties_w = given_w;
    std::vector<Open> ties;
    ties.reserve(open.size());
    for (const Open& o : open) {
      const int above = steps_.first_at_most(pivot, o.low, o.high);
      const int below = steps_.first_below(pivot, above, o.high);
      const double low_w = power_w(upper[o.job], o.low);
      above_w += power_w(upper[o.job], above) - low_w;
      with_ties_w += power_w(upper[o.job], below) - low_w;
      ties.push_back({o.job, above, below});
    }
    if (above_w > limit_w) {
      for (std::size_t k = 0; k < open.size(); ++k) open[k].high = ties[k].low;
    } else if (with_ties_w <= limit_w) {
      for (std::size_t k = 0; k < open.size(); ++k) open[k].low = shares[open[k].job].vertex = ties[k].high;
      given_w = with_ties_w;
    } else {
      price_[domain] = objective_ == model::SiteObjective::max_min ? 0 : pivot;
      give_ties(ties, limit_w - above_w, upper, shares);
      break;
    }
    std::erase_if(open, [](const Open& o) { return o.low >= o.high; });
  }
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (shares[k].vertex > upper[k].vertex) shares[k] = upper[k];
  }
}

void Allocator::give_ties(std::vector<Open>& ties, double left_w, std::span<const Share> upper,
                          std::span<Share> shares) {
  for (const Open& tie : ties) shares[tie.job] = {tie.low, 0};
  for (const Open& tie : ties) {
    for (int v = tie.low; v < tie.high; ++v) {
      const double step_w = power_w(upper[tie.job], v + 1) - power_w(upper[tie.job], v);
      if (step_w > left_w) {
        if (objective_ != model::SiteObjective::max_min) shares[tie.job].extra_w = left_w;
        return;
      }
      left_w -= step_w;
      shares[tie.job].vertex = v + 1;
    }
  }
}

double Allocator::pivot_of(const std::vector<Open>& open) {
  std::uint64_t steps = 0;
  for (const Open& o : open) steps += o.high - o.low;
  auto drawn = static_cast<std::int64_t>(mixed(draws_++) % steps);
  for (const Open& o : open) {
    if (drawn < o.high - o.low) return steps_.urgency(o.low + static_cast<int>(drawn));
    drawn -= o.high - o.low;
  }
  return 0;  // not reached
}

double Allocator::value(const std::vector<int>& chosen) const {
  double sum = 0, least = std::numeric_limits<double>::infinity();
  for (int j = 0; j < std::ssize(site_.jobs); ++j) {
    const model::SiteJob& job = site_.jobs[j];
    const double value = model::value_of(objective_, job, job.curve.points[chosen[j]].rate);
    sum += value;
    least = std::min(least, value);
  }
  return objective_ == model::SiteObjective::max_min ? least : sum;
}

double Allocator::bound_of(std::span<const Watts> limits, const model::Allocation& allocation) const {
  if (std::ranges::any_of(missing_w_, [](double missing_w) { return missing_w > 0; })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (objective_ == model::SiteObjective::max_min) return allocation.value;
  std::vector<double> price(site_.domains.size());
  double bound = 0;
  for (int d = 0; d < std::ssize(site_.domains); ++d) {
    if (allocation.price[d] > 0) bound += allocation.price[d] * limits[d].value();
    price[d] = allocation.price[d] + (d > 0 ? price[site_.domains[d].parent] : 0);
  }
  for (int j = 0; j < std::ssize(site_.jobs); ++j) {
    const model::SiteJob& job = site_.jobs[j];
    const int best = steps_.first_at_most(price[job.domain], steps_.floor(j), steps_.last(j));
    bound += model::value_of(objective_, job, job.curve.points[steps_.point(best)].rate) -
             price[job.domain] * steps_.power_w(best);
  }
  return bound;
}

}  // namespace perseus::site
