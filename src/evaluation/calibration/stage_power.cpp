#include "evaluation/calibration/stage_power.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace perseus::calibration {
namespace {

struct Use {
  std::vector<Term> terms;  ///< seconds per unknown
  Seconds waiting;
};

}  // namespace

std::vector<Term> StagePower::terms(int stage, Megahertz clock) const {
  const auto [lowest, highest] = ranges_[stage];
  const int base = stage * knots_;
  std::vector<Term> terms{{base, 1.0}};
  if (highest <= lowest) return terms;
  const double step = static_cast<double>(highest.value() - lowest.value()) / (knots_ - 1);
  const double position = std::clamp((clock.value() - lowest.value()) / step, 0.0, knots_ - 1.0);
  for (int k = 1; k < knots_ && position > k - 1; ++k) terms.push_back({base + k, std::min(1.0, position - (k - 1))});
  return terms;
}

LeastSquares StagePower::equations(const model::RunTrace& trace, std::span<const int> plans,
                                   const StagePowerOptions& options, double noise) const {
  const int stages = static_cast<int>(ranges_.size());
  LeastSquares equations(blocking_unknown() + 1);
  for (const int p : plans) {
    const model::TracedPlan& plan = trace.plans[p];
    for (int stage = 0; stage < stages; ++stage) {
      std::vector<double> seconds(knots_);
      Seconds busy;
      for (const model::TracedComputation& c : plan.stages[stage]) {
        busy += c.time;
        for (const Term& term : terms(stage, c.clock))
          seconds[term.unknown - stage * knots_] += term.coefficient * c.time.value();
      }
      const double waiting = std::max(0.0, (plan.iteration_time - busy).value());
      std::vector<Term> row;
      for (int k = 0; k < knots_; ++k) row.push_back({stage * knots_ + k, seconds[k]});
      double energy = plan.energy[stage].value();
      const double weight = 1 / (energy * noise);
      if (options.blocking_power) {
        energy -= options.blocking_power->value() * waiting;
      } else {
        row.push_back({blocking_unknown(), waiting});
      }
      equations.add(row, energy, weight);
    }
  }
  for (int stage = 0; stage < stages; ++stage) {
    for (int k = 1; k + 1 < knots_; ++k) {
      const std::array<Term, 2> bend{Term{stage * knots_ + k, -1}, Term{stage * knots_ + k + 1, 1}};
      equations.add(bend, 0, 1 / options.curvature.value());
    }
  }
  return equations;
}

StagePower::StagePower(const model::RunTrace& trace, std::span<const int> plans, const StagePowerOptions& options)
    : knots_(options.knots) {
  PERSEUS_CHECK(knots_ >= 2 && !plans.empty(), "at least two knots and one plan");
  for (int stage = 0; stage < trace.num_stages(); ++stage) {
    Range range{trace.plans[plans.front()].stages[stage].front().clock, Megahertz(0)};
    for (const int p : plans) {
      for (const model::TracedComputation& c : trace.plans[p].stages[stage]) {
        range.lowest = std::min(range.lowest, c.clock);
        range.highest = std::max(range.highest, c.clock);
      }
    }
    ranges_.push_back(range);
  }

  // The noise sets the weight of the prior, and is itself the residual of the fit.
  constexpr double first_guess = 3e-3, least = 1e-7;
  constexpr int most_fits = 20;
  double noise = first_guess;
  for (int round = 0; round < most_fits; ++round) {
    const LeastSquares system = equations(trace, plans, options, noise);
    unknowns_ = system.solve_non_negative();
    covariance_ = system.covariance(unknowns_);
    const int b = blocking_unknown();
    blocking_ = options.blocking_power
                    ? Fitted<Watts>{*options.blocking_power, Watts(0)}
                    : Fitted<Watts>{Watts(unknowns_[b]), Watts(std::sqrt(std::max(0.0, covariance_(b, b))))};
    double squares = 0;
    for (const int p : plans) {
      const model::TracedPlan& plan = trace.plans[p];
      for (int stage = 0; stage < trace.num_stages(); ++stage) {
        Joules energy;
        Seconds waiting = plan.iteration_time;
        for (const model::TracedComputation& c : plan.stages[stage]) {
          energy += at(stage, c.clock).value * c.time;
          waiting -= c.time;
        }
        energy += blocking_.value * std::max(Seconds(0), waiting);
        const double error = energy / plan.energy[stage] - 1;
        squares += error * error;
      }
    }
    residual_ = std::sqrt(squares / static_cast<double>(plans.size() * ranges_.size()));
    const double next = std::max(residual_, least);
    if (std::abs(next / noise - 1) < 0.02) break;
    noise = next;
  }
}

Fitted<Watts> StagePower::at(int stage, Megahertz clock) const {
  const std::vector<Term> sum = terms(stage, clock);
  double power = 0, variance = 0;
  for (const Term& a : sum) {
    power += a.coefficient * unknowns_[a.unknown];
    for (const Term& b : sum) variance += a.coefficient * b.coefficient * covariance_(a.unknown, b.unknown);
  }
  return {Watts(power), Watts(std::sqrt(std::max(0.0, variance)))};
}

}  // namespace perseus::calibration
