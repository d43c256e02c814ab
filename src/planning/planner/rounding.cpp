#include "planning/planner/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace perseus::planner {
namespace {

// The sequence covers these ranges evenly, `late` by its logarithm.
constexpr double kLeastLate = 0.05, kMostLate = 3, kMostEarly = 0.4, kLeastDiscount = 0.4, kMostDiscount = 0.9;

// Multiples of these, modulo 1, fill a cube evenly: powers of 1 / g, where g^4 = g + 1.
constexpr double kStepOfLate = 0.8191725134, kStepOfEarly = 0.6710436067, kStepOfDiscount = 0.5497004779;

// Computations rounded at a wanted deadline.
constexpr std::size_t kComputations = 25000;
constexpr std::size_t kFewest = 16, kMost = 96;

}  // namespace

Rounding::Rounding(const model::ComputationDag& dag, const Kinds& kinds, const Relaxation& relaxation)
    : relaxation_(relaxation) {
  const int n = static_cast<int>(dag.computations.size());
  std::vector<int> first_of_kind;
  for (const ChoiceSet& set : kinds.sets) {
    first_of_kind.push_back(static_cast<int>(choices_.size()));
    for (const Choice& choice : set.pareto) {
      choices_.push_back({relaxation.ticks(choice.time), choice.effective_energy.value()});
    }
  }
  for (int i = 0; i < n; ++i) {
    const int kind = kinds.of_computation[i];
    first_choice_.push_back(first_of_kind[kind]);
    last_choice_.push_back(static_cast<int>(kinds.sets[kind].pareto.size()) - 1);
  }

  const auto latency = [&](const model::Dependency& d) { return relaxation.ticks(d.latency); };
  before_ = model::neighbors_before<Integer>(dag, latency);
  after_ = model::neighbors_after<Integer>(dag, latency);
  relaxed_.resize(n);
  choice_.resize(n);
  start_.resize(n);
  end_.resize(n);
  latest_start_.resize(n);
  latest_end_.resize(n);
}

const std::vector<int>& Rounding::round(const RoundingWeights& weights) {
  round_by(std::numeric_limits<Integer>::max(), weights);
  return choice_;
}

void Rounding::read_relaxation() {
  if (read_at_ == relaxation_.deadline_ticks() && pivots_read_ == relaxation_.pivots()) return;
  read_at_ = relaxation_.deadline_ticks();
  pivots_read_ = relaxation_.pivots();
  for (int i = 0; i < static_cast<int>(relaxed_.size()); ++i) {
    const auto [slower, faster] = relaxation_.mix(i);
    relaxed_[i] = {relaxation_.end_ticks(i), slower, faster, relaxation_.joules_per_tick(i)};
  }
}

bool Rounding::round_by(Integer latest, const RoundingWeights& weights) {
  read_relaxation();
  if (!forward_to_relaxed_ends(weights, latest)) return false;
  backward_from(std::max(relaxation_.deadline_ticks(), makespan_), weights.discount);
  forward_into_slack();
  return makespan_ <= latest;
}

int Rounding::cheapest(const TimedChoice* choices, int first, int last, double joules_per_tick) {
  int best = first;
  double least = choices[first].energy_j + joules_per_tick * static_cast<double>(choices[first].time);
  for (int c = first + 1; c <= last; ++c) {
    const double cost = choices[c].energy_j + joules_per_tick * static_cast<double>(choices[c].time);
    if (cost < least) {
      least = cost;
      best = c;
    }
  }
  return best;
}

bool Rounding::forward_to_relaxed_ends(const RoundingWeights& weights, Integer latest) {
  const int n = static_cast<int>(choice_.size());
  makespan_ = 0;
  for (int i = 0; i < n; ++i) {
    const Integer start = model::earliest_start(before_, i, end_);
    const TimedChoice* const choices = choices_of(i);
    const auto& [relaxed_end, slower, faster, price] = relaxed_[i];
    const Integer window = relaxed_end - start;
    int choice = slower;
    if (choices[slower].time > window) {
      double least = std::numeric_limits<double>::infinity();
      for (int c = slower; c <= last_choice_[i]; ++c) {
        const auto over = static_cast<double>(choices[c].time - window);
        const double cost = choices[c].energy_j + price * over * (over > 0 ? 1 + weights.late : 1 - weights.early);
        if (cost < least) {
          least = cost;
          choice = c;
        }
        if (over <= 0 && c >= faster) break;
      }
    }
    choice_[i] = choice;
    start_[i] = start;
    end_[i] = start + choices[choice].time;
    if (end_[i] > latest) return false;
    makespan_ = std::max(makespan_, end_[i]);
  }
  return true;
}

void Rounding::backward_from(Integer deadline, double discount) {
  for (int i = static_cast<int>(choice_.size()) - 1; i >= 0; --i) {
    const Integer end = model::latest_end(after_, i, latest_start_, deadline);
    const TimedChoice* const choices = choices_of(i);
    const Integer window = end - start_[i];
    const int now = choice_[i];
    int slowest = now;
    while (slowest > 0 && choices[slowest - 1].time <= window) --slowest;
    if (slowest != now) choice_[i] = cheapest(choices, slowest, now, discount * relaxed_[i].joules_per_tick);
    latest_end_[i] = end;
    latest_start_[i] = end - choices[choice_[i]].time;
  }
}

void Rounding::forward_into_slack() {
  const int n = static_cast<int>(choice_.size());
  makespan_ = 0;
  energy_j_ = 0;
  for (int i = 0; i < n; ++i) {
    const Integer start = model::earliest_start(before_, i, end_);
    const TimedChoice* const choices = choices_of(i);
    const Integer window = latest_end_[i] - start;
    int choice = choice_[i];
    while (choice > 0 && choices[choice - 1].time <= window) --choice;
    choice_[i] = choice;
    end_[i] = start + choices[choice].time;
    makespan_ = std::max(makespan_, end_[i]);
    energy_j_ += choices[choice].energy_j;
  }
}

RoundingWeights varied_weights(int k) {
  const auto part = [&](double step) { return std::fmod((k + 1) * step, 1.0); };
  const double late =
      k % 2 == 0 ? Rounding::kPunctual.late : kLeastLate * std::pow(kMostLate / kLeastLate, part(kStepOfLate));
  return {late, kMostEarly * part(kStepOfEarly),
          kLeastDiscount + (kMostDiscount - kLeastDiscount) * part(kStepOfDiscount)};
}

int weights_at_wanted(std::size_t computations) {
  return static_cast<int>(std::clamp(kComputations / std::max<std::size_t>(computations, 1), kFewest, kMost));
}

}  // namespace perseus::planner
