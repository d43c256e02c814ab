#include "server/profiling/samples.h"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <iterator>

#include "base/median.h"

namespace perseus::profiling {
namespace {

// Prior noise of a single value, and its weight in values.
constexpr double kPriorNoise = 0.01;
constexpr double kPriorRepeats = 10, kPooledRepeats = 20;

// Wholesale contradiction: the share of values, and the consecutive windows that confirm it.
constexpr double kContradictingShare = 0.5;
constexpr int kFasterWindows = 2, kSlowerWindows = 5;

// Consecutive windows with all iterations throttled: this indicates a cap, not a transient thermal limit.
constexpr int kCappedWindows = 3;

}  // namespace

void Running::add(double value) {
  ++count;
  const double before = value - mean;
  mean += before / count;
  squares += before * (value - mean);
}

Samples::Samples(const Layout& layout) {
  for (const ProfiledType& type : layout.types) {
    cells_.emplace_back(type.clocks.size());
    const auto replicas = static_cast<std::size_t>(layout.replicas(type.rank));
    replica_times_.emplace_back(replicas);
    replica_energies_.emplace_back(replicas);
  }
  at_known_clocks_.resize(layout.types.size());
  at_others_.resize(layout.types.size());
}

double Samples::noise(int type, Running Cell::*quantity) const {
  const auto repeats = [&](int t) {
    double squares = 0, count = 0;
    for (const Cell& cell : cells_[t]) {
      const Running& known = cell.*quantity;
      squares += known.squares;
      count += std::max(0, known.count - 1);
    }
    return std::pair(squares, count);
  };
  double squares = kPriorRepeats * kPriorNoise * kPriorNoise, count = kPriorRepeats;
  for (int t = 0; t < static_cast<int>(cells_.size()); ++t) {
    const auto [s, n] = repeats(t);
    squares += s;
    count += n;
  }
  const auto [own_squares, own_count] = repeats(type);
  return std::sqrt((kPooledRepeats * squares / count + own_squares) / (kPooledRepeats + own_count));
}

/// By clock: the means of the other stages' same instruction, each with the offset between the two stages at the
/// nearest clocks that both have measured: real stages differ by clock, so one offset for all of them would reject what
/// is true.
std::map<Megahertz, Running> Samples::siblings(const Layout& layout, int type, Running Cell::*quantity) const {
  struct Pair {
    int clock;
    double offset, weight;
  };
  std::map<Megahertz, Running> known;
  for (int other = 0; other < layout.num_types(); ++other) {
    if (other == type || layout.types[other].instruction != layout.types[type].instruction) continue;
    const std::vector<Megahertz>& clocks = layout.types[other].clocks;
    std::vector<Pair> pairs;
    for (std::size_t c = 0; c < clocks.size(); ++c) {
      const int here = layout.types[type].index_of(clocks[c]);
      if (here < 0) continue;
      const Running &own_cell = cells_[type][here].*quantity, &cell = cells_[other][c].*quantity;
      const int weight = std::min(own_cell.count, cell.count);
      if (weight > 0) pairs.push_back({clocks[c].value(), own_cell.mean - cell.mean, static_cast<double>(weight)});
    }
    for (std::size_t c = 0; c < clocks.size(); ++c) {
      const Running& cell = cells_[other][c].*quantity;
      if (cell.count == 0) continue;
      std::ranges::stable_sort(pairs, {}, [&](const Pair& pair) { return std::abs(pair.clock - clocks[c].value()); });
      double offset = 0, weight = 0;
      for (const Pair& pair : pairs) {
        if (weight >= kEnoughRepeats) break;
        offset += pair.weight * pair.offset;
        weight += pair.weight;
      }
      if (weight < kEnoughRepeats) break;
      Running& sum = known[clocks[c]];
      sum.count += cell.count;
      sum.mean += (cell.mean + offset / weight - sum.mean) * cell.count / sum.count;
    }
  }
  return known;
}

/// Marks each of these values of the type as kept or not.
Samples::Verdict Samples::judge(const Layout& layout, const RankResult& result, int type,
                                const std::vector<SampledValue*>& values) const {
  const ProfiledType& profiled = layout.types[type];
  Expectation time(profiled, cells_[type], &Cell::log_time, time_noise(type), siblings(layout, type, &Cell::log_time));
  Expectation energy(profiled, cells_[type], &Cell::log_energy, energy_noise(type),
                     siblings(layout, type, &Cell::log_energy));
  for (const SampledValue* value : values) {
    if (!time.has_history()) time.learn(value->clock, value->time);
    if (!energy.has_history() && std::isfinite(value->energy)) energy.learn(value->clock, value->energy);
  }
  if (!time.has_history()) time.learned();
  if (!energy.has_history()) energy.learned();
  Verdict verdict;
  for (SampledValue* value : values) {
    const auto expected = time.at(value->clock);
    const auto expected_energy = energy.at(value->clock);
    const bool bad_time = !expected.contains(value->time);
    const bool bad_energy = std::isfinite(value->energy) && !expected_energy.contains(value->energy);
    value->kept = !bad_time && !bad_energy;
    Tally& tally = expected.of_this_clock ? verdict.at_known_clocks : verdict.at_others;
    // A first result contradicts nothing.
    if (time.has_history()) ++tally.values;
    if (value->kept) continue;
    // Throttling makes values slower, and of less energy.
    const bool like_throttled = bad_time ? value->time > expected.middle : value->energy < expected_energy.middle;
    ++(like_throttled ? tally.slower : tally.faster);
    const auto& range = bad_time ? expected : expected_energy;
    const double seen = std::exp(bad_time ? value->time : value->energy);
    verdict.rejected.push_back(
        {result.rank, result.replica, result.window, value->iteration, std::string(value->instruction),
         value->occurrence, seen,
         fmt::format("{}: {} {} of stage {} at {} MHz {} {:.6g} {}; {:.6g} to {:.6g} was expected",
                     where(result, value->iteration), value->instruction, value->occurrence, profiled.stage,
                     profiled.clocks[value->clock].value(), bad_time ? "took" : "needed", seen, bad_time ? "s" : "J",
                     std::exp(range.middle - range.tolerance), std::exp(range.middle + range.tolerance))});
  }
  return verdict;
}

/// As if the type had no earlier samples.
Samples::Verdict Samples::judge_alone(const Layout& layout, const RankResult& result, int type,
                                      const std::vector<SampledValue*>& values) {
  const std::vector<Cell> known = std::exchange(cells_[type], std::vector<Cell>(cells_[type].size()));
  Verdict verdict = judge(layout, result, type, values);
  cells_[type] = known;
  return verdict;
}

bool Samples::Tally::contradicts() const { return faster + slower > kContradictingShare * values; }

bool Samples::Contradiction::persists(int window, const Tally& tally) {
  if (tally.values == 0) return false;
  if (!tally.contradicts()) {
    *this = {};
    return false;
  }
  if (last_window == window) return false;
  last_window = window;
  const bool is_faster = tally.faster > tally.slower;
  faster = is_faster ? faster + 1 : 0;
  slower = is_faster ? 0 : slower + 1;
  if (faster < kFasterWindows && slower < kSlowerWindows) return false;
  *this = {};
  return true;
}

void Samples::reject_outliers(const Layout& layout, const RankResult& result, std::vector<SampledValue>& values,
                              std::vector<Rejection>& rejections) {
  std::vector<int> types;
  for (const SampledValue& value : values) {
    if (std::ranges::find(types, value.type) == types.end()) types.push_back(value.type);
  }
  for (const int t : types) {
    std::vector<SampledValue*> own;
    for (SampledValue& value : values) {
      if (value.type == t && value.kept) own.push_back(&value);
    }
    if (own.empty()) continue;
    Verdict verdict = judge(layout, result, t, own);
    const bool faster = verdict.at_known_clocks.faster > verdict.at_known_clocks.slower;
    const bool wrongly_expected = at_others_[t].persists(result.window, verdict.at_others);
    if (at_known_clocks_[t].persists(result.window, verdict.at_known_clocks)) {
      for (Cell& cell : cells_[t]) cell = {};
      verdict = judge(layout, result, t, own);
      const ProfiledType& type = layout.types[t];
      verdict.rejected.push_back(
          {result.rank, result.replica, result.window, -1, std::string(model::name_of(type.instruction)), -1, 0,
           fmt::format("rank {}: several windows contradict the earlier samples of {} of stage {} ({}): all earlier "
                       "samples of it are discarded",
                       result.rank, model::name_of(type.instruction), type.stage, faster ? "faster" : "slower")});
    } else if (wrongly_expected) {
      // Each clock is then judged by its own samples: those that it has stay.
      std::vector<SampledValue*> known, others;
      for (SampledValue* value : own) {
        (cells_[t][value->clock].log_time.count >= kEnoughRepeats ? known : others).push_back(value);
      }
      verdict = judge_alone(layout, result, t, others);
      const Verdict of_known = judge(layout, result, t, known);
      verdict.rejected.insert(verdict.rejected.end(), of_known.rejected.begin(), of_known.rejected.end());
    }
    rejections.insert(rejections.end(), std::make_move_iterator(verdict.rejected.begin()),
                      std::make_move_iterator(verdict.rejected.end()));
  }
}

void Samples::compare_replicas(const Layout& layout, const RankResult& result,
                               const std::vector<SampledValue>& values) {
  const int replicas = layout.replicas(result.rank);
  if (replicas == 1) return;
  auto& window = pending_[{result.rank, result.window}];
  std::map<int, ReplicaWindow> own;
  std::map<int, int> all;
  for (const SampledValue& value : values) {
    ++all[value.type];
    if (!value.kept) continue;
    own[value.type].time.add(value.time);
    if (std::isfinite(value.energy)) own[value.type].energy.add(value.energy);
  }
  window.push_back({});
  for (const auto& [type, sums] : own) {
    if (sums.time.count == all[type]) window.back()[type] = sums;  // otherwise its mean is of other clocks
  }
  window.back()[-1].time.mean = result.replica;
  if (static_cast<int>(window.size()) < replicas) return;
  for (int t = 0; t < layout.num_types(); ++t) {
    if (layout.types[t].rank != result.rank) continue;
    Running time, energy;
    for (const auto& one : window) {
      const auto found = one.find(t);
      if (found == one.end()) continue;
      time.add(found->second.time.mean);
      if (found->second.energy.count > 0) energy.add(found->second.energy.mean);
    }
    for (const auto& one : window) {
      const auto found = one.find(t);
      if (found == one.end()) continue;
      const int replica = static_cast<int>(one.at(-1).time.mean);
      replica_times_[t][replica].add(found->second.time.mean - time.mean);
      if (found->second.energy.count > 0) replica_energies_[t][replica].add(found->second.energy.mean - energy.mean);
    }
  }
  pending_.erase({result.rank, result.window});
}

bool Samples::is_capped(const RankResult& result) {
  int& windows = throttled_windows_[{result.rank, result.replica}];
  const bool all_throttled =
      !result.throttled.empty() && std::ranges::find(result.throttled, false) == result.throttled.end();
  if (windows < kCappedWindows) windows = all_throttled ? windows + 1 : 0;
  return windows == kCappedWindows;
}

Status Samples::check(const Layout& layout, const RankResult& result) { return check_shape(layout, result); }

Result<std::vector<Rejection>> Samples::take(const Layout& layout, const RankResult& result,
                                             const ProfilingWindow& window) {
  if (Status status = check(layout, result); !status) return status.error();
  auto [values, iterations, rejections] = read_values(layout, result, window, is_capped(result));
  reject_outliers(layout, result, values, rejections);
  if (window.warm_up) return std::move(rejections);
  compare_replicas(layout, result, values);
  for (const SampledValue& value : values) {
    if (!value.kept) continue;
    Cell& cell = cells_[value.type][value.clock];
    cell.log_time.add(value.time);
    if (std::isfinite(value.energy)) cell.log_energy.add(value.energy);
  }
  for (int i = 0; i < static_cast<int>(iterations.size()); ++i) {
    const ReadIteration& read = iterations[i];
    if (!read.usable || !read.complete || !std::isfinite(read.energy_j)) continue;
    // One throttled computation invalidates the sum that includes it.
    if (std::ranges::any_of(values, [&](const SampledValue& v) { return v.iteration == i && !v.kept; })) continue;
    if (!read.broken_down) by_iteration_ = true;
    iterations_.push_back({result.rank, result.window, i, read.energy_j,
                           result.iteration_time[i].value() - read.computing_s, read.computing_j, read.broken_down});
  }
  return std::move(rejections);
}

namespace {

// Tolerances for outliers: in standard deviations of noise, and at least; against samples of that clock, and against
// a curve.
constexpr double kOutlierDeviations = 6, kLeastTolerance = 0.03, kSiblingTolerance = 0.06, kCurveTolerance = 0.25;
// The same among the values from which a curve is learned; fits after the first.
constexpr double kLearningDeviations = 3;
constexpr int kRobustFits = 4;
// Bounds of the exponents of the clock in time and energy.
constexpr std::pair<double, double> kTimeSlope = {-1, 0}, kEnergySlope = {-1, 2};

double log_clock(const ProfiledType& type, int clock) {
  return std::log(static_cast<double>(type.clocks[clock].value() + 1) / (type.clocks.front().value() + 1));
}

}  // namespace

Expectation::Expectation(const ProfiledType& type, const std::vector<Cell>& cells, Running Cell::*quantity,
                         double noise, Siblings siblings)
    : type_(type), cells_(cells), quantity_(quantity), noise_(noise), siblings_(std::move(siblings)) {
  has_history_ = std::ranges::any_of(cells, [&](const Cell& cell) { return (cell.*quantity).count > 0; });
}

void Expectation::learn(int clock, double value) { points_.push_back({log_clock(type_, clock), value}); }

/// The least squares fit: a quadratic, or of lower degree where there are few clocks.
void Expectation::fit(const std::vector<Point>& points) {
  std::vector<double> xs;
  for (const Point& p : points) xs.push_back(p.x);
  std::ranges::sort(xs);
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  const int terms = xs.size() >= 5 ? 3 : xs.size() >= 3 ? 2 : 1;
  Matrix design(static_cast<Eigen::Index>(points.size()), terms);
  Vector values(design.rows());
  for (Eigen::Index i = 0; i < design.rows(); ++i) {
    for (int power = 0; power < terms; ++power) design(i, power) = std::pow(points[i].x, power);
    values[i] = points[i].y;
  }
  coefficients_ = design.householderQr().solve(values);
}

double Expectation::curve_at(double x) const {
  double value = 0;
  for (Eigen::Index i = coefficients_.size(); i-- > 0;) value = value * x + coefficients_[i];
  return value;
}

/// Fits, leaves out outliers of the fit, and fits again, a few times.
void Expectation::learned() {
  if (points_.empty()) return;
  fit(points_);
  for (int round = 0; round < kRobustFits; ++round) {
    std::vector<double> residuals;
    for (const Point& p : points_) residuals.push_back(std::abs(p.y - curve_at(p.x)));
    const double limit =
        std::max(kLeastTolerance, kLearningDeviations * kStddevPerMedianDistance * upper_median(residuals));
    std::vector<Point> kept;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (residuals[i] <= limit) kept.push_back(points_[i]);
    }
    fit(kept);
  }
}

