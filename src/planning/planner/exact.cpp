#include "planning/planner/exact.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/choices.h"
#include "planning/planner/clock_runs.h"
#include "planning/planner/late_clocks.h"
#include "planning/planner/look_up.h"
#include "planning/planner/realize.h"
#include "planning/planner/relaxation.h"
#include "planning/planner/rounding.h"
#include "planning/planner/run_annealing.h"
#include "planning/planner/run_descent.h"
#include "planning/planner/splices.h"

namespace perseus::planner {
namespace {

// Work at one effort: it realizes one of `every` requested deadlines and `between` deadlines per interval, each with
// all weights or with one of the first weights in turn. `varied` multiplies the number of further weights at wanted
// deadlines. A higher effort realizes everything that a lower effort does.
struct EffortLevel {
  int every, between;
  bool all_weights;
  int varied;
  [[nodiscard]] double density() const { return static_cast<double>(between) / every; }
};
EffortLevel level_of(Effort effort) {
  switch (effort) {
    case Effort::low:
      return {5, 1, false, 1};
    case Effort::normal:
      break;
    case Effort::high:
      return {1, 4, true, 4};
  }
  return {1, 1, false, 1};
}

// A deadline a little before each wanted one is rounded as well, with half as many weights: plans end late, and the
// relaxed optimum may be easier to round there.
constexpr double kBeforeWanted = 1.5e-4;

// Splices fill the gaps between rounded deadlines (how many: see Effort); those of plans far apart are poor.
// Five, so that each effort still rounds what a lower one does, with weights in turn.
int rounded_one_of(std::size_t computations, const PlannerOptions& options) {
  const double deadlines = std::min(1.0, level_of(options.effort).density()) * options.deadlines;
  return computations >= 400 && deadlines >= 500 ? 5 : 1;
}

// Relative error of sums over an iteration.
constexpr double kLastDigits = 1e-10;

// Limit on the computations that the descent of limited plans realizes, over all points: about a second.
constexpr double kDescentSteps = 4e7;

// The same of the descent to wanted deadlines, over all of them, and with how many points it begins at each.
constexpr double kWantedSteps = 4e7;
constexpr std::ptrdiff_t kStartsOfWanted = 8;

// The same of annealing, at each wanted deadline and for each requested one: 0.03 s for 1,000 of them.
constexpr double kAnnealingSteps = 1e3;

// Of a DAG with at most this many plans, all are candidates.
constexpr double kMostPlans = 20'000;

// A frontier keeps at most this many points per requested deadline.
constexpr int kPointsPerDeadline = 2;

// Cost of a computation in a pass over the DAG, in elementary operations (base/stop_check.h).
constexpr long kOperationsOfRealizing = 10, kOperationsOfRounding = 40, kOperationsOfLateClocks = 40;

// A GPU makes one clock change at a time. The effect of a request during a change depends on the driver, so plans
// leave each change its latency, and some more for computations that end early.
constexpr double kDwellLatencies = 1.1;

// Prices tried at T_min when clocks are limited: from those of the relaxation up, until no priced computation is
// slowed.
constexpr double kHighestPriceFactor = 1e4, kPriceStep = 1.05;

// Collects rounded plans while the deadline falls; drops each plan that a later plan dominates.
class Candidates {
 public:
  explicit Candidates(const Kinds& kinds) : kinds_(kinds) {}

  void add(const std::vector<int>& choices, graph::Integer makespan, double energy_j) {
    while (!kept_.empty() && kept_.back().makespan >= makespan && kept_.back().energy_j >= energy_j) kept_.pop_back();
    kept_.push_back({makespan, energy_j, kinds_.plan_of(choices)});
  }

  /// Realizes the plans, returns the Pareto set and empties the collection.
  std::vector<model::FrontierPoint> realize(Realizer& realizer, StopCheck& check) {
    std::vector<model::FrontierPoint> points;
    points.reserve(kept_.size());
    for (Candidate& candidate : kept_) {
      if (check.stop(kOperationsOfRealizing * static_cast<long>(candidate.plan.size()))) return {};
      const Realizer::Outcome outcome = realizer.realize(candidate.plan);
      points.push_back({outcome.time, {}, outcome.effective_energy, {}, std::move(candidate.plan), {}});
    }
    kept_.clear();
    keep_pareto(points);
    return points;
  }

