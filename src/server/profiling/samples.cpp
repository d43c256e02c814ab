#include "server/profiling/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/median.h"
#include "server/profiling/matrix.h"

namespace perseus::profiling {
namespace {

// Prior noise of a single value, and its weight in values.
constexpr double kPriorNoise = 0.01;
constexpr double kPriorRepeats = 10, kPooledRepeats = 20;

// Tolerances for outliers: in standard deviations of noise, and at least; against samples of that clock, and against
// a curve.
constexpr double kOutlierDeviations = 6, kLeastTolerance = 0.03, kSiblingTolerance = 0.06, kCurveTolerance = 0.25;
constexpr int kEnoughRepeats = 4;
// Bounds of the exponents of the clock in time and energy.
constexpr std::pair<double, double> kTimeSlope = {-1, 0}, kEnergySlope = {-1, 2};

// Of an iteration: how much the sum of its computations may exceed it, by rounding and noise.
constexpr double kTimeSumTolerance = 0.01, kEnergySumTolerance = 0.05;

// Of one result: it is summed up on an event loop.
constexpr std::size_t kMostIterations = 1000;

// Wholesale contradiction: the share of values, and the consecutive windows that confirm it.
constexpr double kContradictingShare = 0.5;
constexpr int kFasterWindows = 2, kSlowerWindows = 5;

// Consecutive windows with all iterations throttled: this indicates a cap, not a transient thermal limit.
constexpr int kCappedWindows = 3;

// Weighted quadratic in log clock, of lower degree where there are few clocks.
class Quadratic {
 public:
  void add(double x, double y, double weight) { points_.push_back({x, y, weight}); }
  [[nodiscard]] bool empty() const { return points_.empty(); }
  void fit() {
    std::vector<double> xs;
    for (const Point& p : points_) xs.push_back(p.x);
    std::ranges::sort(xs);
    xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
    const int terms = xs.size() >= 5 ? 3 : xs.size() >= 3 ? 2 : 1;
    Matrix normal(terms, terms);
    std::vector<double> right(terms);
    for (const Point& p : points_) {
      const std::array<double, 3> row = {1, p.x, p.x * p.x};
      for (int i = 0; i < terms; ++i) {
        for (int j = 0; j < terms; ++j) normal(i, j) += p.weight * row[i] * row[j];
        right[i] += p.weight * row[i] * p.y;
      }
    }
    for (int i = 0; i < terms; ++i) normal(i, i) *= 1 + 1e-9;
    coefficients_ = Cholesky(std::move(normal)).solve(right);
  }
  /// Fits, removes outliers of the fit, and fits again, a few times.
  void fit_robustly(double deviations, double least) {
    std::vector<Point> all = points_;
    fit();
    for (int round = 0; round < 4; ++round) {
      std::vector<double> residuals;
      for (const Point& p : all) residuals.push_back(std::abs(p.y - at(p.x)));
      const double limit = std::max(least, deviations * kStddevPerMedianDistance * upper_median(residuals));
      points_.clear();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (residuals[i] <= limit) points_.push_back(all[i]);
      }
      fit();
    }
  }
  [[nodiscard]] double at(double x) const {
    double value = 0;
    for (std::size_t i = coefficients_.size(); i-- > 0;) value = value * x + coefficients_[i];
    return value;
  }