Expectation::Range Expectation::at(int clock) const {
  const Running& known = cells_[clock].*quantity_;
  if (known.count >= kEnoughRepeats) {
    return {known.mean, std::max(kLeastTolerance, kOutlierDeviations * noise_), true};
  }
  const auto sibling = siblings_.find(type_.clocks[clock]);
  if (sibling != siblings_.end() && sibling->second.count >= kEnoughRepeats) {
    return {sibling->second.mean, std::max(kSiblingTolerance, 1.5 * kOutlierDeviations * noise_)};
  }
  const double tolerance = std::max(kCurveTolerance, 1.5 * kOutlierDeviations * noise_);
  if (has_history_) return from_nearest(clock, tolerance);
  return {curve_at(log_clock(type_, clock)), tolerance};
}

/// Between no change and the largest change that a clock can cause, from the nearest known clock.
Expectation::Range Expectation::from_nearest(int clock, double tolerance) const {
  const auto [least, most] = quantity_ == &Cell::log_time ? kTimeSlope : kEnergySlope;
  double nearest = INFINITY, middle = 0;
  for (int c = 0; c < static_cast<int>(cells_.size()); ++c) {
    const Running& other = cells_[c].*quantity_;
    const double apart = log_clock(type_, clock) - log_clock(type_, c);
    if (other.count == 0 || std::abs(apart) >= std::abs(nearest)) continue;
    nearest = apart;
    middle = other.mean + 0.5 * (least + most) * apart;
  }
  return {middle, tolerance + 0.5 * (most - least) * std::abs(nearest)};
}

}  // namespace perseus::profiling