 private:
  struct Candidate {
    graph::Integer makespan;
    double energy_j;
    model::Plan plan;
  };
  const Kinds& kinds_;
  std::vector<Candidate> kept_;
};

struct Deadline {
  Seconds time;
  int weights;     // index into kWeights; kAllWeights: all of them, and the punctual one, so that some plan meets it
  int varied = 0;  // number of varied weights as well; the best plan of them that ends by `wanted` is realized
  Seconds wanted = {};
};
constexpr int kAllWeights = -1;

// The deadlines to realize, falling from T* to T_min, merged with those of `also`; the last one is 0, so that the
// sweep runs to its end.
std::vector<Deadline> deadlines_between(Seconds t_min, Seconds t_star, int count, const EffortLevel& level,
                                        const std::vector<Seconds>& also, int varied) {
  std::vector<Deadline> deadlines;
  for (const Seconds wanted : also) {
    for (const auto& [t, number] : {std::pair(wanted, varied), std::pair((1 - kBeforeWanted) * wanted, varied / 2)}) {
      if (t > t_min && t < t_star) deadlines.push_back({t, kAllWeights, number, wanted});
    }
  }
  const int steps = std::max(1, count - 1) * level.between;
  for (int step = 0; step < steps; step += level.every) {
    const int weights = level.all_weights ? kAllWeights : step % kWeightsInTurn;
    deadlines.push_back({t_star - (t_star - t_min) * (static_cast<double>(step) / steps), weights});
  }
  std::ranges::stable_sort(deadlines, std::greater{}, &Deadline::time);
  const auto same_time = [](const Deadline& a, const Deadline& b) { return a.time == b.time; };
  deadlines.erase(std::unique(deadlines.begin(), deadlines.end(), same_time), deadlines.end());
  deadlines.push_back({Seconds(0), kAllWeights, varied, t_min});
  return deadlines;
}

void set_energies(const model::ComputationDag& dag, model::Frontier& frontier) {
  for (model::FrontierPoint& point : frontier.points) {
    const Joules blocking = dag.total_blocking_power() * point.time;
    point.energy = point.effective_energy + blocking;
    point.bound = frontier.bound.at(point.time) + blocking;
    // A point on the curve must not beat the bound by a rounding error.
    if (point.bound > point.energy && point.bound < point.energy * (1 + kLastDigits)) point.bound = point.energy;
  }
}

// If there are more than `most` points, keeps in each of `most` equal spans of time the point closest to its bound;
// both ends and the slowest point of each deadline of `also` stay.
void thin_out(std::vector<model::FrontierPoint>& points, int most, const std::vector<Seconds>& also) {
  if (static_cast<int>(points.size()) <= most) return;
  std::set<std::size_t> wanted;
  for (const Seconds deadline : also) {
    const auto found = std::ranges::partition_point(
        points, [&](const model::FrontierPoint& p) { return p.time > (1 + kLastDigits) * deadline; });
    wanted.insert(static_cast<std::size_t>(found - points.begin()));
  }
  const Seconds slowest = points.front().time, range = slowest - points.back().time;
  std::vector<model::FrontierPoint> kept;
  int span_of_last = -1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const int span = i + 1 == points.size() ? most : static_cast<int>((slowest - points[i].time) / range * most);
    const bool keeps = i > 0 && (i == 1 || wanted.contains(i - 1));  // nothing replaces the slowest and wanted points
    if (keeps) span_of_last = -1;
    if (span != span_of_last || wanted.contains(i)) {
      kept.push_back(std::move(points[i]));
    } else if (points[i].gap_pct() < kept.back().gap_pct()) {
      kept.back() = std::move(points[i]);
    }
    span_of_last = span;
  }
  points = std::move(kept);
}

class Planner {
 public:
  Planner(const model::ComputationDag& dag, const PlannerOptions& options, StopCheck& check)
      : dag_(dag),
        options_(options),
        check_(check),
        level_(level_of(options.effort)),
        kinds_(make_kinds(dag)),
        realizer_(dag),
        runs_(dag),
        min_dwell_(std::max(options.min_dwell, kDwellLatencies * options.switch_latency)) {
    t_min_ = realizer_.realize(runs_.fastest_everywhere()).time;
    wanted_ = options.also;
    const Seconds t_max = realizer_.realize(model::all_maximum_clock(dag)).time;
    wanted_.push_back(t_max);
    for (const double tolerance : model::kUsualTolerances) wanted_.push_back((1 + tolerance) * t_max);
  }