 private:
  struct Point {
    double x, y, weight;
  };
  std::vector<Point> points_;
  std::vector<double> coefficients_;
};

double log_clock(const ProfiledType& type, int clock) {
  return std::log(static_cast<double>(type.clocks[clock].value() + 1) / (type.clocks.front().value() + 1));
}

// The expected value at each clock of a type, and the allowed deviation.
class Expectation {
 public:
  /// `siblings`: by clock, the same instruction's means in other stages, each scaled to this stage.
  using Siblings = std::map<Megahertz, Running>;
  Expectation(const ProfiledType& type, const std::vector<Cell>& cells, Running Cell::*quantity, double noise,
              Siblings siblings)
      : type_(type), cells_(cells), quantity_(quantity), noise_(noise), siblings_(std::move(siblings)) {
    has_history_ = std::ranges::any_of(cells, [&](const Cell& cell) { return (cell.*quantity).count > 0; });
  }
  [[nodiscard]] bool has_history() const { return has_history_; }
  void learn(int clock, double value) { curve_.add(log_clock(type_, clock), value, 1); }
  void learned() {
    if (!curve_.empty()) curve_.fit_robustly(3, kLeastTolerance);
  }
  struct Range {
    double middle, tolerance;
    [[nodiscard]] bool contains(double value) const { return std::abs(value - middle) <= tolerance; }
  };
  [[nodiscard]] Range at(int clock) const {
    const Running& known = cells_[clock].*quantity_;
    if (known.count >= kEnoughRepeats) { return {known.mean, std::max(kLeastTolerance, kOutlierDeviations * noise_)}; }
    const auto sibling = siblings_.find(type_.clocks[clock]);
    if (sibling != siblings_.end() && sibling->second.count >= kEnoughRepeats) {
      return {sibling->second.mean, std::max(kSiblingTolerance, 1.5 * kOutlierDeviations * noise_)};
    }
    const double tolerance = std::max(kCurveTolerance, 1.5 * kOutlierDeviations * noise_);
    if (!has_history_) return {curve_.at(log_clock(type_, clock)), tolerance};
    // Between no change and the largest change that a clock can cause, from the nearest known clock.
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

 private:
  const ProfiledType& type_;
  const std::vector<Cell>& cells_;
  Running Cell::*quantity_;
  double noise_;
  Siblings siblings_;
  Quadratic curve_;
  bool has_history_ = false;
};

std::string where(const RankResult& result, int iteration) {
  const std::string replica = result.replica > 0 ? fmt::format(" (replica {})", result.replica) : "";
  return fmt::format("rank {}{}, window {}, iteration {}", result.rank, replica, result.window, iteration);
}

// How often each instruction occurs on a rank.
std::map<std::string, int, std::less<>> occurrences_on(const Layout& layout, int rank) {
  std::map<std::string, int, std::less<>> counts;
  for (const model::Action& action : layout.job.schedule.ranks[rank])
    ++counts[std::string(model::name_of(action.instruction))];
  return counts;
}

bool measured(const RankResult::Breakdown& breakdown, const std::string& instruction) {
  const auto found = breakdown.find(instruction);
  if (found == breakdown.end()) return false;
  return std::ranges::any_of(found->second, [](const std::vector<double>& values) { return !values.empty(); });
}

Status check_shape(const Layout& layout, const RankResult& result) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("profiling result of rank {}, window {}: {}", result.rank, result.window, what)};
  };
  // A client chooses the number of iterations: the published one does not receive the requested number.
  const std::size_t iterations = result.iteration_time.size();
  if (iterations < 1 || iterations > kMostIterations) {
    return bad(fmt::format("iter_time has {} iterations; must be 1 to {}", iterations, kMostIterations));
  }
  const auto expect = [&](const char* list, std::size_t size) -> Status {
    if (size == iterations) return Ok{};
    return bad(fmt::format("{} has {} iterations; iter_time has {}", list, size, iterations));
  };
  if (Status status = expect("iter_energy", result.iteration_energy.size()); !status) return status;
  if (!result.throttled.empty()) {
    if (Status status = expect("throttled", result.throttled.size()); !status) return status;
  }
  const auto counts = occurrences_on(layout, result.rank);
  for (const auto& [name, count] : counts) {
    const auto instruction = model::instruction_named(name);
    if (!measured(result.time_s, name)) {
      if (model::is_constant_time(*instruction)) continue;
      return bad(fmt::format("time_breakdown lacks {}", name));
    }
    for (const auto& [kind, breakdown] :
         {std::pair("time_breakdown", &result.time_s), std::pair("energy_breakdown", &result.energy_j),
          std::pair("begin_s", &result.begin_s), std::pair("end_s", &result.end_s)}) {
      if (!measured(*breakdown, name)) continue;
      const auto& lists = breakdown->find(name)->second;
      if (lists.size() != iterations) {
        return bad(fmt::format("{} of {} has {} iterations; iter_time has {}", kind, name, lists.size(), iterations));
      }
      for (std::size_t i = 0; i < lists.size(); ++i) {
        if (lists[i].size() == static_cast<std::size_t>(count)) continue;
        return bad(fmt::format("{} of {}, iteration {}: {} values; the rank runs it {} times", kind, name, i,
                               lists[i].size(), count));
      }
    }
  }
  for (const auto* breakdown : {&result.time_s, &result.energy_j, &result.begin_s, &result.end_s}) {
    for (const auto& [name, lists] : *breakdown) {
      const bool any = std::ranges::any_of(lists, [](const auto& values) { return !values.empty(); });
      if (any && !counts.contains(name)) return bad(fmt::format("the rank has no instruction '{}'", name));
    }
  }
  return Ok{};
}

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
  contradictions_.resize(layout.types.size());
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

