#include "evaluation/what_if/shared_factors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/median.h"

namespace perseus::what_if {
namespace {

using model::Instruction;
using Lengths = std::vector<std::vector<std::vector<double>>>;  // by step, pipeline, microbatch

constexpr double kShortest_s = 1e-12;
constexpr double kSignificant = 2.33;     ///< standard deviations: 1 %
constexpr std::size_t kMostPoints = 200;  ///< of a trend
constexpr std::size_t kLeastMicrobatches = 16;
constexpr double kSure = 5;           ///< standard errors of a growth, and of a pipeline's factor
constexpr double kLeastVariance = 6;  ///< of the shared factor, over the one that noise of the ranks explains

class Sharing {
 public:
  Sharing(const TracedJob& job, const std::vector<bool>& left_out) : job_(job), left_out_(left_out) {
    std::map<std::tuple<int, Instruction, int>, std::vector<double>> times;
    for_each_kept_op([&](int, int d, const TracedOp& op) {
      times[{op.action.stage, op.action.instruction, d}].push_back(std::max(op.duration_s, kShortest_s));
    });
    std::map<std::pair<int, Instruction>, std::vector<double>> pipelines;
    for (const auto& [key, all] : times) {
      const auto& [stage, instruction, d] = key;
      own_[key] = median(all);
      pipelines[{stage, instruction}].push_back(own_[key]);
    }
    for (const auto& [key, all] : own_) {
      const auto& [stage, instruction, d] = key;
      // A pipeline of one rank may have long sequences or a slow worker: its timeline cannot tell.
      usual_[key] = job.ranks > 1 ? lower_median(pipelines[{stage, instruction}]) : own_[key];
    }
  }

  SharedFactors run() {
    SharedFactors shared;
    Lengths length = lengths();
    shared.drift = trend(length);
    for_each_of(length, [&](int s, int, double& of_microbatch) { of_microbatch /= shared.drift_of(s); });
    shared.pipeline = slow_pipelines(length);
    double sum = 0, count = 0, variance = 0;
    for_each_of(length, [&](int, int d, double& of_microbatch) {
      of_microbatch /= shared.pipeline_of(d);
      sum += of_microbatch, ++count;
    });
    std::vector<double> all;
    for_each_of(length, [&](int, int, double& of_microbatch) {
      of_microbatch *= count / sum;
      variance += (of_microbatch - 1) * (of_microbatch - 1) / count;
      all.push_back(of_microbatch);
    });
    if (all.size() < kLeastMicrobatches || variance < kLeastSpread * kLeastSpread ||
        variance < kLeastVariance * noise())
      return shared;
    const auto high = all.begin() + static_cast<std::ptrdiff_t>(0.95 * static_cast<double>(all.size() - 1));
    std::ranges::nth_element(all, high);
    if (*high < 1 + kLeastSpread) return shared;  // a few: a rank that is slow at times shows the same
    shared.longest = *high;
    shared.length = std::move(length);
    return shared;
  }

 private:
  template <class Visit>
  void for_each_kept_op(Visit visit) const {
    for_each_op(job_, [&](const TracedOp& op, TracedWorker worker, int s) {
      if (!left_out_[s]) visit(s, worker.pipeline, op);
    });
  }
  template <class Visit>
  void for_each_of(Lengths& length, Visit visit) const {
    for (int s = 0; s < static_cast<int>(length.size()); ++s) {
      for (int d = 0; d < job_.pipelines && !left_out_[s]; ++d) {
        for (double& of_microbatch : length[s][d]) visit(s, d, of_microbatch);
      }
    }
  }

  [[nodiscard]] Lengths lengths() const {
    std::vector<std::vector<std::vector<std::vector<double>>>> ratios(
        job_.steps.size(), {static_cast<std::size_t>(job_.pipelines),
                            std::vector<std::vector<double>>(static_cast<std::size_t>(job_.microbatches))});
    for_each_kept_op([&](int s, int d, const TracedOp& op) {
      ratios[s][d][op.action.microbatch].push_back(std::max(op.duration_s, kShortest_s) /
                                                   usual_.at({op.action.stage, op.action.instruction, d}));
    });
    Lengths length(ratios.size());
    for (std::size_t s = 0; s < ratios.size(); ++s) {
      for (auto& pipeline : ratios[s]) {
        auto& of_pipeline = length[s].emplace_back();
        for (auto& of_microbatch : pipeline)
          of_pipeline.push_back(left_out_[s] ? 1 : lower_median(std::move(of_microbatch)));
      }
    }
    return length;
  }