  // Plans for clocks that change at once, any number of times. If the check has stopped planning, the result is
  // unusable; the same holds for plan_limited().
  model::Frontier plan_free() {
    Relaxation relaxation(dag_, kinds_);
    Rounding rounding(dag_, kinds_, relaxation);
    Candidates candidates(kinds_);
    const auto add = [&](const RoundingWeights& weights) {
      if (stop(kOperationsOfRounding)) return;
      const std::vector<int>& choices = rounding.round(weights);
      candidates.add(choices, rounding.makespan_ticks(), rounding.effective_energy_j());
    };
    // Where clocks are limited, these plans are only where the search for others begins, which costs more.
    const bool splices = min_dwell_ == Seconds(0);
    EffortLevel level = level_;
    if (splices) level.every *= rounded_one_of(dag_.computations.size(), options_);
    sweep(relaxation, level, [&](const Deadline& deadline) {
      if (deadline.weights != kAllWeights) return add(kWeights[deadline.weights]);
      for (const RoundingWeights& weights : kWeights) add(weights);
      add(Rounding::kPunctual);
      if (const auto best = best_weights(relaxation, rounding, deadline)) add(*best);
    });
    if (check_.stopped()) return {};
    model::Frontier frontier{candidates.realize(realizer_, check_), relaxation.curve()};
    if (check_.stopped()) return {};
    if (splices) {
      const int spans = std::max(1, options_.deadlines * level_.between / level_.every);
      Splices(dag_, runs_.fastest_everywhere(), realizer_)
          .add_to(frontier.points, frontier.bound, spans, wanted_, check_);
    }
    if (check_.stopped()) return {};
    set_energies(dag_, frontier);
    thin_out(frontier.points, kPointsPerDeadline * options_.deadlines, wanted_);
    if (options_.candidates.empty()) return frontier;
    for (const model::Plan& plan : options_.candidates) {
      if (stop(kOperationsOfRealizing)) return {};
      const Realizer::Outcome outcome = realizer_.realize(plan);
      frontier.points.push_back({outcome.time, {}, outcome.effective_energy, {}, plan, {}});
    }
    keep_pareto(frontier.points);
    set_energies(dag_, frontier);
    return frontier;
  }

  // Plans for clocks that arrive late or must stay for a while. Prices propose the runs; their realized times decide.
  model::Frontier plan_limited(const model::Frontier& free) {
    Relaxation relaxation(dag_, kinds_);
    LateClocks late(dag_, options_.switch_latency);
    std::vector<model::FrontierPoint> points;
    const auto add = [&](model::Plan plan) {
      if (stop(kOperationsOfLateClocks)) return;
      Realizer::Outcome outcome = late.realize(plan);
      while (runs_.lengthen_runs(plan, late.end_s(), outcome.time, min_dwell_)) {
        if (stop(kOperationsOfLateClocks)) return;
        outcome = late.realize(plan);
      }
      points.push_back({outcome.time, {}, outcome.effective_energy, {}, std::move(plan), {}});
    };
    add(runs_.fastest_without_changes());
    add(model::Plan(dag_.computations.size(), 0));
    for (const model::Plan& plan : options_.candidates) add(plan);
    // Plans for clocks that change at once: prices alone hardly meet the fast end, however short the latency.
    for (const model::FrontierPoint& point : free.points) add(point.plan);
    // Where changes are slow, fewer of them than allowed may be better.
    std::vector<Seconds> dwells{min_dwell_};
    for (const double latencies : {4.0, 16.0, 64.0}) dwells.push_back(options_.switch_latency * latencies);
    dwells.emplace_back(std::numeric_limits<double>::infinity());
    std::erase_if(dwells, [&](Seconds dwell) { return dwell < min_dwell_; });
    dwells.erase(std::unique(dwells.begin(), dwells.end()), dwells.end());
    const auto add_all = [&](double price_factor) {
      for (const Seconds dwell : dwells) {
        add(runs_.cheapest(relaxation, {dwell, options_.switch_latency, price_factor}, check_));
      }
    };
    sweep(relaxation, level_, [&](const Deadline&) { add_all(1); });
    // Limits make plans slower than the relaxation assumes; higher prices than those of T_min fill the fast end.
    for (double factor = 1; factor < kHighestPriceFactor && !check_.stopped(); factor *= kPriceStep) add_all(factor);
    if (check_.stopped()) return {};
    keep_pareto(points);
    descend(late, points);
    anneal(late, points);
    meet_wanted(late, points);
    if (check_.stopped()) return {};
    model::Frontier frontier{std::move(points), relaxation.curve()};
    set_energies(dag_, frontier);
    for (model::FrontierPoint& point : frontier.points) {
      const model::FrontierPoint& same_time = look_up(free, point.time);
      point.clock_limit_cost = point.effective_energy - same_time.effective_energy;
    }
    return frontier;
  }

