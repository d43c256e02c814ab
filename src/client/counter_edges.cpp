#include "client/counter_edges.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace perseus::client {
namespace {

constexpr double poll_s = 1e-3, learning_s = 2;
constexpr std::size_t edges_to_learn = 6, edges_kept = 64;
constexpr double spacing_s = 0.06;  ///< between refreshes looked for: three readings each, 50 a second at most
constexpr double guard_s = 2e-4;    ///< between an interval's end and the reading that confirms it
constexpr double least_slack_s = 5e-5;
constexpr double narrow_s = 2e-4;  ///< an interval that needs no reading in its middle

}  // namespace

std::optional<CounterEdge> CounterEdges::read(double before_s, double after_s, double energy_j) {
  if (began_s_ < 0) {
    began_s_ = before_s;
    last_energy_j_ = energy_j;
    unmoved_s_ = before_s;
    next_read_s_ = after_s + poll_s;
    return std::nullopt;
  }
  const bool moved = energy_j != last_energy_j_;
  auto edge = learning_ ? learn(before_s, after_s, energy_j, moved) : follow(before_s, after_s, energy_j, moved);
  last_energy_j_ = energy_j;
  unmoved_s_ = before_s;
  return edge;
}

std::optional<CounterEdge> CounterEdges::learn(double before_s, double after_s, double energy_j, bool moved) {
  ++readings_;
  next_read_s_ = before_s + poll_s;
  std::optional<CounterEdge> edge;
  if (moved) {
    ++moves_;
    const double width = after_s - unmoved_s_;
    edge = CounterEdge{after_s - width / 2, width / std::sqrt(12), energy_j};
    edges_s_.push_back(edge->at_s);
  }
  const bool over = before_s - began_s_ > learning_s;
  if (edges_s_.size() < edges_to_learn + 1 && !over) return edge;
  if (edges_s_.size() < 3) {  // hardly moves: looks now and then, and takes what it sees
    next_read_s_ = before_s + 0.05;
    return edge;
  }
  learning_ = false;
  if (2 * moves_ > readings_) {  // moves with almost every reading
    period_s_ = 0;
    next_read_s_ = after_s + spacing_s;
    return edge;
  }
  std::vector<double> gaps;
  for (std::size_t i = 1; i < edges_s_.size(); ++i) gaps.push_back(edges_s_[i] - edges_s_[i - 1]);
  std::ranges::nth_element(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2));
  const double about = gaps[gaps.size() / 2];
  period_s_ = about;
  double refreshes = 0;
  for (std::size_t i = 1; i < edges_s_.size(); ++i) refreshes += std::round((edges_s_[i] - edges_s_[i - 1]) / about);
  if (refreshes > 0) period_s_ = (edges_s_.back() - edges_s_.front()) / refreshes;
  stride_ = std::max(1, static_cast<int>(std::ceil(spacing_s / period_s_)));
  slack_s_ = std::max(least_slack_s, 2 * poll_s / static_cast<double>(edges_s_.size()));
  low_s_ = edges_s_.back() - poll_s;
  high_s_ = edges_s_.back() + poll_s;
  if (!moved) {
    seek();
    return edge;
  }
  expect_next();
  return edge;
}

/// The refresh after the one in [low, high].
void CounterEdges::expect_next() {
  low_s_ += stride_ * period_s_ - slack_s_;
  high_s_ += stride_ * period_s_ + slack_s_;
  step_ = 0;
  late_s_ = 0;
  aim();
}

void CounterEdges::aim() {
  if (step_ == 1 && high_s_ - low_s_ < narrow_s) step_ = 2;
  next_read_s_ = step_ == 0 ? low_s_ - guard_s : step_ == 1 ? (low_s_ + high_s_) / 2 : high_s_ + guard_s;
}

void CounterEdges::seek() {
  seeking_ = true;
  edges_s_.clear();
  next_read_s_ = unmoved_s_ + std::max(poll_s, period_s_ / 40);
}

std::optional<CounterEdge> CounterEdges::follow(double before_s, double after_s, double energy_j, bool moved) {
  if (period_s_ == 0) {
    next_read_s_ = after_s + spacing_s;
    if (!moved) return std::nullopt;
    return CounterEdge{(before_s + after_s) / 2, (after_s - before_s) / std::sqrt(12), energy_j};
  }
  if (seeking_) {
    next_read_s_ = before_s + std::max(poll_s, period_s_ / 40);
    const double width = after_s - unmoved_s_;
    if (!moved || width > 0.2 * period_s_) return std::nullopt;
    seeking_ = false;
    low_s_ = unmoved_s_;
    high_s_ = after_s;
  } else if (!moved) {
    low_s_ = std::max(low_s_, before_s);
    if (low_s_ >= high_s_) {  // later than it should be
      late_s_ = std::max(2 * late_s_, 2e-4);
      if (late_s_ > period_s_) {
        seek();
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
  } else {
    // A reading that came so late that another refresh may have been in between says nothing.
    if (after_s >= low_s_ + period_s_ - slack_s_) {
      const double passed = std::floor((before_s - high_s_) / period_s_);
      const bool certain = passed >= 1 && before_s > high_s_ + passed * period_s_ + slack_s_ &&
                           after_s < low_s_ + (passed + 1) * period_s_ - slack_s_;
      if (!certain || step_ > 2) {
        seek();
        return std::nullopt;
      }
      low_s_ += passed * period_s_;
      high_s_ += passed * period_s_;
    } else {
      high_s_ = std::min(high_s_, after_s);
      if (high_s_ < low_s_) {  // earlier than it should be
        slack_s_ = std::min(slack_s_ + (low_s_ - high_s_), period_s_ / 10);
        low_s_ = unmoved_s_;
        if (high_s_ - low_s_ > 0.2 * period_s_) {
          seek();
          return std::nullopt;
        }
      }
    }
  }
  const CounterEdge edge{(low_s_ + high_s_) / 2, std::max(high_s_ - low_s_, 2e-5) / std::sqrt(12), energy_j};
  edges_s_.push_back(edge.at_s);
  if (edges_s_.size() > 8) {
    const double refreshes = std::round((edges_s_.back() - edges_s_.front()) / period_s_);
    if (refreshes > 0) period_s_ = (edges_s_.back() - edges_s_.front()) / refreshes;
    slack_s_ = std::max(least_slack_s, 0.9 * slack_s_);
  }
  if (edges_s_.size() > edges_kept) edges_s_.pop_front();
  expect_next();
  return edge;
}

}  // namespace perseus::client
