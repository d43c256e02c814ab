#include "simulation/site_emulator/share_method.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planning/site/allocate.h"

namespace perseus::site_emulator {
namespace {

constexpr int kRounds = 40;
constexpr int kLevels = 500;

ShareMethod optimum(const SiteDay& day, std::vector<JobKind>& kinds, model::SiteObjective objective) {
  return [&day, &kinds, allocator = site::Allocator(day.timed.site, objective)](auto limits) mutable {
    const model::Allocation allocation = allocator.allocate(limits);
    std::vector<int> ways;
    for (std::size_t j = 0; j < allocation.chosen.size(); ++j) {
      ways.push_back(way_of_point(day, kinds, j, allocation.chosen[j]));
    }
    return ways;
  };
}

/// The way of a job at a number from 0 to 1. Its power never falls when the number rises.
using WayAt = std::function<int(std::size_t job, double number)>;

/// One number for all jobs of a domain.
class OneNumber {
 public:
  OneNumber(const SiteDay& day, std::vector<JobKind>& kinds, WayAt way_at)
      : day_(day), kinds_(kinds), way_at_(std::move(way_at)) {
    const auto& domains = day.timed.site.domains;
    jobs_of_.resize(domains.size());
    for (std::size_t j = 0; j < day.timed.site.jobs.size(); ++j) {
      for (int d = day.timed.site.jobs[j].domain; d >= 0; d = domains[d].parent) jobs_of_[d].push_back(j);
    }
  }

  std::vector<int> operator()(std::span<const Watts> limits) {
    std::vector<double> number(day_.kind_of.size(), 1);
    for (std::size_t d = 0; d < limits.size(); ++d) {
      if (limits[d] == model::kNoLimit) continue;
      const double most = largest_within(d, limits[d]);
      for (const std::size_t j : jobs_of_[d]) number[j] = std::min(number[j], most);
    }
    std::vector<int> ways;
    for (std::size_t j = 0; j < number.size(); ++j) ways.push_back(way_at_(j, number[j]));
    return ways;
  }

 private:
  bool fits(std::size_t domain, Watts limit, double number) {
    Watts used;
    for (const std::size_t j : jobs_of_[domain]) {
      used += day_.copies[j] * kinds_[day_.kind_of[j]].mean(way_at_(j, number));
    }
    return used <= limit;
  }
  double largest_within(std::size_t domain, Watts limit) {
    if (fits(domain, limit, 1)) return 1;
    double low = 0, high = 1;
    for (int round = 0; round < kRounds; ++round) {
      const double middle = (low + high) / 2;
      (fits(domain, limit, middle) ? low : high) = middle;
    }
    return low;
  }

  const SiteDay& day_;
  std::vector<JobKind>& kinds_;
  WayAt way_at_;
  std::vector<std::vector<std::size_t>> jobs_of_;  ///< per domain, with those inside
};

WayAt equal_shares(const SiteDay& day, std::vector<JobKind>& kinds) {
  return [&](std::size_t job, double number) {
    const model::SiteJob& one = day.timed.site.jobs[job];
    const auto& points = one.curve.points;
    if (number == 1) return way_of_point(day, kinds, job, static_cast<int>(points.size()) - 1);
    const auto beyond = std::ranges::upper_bound(points, number * one.all_max, {}, &model::PowerPoint::power);
    return way_of_point(day, kinds, job, std::max(0, static_cast<int>(beyond - points.begin()) - 1));
  };
}

/// Whether the number allows that option of a computation, on that many accelerators.
using Allows = std::function<bool(const JobKind&, const model::Measurement& option, int accelerators, double number)>;

model::Plan plan_within(const JobKind& kind, const Allows& allows, double number) {
  model::Plan plan;
  for (const model::Computation& computation : kind.dag().computations) {
    const auto& options = kind.dag().types[computation.type].options;
    const int accelerators = kind.dag().accelerators[computation.rank];
    std::size_t option = 0;
    while (option + 1 < options.size() && !allows(kind, options[option], accelerators, number)) ++option;
    plan.push_back(static_cast<std::uint16_t>(option));
  }
  return plan;
}

/// Every computation takes its highest clock that the number allows. One number of kLevels serves all jobs of a kind.
WayAt option_limit(const SiteDay& day, std::vector<JobKind>& kinds, Allows allows) {
  std::map<std::pair<int, int>, int> ways;  // by kind and level
  return [&day, &kinds, allows = std::move(allows), ways](std::size_t job, double number) mutable {
    const int kind = day.kind_of[job];
    const int level = static_cast<int>(number * kLevels);
    const auto [known, is_new] = ways.try_emplace({kind, level});
    if (is_new) {
      known->second = kinds[kind].way(plan_within(kinds[kind], allows, static_cast<double>(level) / kLevels));
    }
    return known->second;
  };
}

bool keeps_clock(const JobKind& kind, const model::Measurement& option, int, double number) {
  return option.clock.value() <= number * kind.highest_clock().value();
}

Allows keeps_power(const std::vector<JobKind>& kinds) {
  const auto power_of = [](const model::Measurement& option, int accelerators) {
    return option.time > Seconds(0) ? option.energy / option.time / accelerators : Watts(0);
  };
  Watts most;  // of one accelerator during a computation
  for (const JobKind& kind : kinds) {
    for (const model::Computation& computation : kind.dag().computations) {
      for (const model::Measurement& option : kind.dag().types[computation.type].options) {
        most = std::max(most, power_of(option, kind.dag().accelerators[computation.rank]));
      }
    }
  }
  return [power_of, most](const JobKind&, const model::Measurement& option, int accelerators, double number) {
    return power_of(option, accelerators) <= number * most;
  };
}

}  // namespace

std::vector<std::string_view> share_method_names() { return {"optimum", "equal-shares", "clock-limit", "power-limit"}; }

ShareMethod make_share_method(std::string_view name, const SiteDay& day, std::vector<JobKind>& kinds,
                              model::SiteObjective objective) {
  if (name == "optimum") return optimum(day, kinds, objective);
  if (name == "equal-shares") return OneNumber(day, kinds, equal_shares(day, kinds));
  if (name == "clock-limit") return OneNumber(day, kinds, option_limit(day, kinds, keeps_clock));
  if (name == "power-limit") return OneNumber(day, kinds, option_limit(day, kinds, keeps_power(kinds)));
  return {};
}

int way_of_point(const SiteDay& day, std::vector<JobKind>& kinds, std::size_t job, int point) {
  const int kind = day.kind_of[job];
  const model::PowerPoint& chosen = day.timed.site.jobs[job].curve.points[point];
  const model::Plan& plan = day.kinds[kind].frontier->points[chosen.plan].plan;
  return chosen.paced ? kinds[kind].paced_way(plan, chosen.rate) : kinds[kind].way(plan);
}

}  // namespace perseus::site_emulator