 private:
  // Call after a pass over the DAG that costs this many operations per computation.
  bool stop(long operations) { return check_.stop(operations * static_cast<long>(dag_.computations.size())); }

  // The varied weights whose plan needs least energy of those that end by the wanted deadline.
  std::optional<RoundingWeights> best_weights(const Relaxation& relaxation, Rounding& rounding,
                                              const Deadline& deadline) {
    const graph::Integer latest = std::max(relaxation.ticks(deadline.wanted), relaxation.deadline_ticks());
    std::optional<RoundingWeights> best;
    double least_j = std::numeric_limits<double>::infinity();
    for (int k = 0; k < deadline.varied && !stop(kOperationsOfRounding); ++k) {
      const RoundingWeights weights = varied_weights(k);
      if (!rounding.round_by(latest, weights) || rounding.effective_energy_j() >= least_j) continue;
      least_j = rounding.effective_energy_j();
      best = weights;
    }
    return best;
  }

  // Lowers clocks of each point where time remains, from the fast end, where limits cost most, within the budget.
  void descend(LateClocks& late, std::vector<model::FrontierPoint>& points) {
    long budget = static_cast<long>(kDescentSteps * level_.density() / static_cast<double>(dag_.computations.size()));
    for (std::size_t left = points.size(); left > 0 && budget > 0 && !check_.stopped(); --left) {
      model::FrontierPoint& point = points[left - 1];
      long share = std::max(1L, 4 * budget / static_cast<long>(left));
      const long given = std::min(share, budget);
      share = given;
      const Realizer::Outcome outcome =
          slow_down_runs(dag_, runs_, late, point.time, min_dwell_, point.plan, share, check_);
      budget -= given - share;
      point.time = outcome.time;
      point.effective_energy = outcome.effective_energy;
    }
    keep_pareto(points);
  }

  // Plans by prices end anywhere: for each wanted deadline, slows down maximum clock and the slowest points before the
  // deadline until they end there.
  void meet_wanted(LateClocks& late, std::vector<model::FrontierPoint>& points) {
    const long moves = static_cast<long>(kWantedSteps * level_.density() /
                                         static_cast<double>(dag_.computations.size() * wanted_.size()));
    const model::Plan highest = model::all_maximum_clock(dag_);
    const Seconds t_highest = late.realize(highest).time;
    // Types whose highest clocks differ change clocks at every computation.
    const bool dwells = runs_.dwells(highest, late.end_s(), t_highest, min_dwell_);
    std::vector<model::FrontierPoint> slowed;
    for (const Seconds wanted : wanted_) {
      const Seconds latest = (1 + kLastDigits) * wanted;
      std::vector<model::Plan> starts;
      if (dwells && t_highest <= latest) starts.push_back(highest);
      const auto first = std::ranges::find_if(points, [&](const model::FrontierPoint& p) { return p.time <= latest; });
      for (auto point = first; point != points.end() && point - first < kStartsOfWanted; ++point) {
        starts.push_back(point->plan);
      }
      for (model::Plan& plan : starts) {
        long share = std::max(1L, moves / static_cast<long>(starts.size()));
        const Realizer::Outcome outcome = slow_down_runs(dag_, runs_, late, latest, min_dwell_, plan, share, check_);
        if (check_.stopped()) return;
        slowed.push_back({outcome.time, {}, outcome.effective_energy, {}, std::move(plan), {}});
      }
    }
    std::ranges::move(slowed, std::back_inserter(points));
    keep_pareto(points);
  }

  // Looks further for plans of the wanted deadlines.
  void anneal(LateClocks& late, std::vector<model::FrontierPoint>& points) {
    const double steps = kAnnealingSteps * level_.density() * options_.deadlines;
    const long moves = static_cast<long>(steps / static_cast<double>(dag_.computations.size()));
    for (const Seconds wanted : wanted_) {
      const auto found = std::ranges::find_if(
          points, [&](const model::FrontierPoint& p) { return p.time <= (1 + kLastDigits) * wanted; });
      if (found == points.end() || check_.stopped()) continue;
      model::FrontierPoint point = *found;
      const Realizer::Outcome outcome =
          anneal_runs(dag_, runs_, late, std::max(wanted, point.time), min_dwell_, point.plan, moves, check_);
      point.time = outcome.time;
      point.effective_energy = outcome.effective_energy;
      points.push_back(std::move(point));
      keep_pareto(points);
    }
  }

