#include "training/client/counter_edges.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace perseus::client {
namespace {

constexpr double kPoll_s = 1e-3, kSlowPoll_s = 0.05, kRestPoll_s = 0.025, kLearning_s = 2;
constexpr double kBlind_s = 600;   ///< until a period is searched again that was too short or too uncertain
constexpr double kClosePolls = 3;  ///< readings further apart hardly determine the period: the machine was busy
constexpr std::size_t kEdgesToLearn = 6, kEdgesKept = 64;
// Spacing of the searched refreshes, for at most 50 readings a second: three a refresh; four where refreshes in
// between are skipped.
constexpr double kSpacing_s = 0.06, kWideSpacing_s = 0.08;
constexpr double kGuard_s = 2e-4;  ///< between an interval's end and the reading that confirms it
constexpr double kLeastSlack_s = 5e-5, kFirstSlack_s = 1e-4;
constexpr double kNarrow_s = 2e-4;    ///< an interval that needs no reading in its middle
constexpr double kWidestShare = 0.2;  ///< of a period: the widest interval that locates a refresh
constexpr int kMostLosses = 8;        ///< in a row; then the period is discarded

/// The period from gaps of one period or a few, each with an error up to `error_s`. The shortest gap may itself span
/// a few periods: then the other gaps and the limits `least_s` and `most_s` of the period decide.
double period_of(std::vector<double> gaps, double error_s, double least_s, double most_s) {
  std::ranges::sort(gaps);
  double otherwise = 0;
  for (double parts = std::max(1.0, std::ceil(gaps.front() / most_s));; ++parts) {
    double sum = gaps.front();
    double periods = parts;
    double worst = 0;
    for (std::size_t i = 1; i < gaps.size(); ++i) {
      const double passed = std::max(1.0, std::round(gaps[i] * periods / sum));
      worst = std::max(worst, std::abs(gaps[i] - passed * sum / periods));
      periods += passed;
      sum += gaps[i];
    }
    if (otherwise == 0) otherwise = sum / periods;
    if (worst <= std::min(error_s, kWidestShare * sum / periods)) return sum / periods;
    if (gaps.front() / (parts + 1) < least_s) return otherwise;
  }
}

/// The counter moved then, last.
CounterEdge edge_between(double from_s, double to_s, double energy_j) {
  return {(from_s + to_s) / 2, (to_s - from_s) / std::sqrt(12), energy_j};
}

}  // namespace

std::optional<CounterEdge> CounterEdges::read(double before_s, double after_s, double energy_j) {
  if (began_s_ < 0) {
    began_s_ = quiet_from_s_ = before_s;
    last_energy_j_ = energy_j;
    unmoved_s_ = before_s;
    next_read_s_ = after_s + kPoll_s;
    return std::nullopt;
  }
  const bool moved = energy_j != last_energy_j_;
  spare_ = std::min(spare_ + kMostReadings_hz * (before_s - unmoved_s_), kReadingsAtOnce) - 1;
  auto edge = resting_    ? rest(before_s, after_s, energy_j, moved)
              : learning_ ? learn(before_s, after_s, energy_j, moved)
              : seeking_  ? find(before_s, after_s, energy_j, moved)
                          : follow(before_s, after_s, energy_j, moved);
  last_energy_j_ = energy_j;
  unmoved_s_ = before_s;
  if (spare_ < 1 && !resting_) {
    resting_ = true;
    learning_ = seeking_ = false;
    next_read_s_ = before_s + kRestPoll_s;
  }
  return edge;
}

std::optional<CounterEdge> CounterEdges::rest(double before_s, double after_s, double energy_j, bool moved) {
  next_read_s_ = before_s + kRestPoll_s;
  if (spare_ + 1 >= kReadingsAtOnce) learn_again(after_s);
  if (!moved) return std::nullopt;
  return edge_between(unmoved_s_, after_s, energy_j);
}

