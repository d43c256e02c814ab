#include "io/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace perseus::report {
namespace {

/// Relative tolerance: the same measurements along the same path may be summed in another order.
constexpr double kRounding = 1e-12;

std::optional<Joules> effective_energy_at(const model::Frontier& frontier, Seconds deadline) {
  const Seconds within = deadline * (1 + kRounding);
  if (frontier.points.back().time > within) return std::nullopt;
  return frontier.points[point_for(frontier, within)].effective_energy;
}

/// True if `a` is as fast and needs no more energy than `b` at every T.
bool covers(const model::Frontier& a, const model::Frontier& b) {
  return std::ranges::all_of(b.points, [&](const model::FrontierPoint& point) {
    const std::optional<Joules> energy = effective_energy_at(a, point.time);
    return energy && *energy <= point.effective_energy + kRounding * point.energy;
  });
}

/// The values of T between which only the cost of waiting changes.
std::vector<Seconds> breakpoints(const model::Frontier& a, const model::Frontier& b) {
  const Seconds from = a.bound.t_min(), to = a.bound.t_star();
  std::vector<Seconds> all{from, to};
  for (const model::Frontier* frontier : {&a, &b}) {
    for (const model::FrontierPoint& point : frontier->points) {
      if (point.time > from && point.time < to) all.push_back(point.time);
    }
  }
  std::ranges::sort(all);
  return all;
}

class PairMeter {
 public:
  PairMeter(const model::ComputationDag& dag, const model::Frontier& a, const model::Frontier& b)
      : waiting_(dag.total_blocking_power()), a_(a), b_(b) {}

  PairComparison measure() {
    const std::vector<Seconds> at = breakpoints(a_, b_);
    const double width_s = (at.back() - at.front()).value();
    for (std::size_t k = 0; k + 1 < at.size(); ++k) {
      // If T_min equals T* there is one deadline, with the full weight.
      const double share = width_s > 0 ? (at[k + 1] - at[k]).value() / width_s : 1;
      if (share > 0) measure(at[k], at[k + 1], share);
    }
    pair_.mean_saving_pct = both_ > 0 ? sum_ / both_ : 0;
    const bool a_covers = covers(a_, b_), b_covers = covers(b_, a_);
    pair_.of_first.dominates = a_covers && !b_covers;
    pair_.of_second.dominates = b_covers && !a_covers;
    return pair_;
  }

 private:
  void measure(Seconds from, Seconds to, double share) {
    const std::optional<Joules> a = effective_energy_at(a_, from), b = effective_energy_at(b_, from);
    if (a && b) {
      const auto saving_pct = [&](Seconds t) { return 100 * ((*b - *a) / (*b + waiting_ * t)); };
      both_ += share;
      sum_ += share * (saving_pct(from) + 4 * saving_pct(0.5 * (from + to)) + saving_pct(to)) / 6;
      if (std::abs((*b - *a).value()) <= kRounding * (*b + waiting_ * from).value()) {
        pair_.equal_pct += 100 * share;
      } else if (*a < *b) {
        add(pair_.of_first, share, saving_pct(from), from);
      } else {
        add(pair_.of_second, share, 100 * ((*a - *b) / (*a + waiting_ * from)), from);
      }
      return;
    }
    if (!a && !b) {
      pair_.equal_pct += 100 * share;
      return;
    }
    Advantage& faster = a ? pair_.of_first : pair_.of_second;
    faster.better_pct += 100 * share;
    faster.only_pct += 100 * share;
  }

  static void add(Advantage& advantage, double share, double saving_pct, Seconds at) {
    advantage.better_pct += 100 * share;
    if (saving_pct <= advantage.largest_pct) return;
    advantage.largest_pct = saving_pct;
    advantage.largest_at = at;
  }

  Watts waiting_;
  const model::Frontier& a_;
  const model::Frontier& b_;
  PairComparison pair_;
  double both_ = 0, sum_ = 0;
};

}  // namespace

std::vector<PairComparison> compare_pairs(const model::ComputationDag& dag,
                                          const std::vector<ComparedMethod>& methods) {
  std::vector<PairComparison> pairs;
  for (int a = 0; a < static_cast<int>(methods.size()); ++a) {
    for (int b = a + 1; b < static_cast<int>(methods.size()); ++b) {
      PairComparison pair = PairMeter(dag, methods[a].frontier, methods[b].frontier).measure();
      pair.first = a, pair.second = b;
      pairs.push_back(pair);
    }
  }
  return pairs;
}

}  // namespace perseus::report
