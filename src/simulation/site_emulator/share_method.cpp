#include "simulation/site_emulator/share_method.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planning/site/allocate.h"

namespace perseus::site_emulator {
namespace {

constexpr int kRounds = 40;
constexpr int kLevels = 500;

class Optimum final : public ShareMethod {
 public:
  Optimum(const SiteDay& day, std::vector<JobKind>& kinds, model::SiteObjective objective)
      : day_(day), kinds_(kinds), allocator_(day.timed.site, objective) {}

  std::vector<int> ways(std::span<const Watts> limits) override {
    const model::Allocation allocation = allocator_.allocate(limits);
    std::vector<int> ways;
    for (std::size_t j = 0; j < allocation.chosen.size(); ++j) {
      ways.push_back(way_of_point(day_, kinds_, j, allocation.chosen[j]));
    }
    return ways;
  }

 private:
  const SiteDay& day_;
  std::vector<JobKind>& kinds_;
  site::Allocator allocator_;
};

/// One number from 0 to 1 for all jobs of a domain.
class OneNumber : public ShareMethod {
 public:
  OneNumber(const SiteDay& day, std::vector<JobKind>& kinds) : day_(day), kinds_(kinds) {
    const auto& domains = day.timed.site.domains;
    jobs_of_.resize(domains.size());
    for (std::size_t j = 0; j < day.timed.site.jobs.size(); ++j) {
      for (int d = day.timed.site.jobs[j].domain; d >= 0; d = domains[d].parent) jobs_of_[d].push_back(j);
    }
  }

  std::vector<int> ways(std::span<const Watts> limits) override {
    std::vector<double> number(day_.kind_of.size(), 1);
    for (std::size_t d = 0; d < limits.size(); ++d) {
      if (limits[d] == model::kNoLimit) continue;
      const double most = largest_within(d, limits[d]);
      for (const std::size_t j : jobs_of_[d]) number[j] = std::min(number[j], most);
    }
    std::vector<int> ways;
    for (std::size_t j = 0; j < number.size(); ++j) ways.push_back(way_at(j, number[j]));
    return ways;
  }

 protected:
  /// Its power never falls when the number rises.
  virtual int way_at(std::size_t job, double number) = 0;
  [[nodiscard]] const SiteDay& day() const { return day_; }
  std::vector<JobKind>& kinds() { return kinds_; }

 private:
  bool fits(std::size_t domain, Watts limit, double number) {
    Watts used;
    for (const std::size_t j : jobs_of_[domain]) {
      used += day_.copies[j] * kinds_[day_.kind_of[j]].mean(way_at(j, number));
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
  std::vector<std::vector<std::size_t>> jobs_of_;  ///< per domain, with those inside
};

class EqualShares final : public OneNumber {
  using OneNumber::OneNumber;
  int way_at(std::size_t job, double number) override {
    const model::SiteJob& one = day().timed.site.jobs[job];
    const auto& points = one.curve.points;
    if (number == 1) return way_of_point(day(), kinds(), job, static_cast<int>(points.size()) - 1);
    const auto beyond = std::ranges::upper_bound(points, number * one.all_max, {}, &model::PowerPoint::power);
    return way_of_point(day(), kinds(), job, std::max(0, static_cast<int>(beyond - points.begin()) - 1));
  }
};

/// Every computation takes its highest clock that the number allows. One number of kLevels serves all jobs of a kind.
class OptionLimit : public OneNumber {
 public:
  OptionLimit(const SiteDay& day, std::vector<JobKind>& kinds) : OneNumber(day, kinds) {}

 protected:
  /// An option of a computation on that many accelerators.
  virtual bool allows(const JobKind& kind, const model::Measurement& option, int accelerators, double number) = 0;

 private:
  int way_at(std::size_t job, double number) final {
    const int kind = day().kind_of[job];
    const int level = static_cast<int>(number * kLevels);
    const auto [known, is_new] = known_.try_emplace({kind, level});
    if (is_new) known->second = kinds()[kind].way(plan_of(kinds()[kind], static_cast<double>(level) / kLevels));
    return known->second;
  }
  model::Plan plan_of(const JobKind& kind, double number) {
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
  std::map<std::pair<int, int>, int> known_;  ///< way by kind and level
};

class OneClockLimit final : public OptionLimit {
  using OptionLimit::OptionLimit;
  bool allows(const JobKind& kind, const model::Measurement& option, int, double number) override {
    return option.clock.value() <= number * kind.highest_clock().value();
  }
};

class PowerLimit final : public OptionLimit {
 public:
  PowerLimit(const SiteDay& day, std::vector<JobKind>& kinds) : OptionLimit(day, kinds) {
    for (const JobKind& kind : kinds) {
      for (const model::Computation& computation : kind.dag().computations) {
        for (const model::Measurement& option : kind.dag().types[computation.type].options) {
          most_ = std::max(most_, power_of(option, kind.dag().accelerators[computation.rank]));
        }
      }
    }
  }

 private:
  static Watts power_of(const model::Measurement& option, int accelerators) {
    return option.time > Seconds(0) ? option.energy / option.time / accelerators : Watts(0);
  }
  bool allows(const JobKind&, const model::Measurement& option, int accelerators, double number) override {
    return power_of(option, accelerators) <= number * most_;
  }
  Watts most_;  ///< of one accelerator during a computation
};

}  // namespace

std::vector<std::string_view> share_method_names() { return {"optimum", "equal-shares", "clock-limit", "power-limit"}; }

std::unique_ptr<ShareMethod> make_share_method(std::string_view name, const SiteDay& day, std::vector<JobKind>& kinds,
                                               model::SiteObjective objective) {
  if (name == "optimum") return std::make_unique<Optimum>(day, kinds, objective);
  if (name == "equal-shares") return std::make_unique<EqualShares>(day, kinds);
  if (name == "clock-limit") return std::make_unique<OneClockLimit>(day, kinds);
  if (name == "power-limit") return std::make_unique<PowerLimit>(day, kinds);
  return nullptr;
}

int way_of_point(const SiteDay& day, std::vector<JobKind>& kinds, std::size_t job, int point) {
  const int kind = day.kind_of[job];
  const model::PowerPoint& chosen = day.timed.site.jobs[job].curve.points[point];
  const model::Plan& plan = day.kinds[kind].frontier->points[chosen.plan].plan;
  return chosen.paced ? kinds[kind].paced_way(plan, chosen.rate) : kinds[kind].way(plan);
}

}  // namespace perseus::site_emulator