std::optional<CounterEdge> CounterEdges::learn(double before_s, double after_s, double energy_j, bool moved) {
  const double width = after_s - unmoved_s_;
  const bool close = width <= kClosePolls * pace_s_;
  readings_ += close ? 1 : 0;
  next_read_s_ = before_s + pace_s_;
  std::optional<CounterEdge> edge;
  if (moved) {
    if (moves_ > 0) most_period_s_ = std::min(most_period_s_, after_s - before_move_s_);
    before_move_s_ = unmoved_s_;
    ++moves_;
    edge = edge_between(unmoved_s_, after_s, energy_j);
    if (close) edges_s_.push_back(edge->at_s);
    quiet_from_s_ = after_s;
  } else {
    quiet_s_ = std::max(quiet_s_, before_s - quiet_from_s_);
  }
  if (moved && pace_s_ == kSlowPoll_s && moves_ > 1 && after_s - last_move_s_ < kLearning_s / 3) {
    learn_again(after_s);  // it stood still, and moves now
    return edge;
  }
  if (moved) last_move_s_ = after_s;
  const bool over = before_s - began_s_ > kLearning_s;
  if (over && moves_ < 3) pace_s_ = kSlowPoll_s;  // hardly moves: polls slowly, and accepts every reading
  if (edges_s_.size() < (over ? 3 : kEdgesToLearn + 1)) return edge;
  if (2 * static_cast<int>(edges_s_.size()) > readings_) {  // moves with almost every reading
    learning_ = false;
    blind_period_s_ = pace_s_;
    next_read_s_ = after_s + kSpacing_s;
    return edge;
  }
  std::vector<double> gaps;
  for (std::size_t i = 1; i < edges_s_.size(); ++i) gaps.push_back(edges_s_[i] - edges_s_[i - 1]);
  const double period = period_of(std::move(gaps), kClosePolls * pace_s_, std::max(quiet_s_, pace_s_), most_period_s_);
  stride_ = period >= kSpacing_s ? 1 : static_cast<int>(std::ceil(kWideSpacing_s / period));
  slack_s_ = kFirstSlack_s;
  drift_s_ = pace_s_ * period / (edges_s_.back() - edges_s_.front());
  if (1.5 * pace_s_ + 2 * margin_s(stride_) > kWidestShare * period) {  // the period is too uncertain to predict
                                                                        // the next one
    if (!over) return edge;
    learning_ = false;
    blind_period_s_ = period;
    next_read_s_ = after_s + kSpacing_s;
    return edge;
  }
  learning_ = false;
  period_s_ = period;
  low_s_ = unmoved_s_;
  high_s_ = after_s;
  if (moved && close) {
    expect_next(after_s, true);
  } else {
    seek(after_s);
  }
  return edge;
}

double CounterEdges::margin_s(double refreshes) const { return refreshes == 0 ? 0 : slack_s_ + refreshes * drift_s_; }

/// Expects a refresh after the one in [low, high]. `known`: the last reading shows that one's energy.
void CounterEdges::expect_next(double after_s, bool known) {
  double refreshes = stride_;
  based_ = known && stride_ == 1 && after_s < low_s_ + period_s_ - margin_s(1);
  if (!based_) refreshes = std::max(refreshes, std::ceil((after_s - low_s_) / period_s_ + 0.5));
  pass(refreshes);
  step_ = 0;
  late_s_ = 0;
  if (high_s_ - low_s_ > kWidestShare * period_s_) return seek(after_s);
  aim();
}

void CounterEdges::pass(double refreshes) {
  low_s_ += refreshes * period_s_ - margin_s(refreshes);
  high_s_ += refreshes * period_s_ + margin_s(refreshes);
}

void CounterEdges::aim() {
  if (step_ == 1 && high_s_ - low_s_ < kNarrow_s) step_ = 2;
  next_read_s_ = !based_      ? low_s_ - period_s_ / 2
                 : step_ == 0 ? low_s_ - kGuard_s
                 : step_ == 1 ? (low_s_ + high_s_) / 2
                              : high_s_ + kGuard_s;
}

void CounterEdges::seek(double after_s) {
  if (++losses_ > kMostLosses) return learn_again(after_s);
  seeking_ = true;
  edges_s_.clear();
  next_read_s_ = after_s + std::max(kPoll_s, period_s_ / 40);
}

void CounterEdges::learn_again(double after_s) {
  learning_ = true;
  seeking_ = resting_ = false;
  period_s_ = quiet_s_ = 0;
  most_period_s_ = 1e300;
  quiet_from_s_ = after_s;
  edges_s_.clear();
  readings_ = moves_ = losses_ = 0;
  pace_s_ = kPoll_s;
  began_s_ = after_s;
  next_read_s_ = after_s + kPoll_s;
}