void Samples::reject_outliers(const Layout& layout, const RankResult& result, std::vector<Value>& values,
                              std::vector<Rejection>& rejections) {
  std::vector<int> types;
  for (const Value& value : values) {
    if (std::ranges::find(types, value.type) == types.end()) types.push_back(value.type);
  }
  for (const int t : types) {
    const ProfiledType& type = layout.types[t];
    std::vector<Value*> own;
    for (Value& value : values) {
      if (value.type == t && value.kept) own.push_back(&value);
    }
    if (own.empty()) continue;
    const auto siblings = [&](Running Cell::*quantity) {
      Expectation::Siblings known;
      for (int other = 0; other < layout.num_types(); ++other) {
        if (other == t || layout.types[other].instruction != type.instruction) continue;
        double offset = 0, weight = 0;
        for (std::size_t c = 0; c < cells_[other].size(); ++c) {
          const int here = type.index_of(layout.types[other].clocks[c]);
          if (here < 0) continue;
          const Running &own_cell = cells_[t][here].*quantity, &cell = cells_[other][c].*quantity;
          const double w = std::min(own_cell.count, cell.count);
          weight += w;
          offset += w * (own_cell.mean - cell.mean);
        }
        if (weight < kEnoughRepeats) continue;
        for (std::size_t c = 0; c < cells_[other].size(); ++c) {
          const Running& cell = cells_[other][c].*quantity;
          if (cell.count == 0) continue;
          Running& sum = known[layout.types[other].clocks[c]];
          sum.count += cell.count;
          sum.mean += (cell.mean + offset / weight - sum.mean) * cell.count / sum.count;
        }
      }
      return known;
    };
    const auto judge = [&] {
      Expectation time(type, cells_[t], &Cell::log_time, time_noise(t), siblings(&Cell::log_time));
      Expectation energy(type, cells_[t], &Cell::log_energy, energy_noise(t), siblings(&Cell::log_energy));
      if (!time.has_history() || !energy.has_history()) {
        for (const Value* value : own) {
          if (!time.has_history()) time.learn(value->clock, value->time);
          if (!energy.has_history() && std::isfinite(value->energy)) energy.learn(value->clock, value->energy);
        }
        if (!time.has_history()) time.learned();
        if (!energy.has_history()) energy.learned();
      }
      struct Verdict {
        int faster = 0, slower = 0;
        bool contradicts = false;
        std::vector<Rejection> rejected;
      } verdict;
      for (Value* value : own) {
        const auto expected = time.at(value->clock);
        const auto expected_energy = energy.at(value->clock);
        const bool bad_time = !expected.contains(value->time);
        const bool bad_energy = std::isfinite(value->energy) && !expected_energy.contains(value->energy);
        value->kept = !bad_time && !bad_energy;
        if (value->kept) continue;
        if (bad_time) ++(value->time < expected.middle ? verdict.faster : verdict.slower);
        const auto& range = bad_time ? expected : expected_energy;
        const double seen = std::exp(bad_time ? value->time : value->energy);
        verdict.rejected.push_back(
            {result.rank, result.replica, result.window, value->iteration, std::string(value->instruction),
             value->occurrence, seen,
             fmt::format("{}: {} {} of stage {} at {} MHz {} {:.6g} {}; {:.6g} to {:.6g} was expected",
                         where(result, value->iteration), value->instruction, value->occurrence, type.stage,
                         type.clocks[value->clock].value(), bad_time ? "took" : "needed", seen, bad_time ? "s" : "J",
                         std::exp(range.middle - range.tolerance), std::exp(range.middle + range.tolerance))});
      }
      verdict.contradicts = time.has_history() && static_cast<double>(verdict.faster + verdict.slower) >
                                                      kContradictingShare * static_cast<double>(own.size());
      return verdict;
    };
    auto verdict = judge();
    Contradiction& contradiction = contradictions_[t];
    if (!verdict.contradicts) {
      contradiction = {};
    } else if (contradiction.last_window != result.window) {
      contradiction.last_window = result.window;
      const bool faster = verdict.faster > verdict.slower;
      contradiction.faster = faster ? contradiction.faster + 1 : 0;
      contradiction.slower = faster ? 0 : contradiction.slower + 1;
      if (contradiction.faster >= kFasterWindows || contradiction.slower >= kSlowerWindows) {
        contradiction = {};
        for (Cell& cell : cells_[t]) cell = {};
        verdict = judge();
        verdict.rejected.push_back(
            {result.rank, result.replica, result.window, -1, std::string(model::name_of(type.instruction)), -1, 0,
             fmt::format("rank {}: window after window contradicts what was known of {} of stage {} ({}): all earlier "
                         "samples of it are dropped",
                         result.rank, model::name_of(type.instruction), type.stage, faster ? "faster" : "slower")});
      }
    }
    rejections.insert(rejections.end(), std::make_move_iterator(verdict.rejected.begin()),
                      std::make_move_iterator(verdict.rejected.end()));
  }
}