  template <class Realize>
  void sweep(Relaxation& relaxation, const EffortLevel& level, Realize realize) {
    const std::vector<Deadline> deadlines =
        deadlines_between(t_min_, relaxation.t_star(), options_.deadlines, level, wanted_,
                          level.varied * weights_at_wanted(dag_.computations.size()));
    for (std::size_t i = 0; i < deadlines.size(); ++i) {
      relaxation.lower_deadline(deadlines[i].time, check_);
      if (check_.stopped()) return;
      realize(deadlines[i]);
      if (options_.progress && i % 16 == 0) {
        options_.progress(static_cast<double>(i) / static_cast<double>(deadlines.size()));
      }
    }
    if (options_.progress) options_.progress(1);
  }

  const model::ComputationDag& dag_;
  const PlannerOptions& options_;
  StopCheck& check_;
  EffortLevel level_;
  Kinds kinds_;
  Realizer realizer_;
  ClockRuns runs_;
  Seconds min_dwell_;
  Seconds t_min_;
  std::vector<Seconds> wanted_;  // deadlines in addition to the even ones: T_max, usual tolerances, requested ones
};

/// The options of a computation that no other one beats in time and effective energy.
std::vector<std::uint16_t> unbeaten(const model::ComputationDag& dag, int computation) {
  const std::vector<model::Measurement>& options = dag.type_of(computation).options;
  const Watts waiting = dag.blocking_power_of(computation);
  const auto beats = [&](const model::Measurement& a, const model::Measurement& b) {
    const Joules more = (a.energy - waiting * a.time) - (b.energy - waiting * b.time);
    return a.time <= b.time && more <= Joules(0) && (a.time < b.time || more < Joules(0) || &a < &b);
  };
  std::vector<std::uint16_t> kept;
  for (std::size_t o = 0; o < options.size(); ++o) {
    const auto beaten = [&](const model::Measurement& other) { return beats(other, options[o]); };
    if (std::ranges::none_of(options, beaten)) kept.push_back(static_cast<std::uint16_t>(o));
  }
  return kept;
}

/// Every plan of unbeaten options; nothing if they are more than kMostPlans.
std::vector<model::Plan> every_plan(const model::ComputationDag& dag) {
  std::vector<std::vector<std::uint16_t>> options;
  double plans = 1;
  for (int c = 0; c < static_cast<int>(dag.computations.size()); ++c) {
    options.push_back(unbeaten(dag, c));
    if ((plans *= static_cast<double>(options.back().size())) > kMostPlans) return {};
  }
  std::vector<std::size_t> digits(options.size());
  std::vector<model::Plan> all;
  for (std::size_t i = 0; i < digits.size();) {
    model::Plan& plan = all.emplace_back();
    for (std::size_t c = 0; c < digits.size(); ++c) plan.push_back(options[c][digits[c]]);
    for (i = 0; i < digits.size() && ++digits[i] == options[i].size(); ++i) digits[i] = 0;
  }
  return all;
}

}  // namespace

double estimated_planning_s(const model::ComputationDag& dag, const PlannerOptions& options) {
  // Fitted to bench/planning_stop_report and planner_report: the sweep, the deadlines, and the cost of limits.
  const auto n = static_cast<double>(dag.computations.size());
  const double density = level_of(options.effort).density(), deadlines = density * options.deadlines;
  // With prices in steps (planning/planner/relaxation.h), two or three thousand searches.
  const double sweep_s = std::min(4e-10 * n * n * dag.num_ranks(), 1.5e-4 * n);
  const double rounding_s = (3e-8 / rounded_one_of(dag.computations.size(), options) + 1e-8) * n * deadlines;
  const bool limited = options.switch_latency > Seconds(0) || options.min_dwell > Seconds(0);
  return sweep_s + rounding_s + (limited ? sweep_s + 1.9 * density + 4e-6 * n * deadlines : 0);
}

Result<model::Frontier> plan_exact(const model::ComputationDag& dag, const PlannerOptions& given, StopCheck& check) {
  PlannerOptions options = given;
  std::ranges::move(every_plan(dag), std::back_inserter(options.candidates));
  Planner planner(dag, options, check);
  model::Frontier frontier = planner.plan_free();
  const bool limited = options.switch_latency > Seconds(0) || options.min_dwell > Seconds(0);
  if (limited && !check.stopped()) frontier = planner.plan_limited(frontier);
  if (check.stopped()) return planning_stopped();
  return frontier;
}

model::Frontier plan_exact(const model::ComputationDag& dag, const PlannerOptions& options) {
  return plan_exact(dag, options, StopCheck::never()).value();
}

}  // namespace perseus::planner