  /// Factors of the pipelines; empty: none is slow as a whole.
  [[nodiscard]] std::vector<double> slow_pipelines(const Lengths& length) const {
    if (job_.pipelines < 2 || job_.ranks < 2) return {};  // of one rank: a slow worker
    struct Level {
      std::vector<double> over_usual;  ///< of the same step, per step
      double within = 0;               ///< variance of its microbatches, summed over steps
    };
    std::vector<Level> levels(job_.pipelines);
    for (std::size_t s = 0; s < length.size(); ++s) {
      if (left_out_[s]) continue;
      std::vector<double> middles;
      for (const auto& of_pipeline : length[s]) middles.push_back(median(of_pipeline));
      const double usual = lower_median(middles);
      for (int d = 0; d < job_.pipelines; ++d) {
        levels[d].over_usual.push_back(middles[d] / usual);
        levels[d].within += relative_variance(length[s][d]);
      }
    }
    double variance = 0;  // of a pipeline's median
    for (Level& level : levels) {
      const auto steps = static_cast<double>(level.over_usual.size());
      const double microbatches = std::max(1, job_.microbatches - 1);
      variance = std::max({variance, 1.57 * level.within / steps / microbatches / steps,
                           1.57 * relative_variance(level.over_usual) / std::max(1.0, steps - 1)});
    }
    const double least = std::max(kLeastGrowth, kSure * std::sqrt(2 * variance));
    std::vector<double> factors;
    bool found = false;
    for (const Level& level : levels) {
      const double factor = median(level.over_usual);
      factors.push_back(factor > 1 + least ? factor : 1);
      found |= factor > 1 + least;
    }
    return found ? factors : std::vector<double>();
  }

  static double relative_variance(const std::vector<double>& values) {
    double sum = 0, squares = 0;
    for (const double v : values) sum += v, squares += v * v;
    const auto count = static_cast<double>(values.size());
    return std::max(0.0, squares * count / (sum * sum) - 1);
  }

  /// Growth over the steps, from 1 on; empty: none.
  [[nodiscard]] std::vector<double> trend(const Lengths& length) const {
    const std::size_t steps = length.size(), group = (steps + kMostPoints - 1) / kMostPoints;
    std::vector<std::pair<double, double>> points;  // mean number of a group of steps, its level
    double within = 0;                              // relative variance of a level, by its microbatches
    for (std::size_t first = 0; first < steps; first += group) {
      const std::size_t end = std::min(steps, first + group);
      std::vector<double> all;
      for (std::size_t s = first; s < end; ++s) {
        if (left_out_[s]) continue;
        for (const auto& pipeline : length[s]) all.insert(all.end(), pipeline.begin(), pipeline.end());
      }
      if (all.empty()) continue;
      within += 1.57 * relative_variance(all) / std::max(1.0, static_cast<double>(all.size()) - 1);
      points.emplace_back(static_cast<double>(first + end - 1) / 2, median(std::move(all)));
    }
    std::vector<double> slopes;
    double rises = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (std::size_t j = i + 1; j < points.size(); ++j) {
        const double rise = points[j].second - points[i].second;
        rises += rise > 0 ? 1 : rise < 0 ? -1 : 0;
        slopes.push_back(rise / (points[j].first - points[i].first));
      }
    }
    const auto n = static_cast<double>(points.size());
    if (rises <= kSignificant * std::sqrt(n * (n - 1) * (2 * n + 5) / 18)) return {};
    const double slope = median(std::move(slopes));
    std::vector<double> starts;
    for (const auto& [at, level] : points) starts.push_back(level - slope * at);
    const double start = median(std::move(starts));
    if (start <= 0) return {};
    double scatter = 0;
    for (const auto& [at, level] : points) scatter += std::pow(level / (start + slope * at) - 1, 2);
    const double variance = std::max(within / n, scatter / std::max(1.0, n - 2));  // of a level
    const double growth = slope / start * static_cast<double>(steps - 1);
    if (growth < std::max(kLeastGrowth, kSure * std::sqrt(12 * variance / n))) return {};
    std::vector<double> drift;
    for (std::size_t s = 0; s < steps; ++s) drift.push_back(1 + slope / start * static_cast<double>(s));
    return drift;
  }

  /// Variance of a microbatch's factor if its computations varied independently: that of a median of so many.
  [[nodiscard]] double noise() const {
    struct Sums {
      double count = 0, sum = 0, squares = 0;
    };
    std::map<std::tuple<int, int, int>, Sums> microbatches;  // by step, pipeline, number
    for_each_kept_op([&](int s, int d, const TracedOp& op) {
      const double own = op.duration_s / own_.at({op.action.stage, op.action.instruction, d});
      Sums& sums = microbatches[{s, d, op.action.microbatch}];
      ++sums.count, sums.sum += own, sums.squares += own * own;
    });
    double variance = 0;
    for (const auto& [microbatch, s] : microbatches) {
      if (s.count < 2 || s.sum <= 0) return HUGE_VAL;  // alone, a computation shares nothing
      const double mean = s.sum / s.count;
      variance += 1.57 / s.count * (s.squares / s.count - mean * mean) / (mean * mean) * s.count / (s.count - 1);
    }
    return variance / static_cast<double>(microbatches.size());
  }

  const TracedJob& job_;
  const std::vector<bool>& left_out_;
  std::map<std::tuple<int, Instruction, int>, double> own_, usual_;  ///< by stage, instruction, pipeline
};

}  // namespace

SharedFactors shared_factors(const TracedJob& job, const std::vector<bool>& left_out) {
  return Sharing(job, left_out).run();
}

}  // namespace perseus::what_if
