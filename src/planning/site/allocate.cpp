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

/// Prices to try: first a guess, then where a straight line through the watts of the last two says that the limit is.
/// Where that does not end soon, or leaves what is not decided yet, steps drawn at random: one decides half of the rest
/// in the mean.
class PriceSearch {
 public:
  /// `guess`: a price at which the jobs wanted `over_w` more than the limit; none: 0.
  PriceSearch(double guess, double over_w, double limit_w) : limit_w_(limit_w) {
    if (guess > 0 && std::isfinite(guess)) next_ = guess * usual_factor(over_w);
  }

  template <class Draw>
  double next(Draw draw) {
    const bool is_open = next_ > too_low_ && next_ < too_high_ && tries_ < kMostTries;
    return is_open ? next_ : draw();
  }
  /// At that price the jobs want so many watts more than the limit. At most 0: it is too high.
  void tried(double price, double over_w) {
    ++tries_;
    (over_w > 0 ? too_low_ : too_high_) = price;
    next_ = tries_ == 1 ? price * usual_factor(over_w) : price - over_w * (price - price_) / (over_w - over_w_);
    price_ = price;
    over_w_ = over_w;
  }

 private:
  /// 4 % of the price for 1 % of the watts.
  [[nodiscard]] double usual_factor(double over_w) const { return std::max(0.25, 1 + 4 * over_w / limit_w_); }

  static constexpr int kMostTries = 10;
  double limit_w_, next_ = std::numeric_limits<double>::quiet_NaN();
  double price_ = 0, over_w_ = 0;  ///< the last one tried
  double too_low_ = -std::numeric_limits<double>::infinity(), too_high_ = std::numeric_limits<double>::infinity();
  int tries_ = 0;
};

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
  for (const int job : order_) {
    full.push_back({steps_.last(job), 0});
    floors_w_.push_back(steps_.power_w(job, steps_.floor(job)));
  }
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
  for (std::size_t k = 0; k < order_.size(); ++k)
    allocation.chosen[order_[k]] = steps_.point(order_[k], level_[0][k].vertex);
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

double Allocator::power_w(int job, const Share& upper, int vertex) const {
  return vertex <= upper.vertex ? steps_.power_w(job, vertex) : power_w(job, upper);
}

void Allocator::settle(int domain, double limit_w) {
  const int begin = begin_[domain], end = end_[domain], depth = depth_[domain];
  const std::span<const Share> upper(level_[depth + 1].data() + begin, end - begin);
  const std::span<Share> shares(level_[depth].data() + begin, end - begin);
  double wanted_w = 0, floors_w = 0;
  for (std::size_t k = 0; k < upper.size(); ++k) {
    wanted_w += power_w(order_[begin + k], upper[k]);
    floors_w += floors_w_[begin + k];
  }
  missing_w_[domain] = floors_w > kRoundingError * limit_w ? floors_w - limit_w : 0;
  if (wanted_w <= kRoundingError * limit_w) {
    price_[domain] = 0;
    std::ranges::copy(upper, shares.begin());
  } else {
    divide(domain, kRoundingError * limit_w, upper, shares);
  }
}

void Allocator::divide(int domain, double limit_w, std::span<const Share> upper, std::span<Share> shares) {
  const int* const jobs = order_.data() + begin_[domain];
  std::vector<Open> open, ties;
  open.reserve(upper.size());
  double given_w = 0;
  for (int k = 0; k < std::ssize(upper); ++k) {
    const double least_w = steps_.power_w(jobs[k], 0);
    const int high = upper[k].vertex + (upper[k].extra_w > 0 ? 1 : 0);
    if (high > 0) open.push_back({k, 0, high, least_w});
    shares[k] = {0, 0};
    given_w += least_w;
  }
  PriceSearch prices = price_[domain] > 0 ? PriceSearch(price_[domain], limits_w_[domain] - limit_w, limit_w)
                                          : PriceSearch(last_price_, 0, limit_w);
  price_[domain] = 0;
  if (given_w > limit_w) {  // all jobs wait: a watt more inside brings nothing
    price_[domain] = std::numeric_limits<double>::infinity();
    return;
  }
  while (!open.empty()) {
    const double price = prices.next([&] { return drawn_price(jobs, open); });
    const double next_below = std::nextafter(price, -std::numeric_limits<double>::infinity());
    double above_w = given_w, with_ties_w = given_w;
    ties.clear();
    for (const Open& o : open) {
      const int job = jobs[o.job];
      const int above = steps_.first_at_most(job, price, o.low, o.high);
      const bool is_tied = above < o.high && steps_.urgency(job, above) == price;
      const int below = is_tied ? steps_.first_at_most(job, next_below, above, o.high) : above;
      const double to_w = power_w(job, upper[o.job], above);
      const double ties_w = below == above ? to_w : power_w(job, upper[o.job], below);
      above_w += to_w - o.low_w;
      with_ties_w += ties_w - o.low_w;
      ties.push_back({o.job, above, below, ties_w});
    }
    if (above_w > limit_w) {
      prices.tried(price, above_w - limit_w);
      for (std::size_t k = 0; k < open.size(); ++k) open[k].high = ties[k].low;
    } else if (with_ties_w <= limit_w) {
      prices.tried(price, with_ties_w - limit_w);
      for (std::size_t k = 0; k < open.size(); ++k) {
        Open& o = open[k];
        o.low = shares[o.job].vertex = ties[k].high;
        o.low_w = ties[k].low_w;
      }
      given_w = with_ties_w;
    } else {
      price_[domain] = objective_ == model::SiteObjective::max_min ? 0 : price;
      give_ties(jobs, ties, limit_w - above_w, upper, shares);
      break;
    }
    std::erase_if(open, [](const Open& o) { return o.low >= o.high; });
  }
  if (price_[domain] > 0) last_price_ = price_[domain];
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (shares[k].vertex > upper[k].vertex) shares[k] = upper[k];
  }
}

void Allocator::give_ties(const int* jobs, const std::vector<Open>& ties, double left_w, std::span<const Share> upper,
                          std::span<Share> shares) {
  for (const Open& tie : ties) shares[tie.job] = {tie.low, 0};
  for (const Open& tie : ties) {
    const int job = jobs[tie.job];
    for (int v = tie.low; v < tie.high; ++v) {
      const double step_w = power_w(job, upper[tie.job], v + 1) - power_w(job, upper[tie.job], v);
      if (step_w > left_w) {
        if (objective_ != model::SiteObjective::max_min) shares[tie.job].extra_w = left_w;
        return;
      }
      left_w -= step_w;
      shares[tie.job].vertex = v + 1;
    }
  }
}

std::int64_t Allocator::steps_in(const std::vector<Open>& open) {
  std::int64_t steps = 0;
  for (const Open& o : open) steps += o.high - o.low;
  return steps;
}

double Allocator::drawn_price(const int* jobs, const std::vector<Open>& open) {
  auto drawn = static_cast<std::int64_t>(mixed(draws_++) % static_cast<std::uint64_t>(steps_in(open)));
  for (const Open& o : open) {
    if (drawn < o.high - o.low) return steps_.urgency(jobs[o.job], o.low + static_cast<int>(drawn));
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
  for (const int j : order_) {
    const model::SiteJob& job = site_.jobs[j];
    const double watt = price[job.domain];
    const int best = steps_.first_at_most(j, watt, steps_.floor(j), steps_.last(j));
    const model::PowerPoint& point = job.curve.points[steps_.point(j, best)];
    bound += model::value_of(objective_, job, point.rate) - watt * point.power.value();
  }
  return bound;
}

}  // namespace perseus::site