void Samples::compare_replicas(const Layout& layout, const RankResult& result, const std::vector<Value>& values) {
  const int replicas = layout.replicas(result.rank);
  if (replicas == 1) return;
  auto& window = pending_[{result.rank, result.window}];
  std::map<int, ReplicaWindow> own;
  std::map<int, int> all;
  for (const Value& value : values) {
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

Status Samples::check(const Layout& layout, const RankResult& result) { return check_shape(layout, result); }

Result<std::vector<Rejection>> Samples::take(const Layout& layout, const RankResult& result,
                                             const ProfilingWindow& window) {
  if (Status status = check(layout, result); !status) return status.error();
  const auto iterations = static_cast<int>(result.iteration_time.size());
  std::vector<Rejection> rejections;
  const auto reject = [&](int iteration, std::string instruction, int occurrence, double value,
                          const std::string& why) {
    rejections.push_back({result.rank, result.replica, result.window, iteration, std::move(instruction), occurrence,
                          value, fmt::format("{}: {}", where(result, iteration), why)});
  };
  std::vector<Value> values;
  std::vector<double> energy_of(iterations, std::numeric_limits<double>::quiet_NaN());
  std::vector<double> computing_s(iterations), computing_j(iterations);
  std::vector<bool> broken_down(iterations, true), usable(iterations, true);
  std::vector<bool> complete(iterations, true);  ///< every computation's time is known
  int& throttled_windows = throttled_windows_[{result.rank, result.replica}];
  const bool all_throttled =
      !result.throttled.empty() && std::ranges::find(result.throttled, false) == result.throttled.end();
  if (throttled_windows < kCappedWindows) throttled_windows = all_throttled ? throttled_windows + 1 : 0;
  const bool capped = throttled_windows == kCappedWindows;
  for (int i = 0; i < iterations; ++i) {
    const double time_s = result.iteration_time[i].value();
    usable[i] = false;
    if (!capped && !result.throttled.empty() && result.throttled[i]) {
      reject(i, "", -1, time_s, "throttled, as its device says; nothing of it is used");
      continue;
    }
    if (!(std::isfinite(time_s) && time_s > 0)) {
      reject(i, "", -1, time_s, fmt::format("iter_time {} s; must be finite and > 0", time_s));
      continue;
    }
    std::map<std::string, int, std::less<>> seen;
    std::vector<Value> own;
    for (std::size_t a = 0; a < layout.type_of[result.rank].size(); ++a) {
      const int t = layout.type_of[result.rank][a];
      const ProfiledType& type = layout.types[t];
      const std::string name(model::name_of(type.instruction));
      const int occurrence = seen[name]++;
      if (!measured(result.time_s, name)) continue;
      const double seconds = result.time_s.at(name)[i][occurrence];
      const bool with_energy = measured(result.energy_j, name);
      const double joules = with_energy ? result.energy_j.at(name)[i][occurrence] : 0;
      if (!with_energy && type.has_clock()) broken_down[i] = false;
      if (std::isfinite(seconds)) computing_s[i] += seconds;
      if (std::isfinite(joules)) computing_j[i] += joules;
      if (seconds == 0) {
        reject(i, name, occurrence, seconds,
               fmt::format("{} {}: its time at {} MHz is not known, as its clock came too late", name, occurrence,
                           window.clocks[result.rank][a].value()));
        complete[i] = false;
        continue;
      }
      if (!(std::isfinite(seconds) && seconds > 0)) {
        reject(i, name, occurrence, seconds,
               fmt::format("{} {}: {} s; must be finite and > 0", name, occurrence, seconds));
        continue;
      }
      if (with_energy && !(std::isfinite(joules) && joules > 0)) {
        reject(i, name, occurrence, joules,
               fmt::format("{} {}: {} J; must be finite and > 0", name, occurrence, joules));
        continue;
      }
      own.push_back({t, type.index_of(window.clocks[result.rank][a]), i, occurrence, model::name_of(type.instruction),
                     std::log(seconds), with_energy ? std::log(joules) : std::numeric_limits<double>::quiet_NaN(),
                     true});
    }
    if (computing_s[i] > time_s * (1 + kTimeSumTolerance)) {
      reject(i, "", -1, time_s,
             fmt::format("its computations take {:.6g} s together; at most iter_time, {:.6g} s, was expected",
                         computing_s[i], time_s));
      continue;
    }
    usable[i] = true;
    const double energy_j = result.iteration_energy[i].value();
    if (!(std::isfinite(energy_j) && energy_j > 0)) {
      reject(i, "", -1, energy_j, fmt::format("iter_energy {} J; must be finite and > 0", energy_j));
    } else if (computing_j[i] > energy_j * (1 + kEnergySumTolerance)) {
      reject(i, "", -1, energy_j,
             fmt::format("its computations need {:.6g} J together; at most iter_energy, {:.6g} J, was expected",
                         computing_j[i], energy_j));
      for (Value& value : own) value.energy = std::numeric_limits<double>::quiet_NaN();
      if (broken_down[i]) continue;  // this iteration's energies are unusable, and its times doubtful
    } else {
      energy_of[i] = energy_j;
    }
    values.insert(values.end(), own.begin(), own.end());
  }

  reject_outliers(layout, result, values, rejections);
  if (window.warm_up) return rejections;
  compare_replicas(layout, result, values);
  for (const Value& value : values) {
    if (!value.kept) continue;
    Cell& cell = cells_[value.type][value.clock];
    cell.log_time.add(value.time);
    if (std::isfinite(value.energy)) cell.log_energy.add(value.energy);
  }
  for (int i = 0; i < iterations; ++i) {
    const auto left_out = [&](const Value& value) { return value.iteration == i && !value.kept; };
    if (!usable[i] || !complete[i] || !std::isfinite(energy_of[i])) continue;
    // One throttled computation invalidates the sum that includes it.
    if (std::ranges::any_of(values, left_out)) continue;
    IterationEnergy row{result.rank,
                        result.window,
                        i,
                        energy_of[i],
                        result.iteration_time[i].value() - computing_s[i],
                        computing_j[i],
                        static_cast<bool>(broken_down[i])};
    if (!row.broken_down) by_iteration_ = true;
    iterations_.push_back(row);
  }
  return rejections;
}

}  // namespace perseus::profiling