/// Refresh lost: polls until the counter moves between two readings close to each other.
std::optional<CounterEdge> CounterEdges::find(double before_s, double after_s, double energy_j, bool moved) {
  next_read_s_ = before_s + std::max(kPoll_s, period_s_ / 40);
  if (!moved || after_s - unmoved_s_ > kWidestShare * period_s_) return std::nullopt;
  seeking_ = false;
  low_s_ = unmoved_s_;
  high_s_ = after_s;
  return confirmed(after_s, energy_j);
}

std::optional<CounterEdge> CounterEdges::follow(double before_s, double after_s, double energy_j, bool moved) {
  if (period_s_ == 0) {
    next_read_s_ = after_s + kSpacing_s;
    if (after_s - began_s_ > kBlind_s) learn_again(after_s);
    if (!moved) return std::nullopt;
    return CounterEdge{(before_s + after_s - blind_period_s_) / 2,
                       (after_s - before_s + blind_period_s_) / std::sqrt(12), energy_j};
  }
  const bool may_be_later_one = after_s >= low_s_ + period_s_ - margin_s(1);
  if (may_be_later_one || (!based_ && after_s > low_s_)) return late(before_s, after_s, energy_j, moved);
  if (!based_) {  // just before the searched refresh and after the previous one: the value before the step
    based_ = true;
    aim();
    return std::nullopt;
  }
  if (!moved) {
    low_s_ = std::max(low_s_, before_s);
    if (low_s_ >= high_s_) {  // later than expected
      late_s_ = std::max(2 * late_s_, 2e-4);
      if (late_s_ > period_s_) {
        seek(after_s);
        return std::nullopt;
      }
      high_s_ = low_s_ + late_s_;
      step_ = 2;
      slack_s_ = std::min(slack_s_ + late_s_, period_s_ / 10);
    } else {
      step_ = std::min(step_ + 1, 2);
    }
    aim();
    return std::nullopt;
  }
  high_s_ = std::min(high_s_, after_s);
  if (high_s_ < low_s_) {  // earlier than expected
    slack_s_ = std::min(slack_s_ + (low_s_ - high_s_), period_s_ / 10);
    low_s_ = unmoved_s_;
    if (high_s_ - low_s_ > kWidestShare * period_s_) {
      seek(after_s);
      return std::nullopt;
    }
  }
  losses_ = 0;
  return confirmed(after_s, energy_j);
}

/// Handles a reading that came too late for a refresh. Between two refreshes it still shows the energy of the first.
std::optional<CounterEdge> CounterEdges::late(double before_s, double after_s, double energy_j, bool moved) {
  const double passed = std::max(0.0, std::floor((before_s - high_s_) / period_s_));
  const bool between = before_s > high_s_ + passed * period_s_ + margin_s(passed) &&
                       after_s < low_s_ + (passed + 1) * period_s_ - margin_s(passed + 1);
  if (between && !moved) {  // then it is not where expected
    seek(after_s);
    return std::nullopt;
  }
  pass(passed);
  std::optional<CounterEdge> edge;
  if (between) edge = CounterEdge{(low_s_ + high_s_) / 2, (high_s_ - low_s_) / std::sqrt(12), energy_j};
  expect_next(after_s, between);
  return edge;
}

/// The counter moved in [low, high].
std::optional<CounterEdge> CounterEdges::confirmed(double after_s, double energy_j) {
  const CounterEdge edge{(low_s_ + high_s_) / 2, std::max(high_s_ - low_s_, 2e-5) / std::sqrt(12), energy_j};
  edges_s_.push_back(edge.at_s);
  if (edges_s_.size() > 8) {
    const double refreshes = std::round((edges_s_.back() - edges_s_.front()) / period_s_);
    if (refreshes > 0) {
      period_s_ = (edges_s_.back() - edges_s_.front()) / refreshes;
      drift_s_ = std::min(drift_s_, kPoll_s / refreshes);
    }
    slack_s_ = std::max(kLeastSlack_s, 0.9 * slack_s_);
  }
  if (edges_s_.size() > kEdgesKept) edges_s_.pop_front();
  expect_next(after_s, true);
  return edge;
}

}  // namespace perseus::client
