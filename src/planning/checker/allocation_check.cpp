#include "planning/checker/allocation_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace perseus::checker {
namespace {

using model::SiteObjective;

constexpr double kSameSum = 1e-9;

class AllocationCheck {
 public:
  AllocationCheck(const model::Site& site, std::span<const Watts> limits, SiteObjective objective,
                  const model::Allocation& allocation)
      : site_(site), limits_(limits), objective_(objective), allocation_(allocation) {}

  std::optional<std::string> run() {
    if (allocation_.chosen.size() != site_.jobs.size() || allocation_.price.size() != site_.domains.size()) {
      return "not as many points as jobs, or prices as domains";
    }
    for (std::size_t j = 0; j < site_.jobs.size(); ++j) {
      const int chosen = allocation_.chosen[j];
      if (chosen < 0 || chosen >= std::ssize(site_.jobs[j].curve.points)) {
        return fmt::format("job '{}' has point {}", site_.jobs[j].name, chosen);
      }
    }
    for (const auto check : {&AllocationCheck::limits, &AllocationCheck::floors, &AllocationCheck::bound}) {
      if (auto wrong = (this->*check)()) return wrong;
    }
    return std::nullopt;
  }

 private:
  using Wrong = std::optional<std::string>;

  [[nodiscard]] bool is_within(int domain, int outer) const {
    while (domain > outer) domain = site_.domains[domain].parent;
    return domain == outer;
  }
  [[nodiscard]] bool floors_fit() const {
    return std::ranges::none_of(allocation_.missing, [](Watts missing) { return missing > Watts(0); });
  }
  /// Accepted by the job: the least power at or above its least rate, or its last point.
  [[nodiscard]] static const model::PowerPoint& floor_of(const model::SiteJob& job) {
    for (const model::PowerPoint& point : job.curve.points) {
      if (point.rate > 0 && point.rate >= job.least_rate * (1 - 1e-12)) return point;
    }
    return job.curve.points.back();
  }

  Wrong limits() {
    for (int d = 0; d < std::ssize(site_.domains); ++d) {
      double used_w = 0, floors_w = 0, waiting_w = 0;
      for (std::size_t j = 0; j < site_.jobs.size(); ++j) {
        const model::SiteJob& job = site_.jobs[j];
        if (!is_within(job.domain, d)) continue;
        used_w += job.curve.points[allocation_.chosen[j]].power.value();
        floors_w += floor_of(job).power.value();
        waiting_w += job.curve.points.front().power.value();
      }
      const double limit_w = limits_[d].value() * (1 + kSameSum),
                   missing_w = std::max(0.0, floors_w - limits_[d].value());
      if (used_w > std::max(limit_w, waiting_w * (1 + kSameSum))) {
        return fmt::format("domain '{}' uses {} W; its limit is {} W", site_.domains[d].name, used_w, limit_w);
      }
      if (std::abs(allocation_.missing[d].value() - missing_w) > kSameSum * (1 + floors_w)) {
        return fmt::format("domain '{}' lacks {} W for its floors, not {} W", site_.domains[d].name, missing_w,
                           allocation_.missing[d].value());
      }
    }
    return std::nullopt;
  }

  Wrong floors() {
    if (!floors_fit()) return std::nullopt;
    for (std::size_t j = 0; j < site_.jobs.size(); ++j) {
      const model::SiteJob& job = site_.jobs[j];
      const double rate = job.curve.points[allocation_.chosen[j]].rate;
      if (rate < floor_of(job).rate) return fmt::format("job '{}' has rate {}, below its floor", job.name, rate);
    }
    return std::nullopt;
  }

  [[nodiscard]] double value_at(const model::SiteJob& job, double rate) const {
    if (objective_ == SiteObjective::max_min) return rate;
    return objective_ == SiteObjective::throughput ? job.weight * rate : job.weight * (-1 / rate);
  }

  Wrong bound() {
    double value = objective_ == SiteObjective::max_min ? 1 : 0, bound = 0, size = 0;
    std::vector<double> price(site_.domains.size());
    for (std::size_t d = 0; d < site_.domains.size(); ++d) {
      if (allocation_.price[d] < 0) return fmt::format("domain '{}' has a negative price", site_.domains[d].name);
      price[d] = allocation_.price[d] + (d > 0 ? price[site_.domains[d].parent] : 0);
      if (allocation_.price[d] > 0) bound += allocation_.price[d] * limits_[d].value();
    }
    for (std::size_t j = 0; j < site_.jobs.size(); ++j) {
      const model::SiteJob& job = site_.jobs[j];
      const double own = value_at(job, job.curve.points[allocation_.chosen[j]].rate);
      value = objective_ == SiteObjective::max_min ? std::min(value, own) : value + own;
      double best = -std::numeric_limits<double>::infinity();
      for (const model::PowerPoint& point : job.curve.points) {
        if (point.rate < floor_of(job).rate) continue;
        best = std::max(best, value_at(job, point.rate) - price[job.domain] * point.power.value());
      }
      bound += best;
      size += std::abs(own) + std::abs(best);
    }
    if (!(std::abs(allocation_.value - value) <= kSameSum * size) && std::isfinite(value)) {
      return fmt::format("the value is {}, not {}", value, allocation_.value);
    }
    if (!floors_fit()) return std::nullopt;
    if (objective_ == SiteObjective::max_min) return least_rate();
    if (!(std::abs(allocation_.bound - bound) <= kSameSum * size)) {
      return fmt::format("the prices prove a bound of {}, not {}", bound, allocation_.bound);
    }
    return std::nullopt;
  }

  /// Some limit forbids that every job exceeds the least rate.
  Wrong least_rate() {
    for (int d = 0; d < std::ssize(site_.domains); ++d) {
      double needed_w = 0;
      bool can_rise = true;
      for (const model::SiteJob& job : site_.jobs) {
        if (!is_within(job.domain, d)) continue;
        const model::PowerPoint* next = nullptr;
        for (const model::PowerPoint& point : job.curve.points) {
          if (point.rate > allocation_.value && point.rate >= floor_of(job).rate) {
            next = &point;
            break;
          }
        }
        if (next == nullptr) {
          can_rise = false;
        } else {
          needed_w += next->power.value();
        }
      }
      if (!can_rise || needed_w > limits_[d].value() * (1 - kSameSum)) return std::nullopt;
    }
    return fmt::format("every job could have a higher rate than {}", allocation_.value);
  }

  const model::Site& site_;
  std::span<const Watts> limits_;
  SiteObjective objective_;
  const model::Allocation& allocation_;
};

}  // namespace

std::optional<std::string> wrong_in_allocation(const model::Site& site, std::span<const Watts> limits,
                                               model::SiteObjective objective, const model::Allocation& allocation) {
  return AllocationCheck(site, limits, objective, allocation).run();
}

}  // namespace perseus::checker
