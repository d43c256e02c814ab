#include "calibration/fit_timing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/result.h"
#include "calibration/least_squares.h"

namespace perseus {
namespace {

constexpr double loading_spread = 0.1;  // relative to what was measured
constexpr double tail_spread = 0.005;   // relative to the iteration
constexpr double least_noise = 1e-9;    // relative
constexpr int most_rounds = 30;
constexpr std::array first_latencies_s = {0.0, 0.001, 0.003, 0.006, 0.012, 0.025};

struct Prior {
  double mean = 0;
  double weight = 0;  ///< 1 / standard deviation; 0: nothing is known
};

class Fit {
 public:
  Fit(TimedPipeline& pipeline, std::span<const TimedPlan> plans)
      : pipeline_(pipeline), plans_(plans), n_(pipeline.num_unknowns()), priors_(n_) {
    double mean = 0;
    for (const TimedPlan& plan : plans) mean += plan.measured_s / static_cast<double>(plans.size());
    for (int k = 1; k < pipeline.tail_unknown(); ++k) priors_[k] = {1, 1 / loading_spread};
    priors_[pipeline.tail_unknown()] = {0, 1 / (tail_spread * mean)};
  }

  struct Point {
    std::vector<double> unknowns;
    std::vector<double> errors;                  ///< relative, per plan
    std::vector<std::vector<double>> gradients;  ///< of them
    double objective = 0;
  };

  Point at(std::vector<double> unknowns, double noise) {
    Point point{std::move(unknowns), {}, {}, 0};
    for (const TimedPlan& plan : plans_) {
      auto makespan = pipeline_.at(plan.durations, point.unknowns);
      for (double& g : makespan.gradient) g /= plan.measured_s;
      point.errors.push_back(makespan.seconds / plan.measured_s - 1);
      point.gradients.push_back(std::move(makespan.gradient));
      point.objective += std::pow(point.errors.back() / noise, 2);
    }
    for (int k = 0; k < n_; ++k)
      point.objective += std::pow((point.unknowns[k] - priors_[k].mean) * priors_[k].weight, 2);
    return point;
  }

  /// Normal equations of a step from `point`, over the unknowns that may move; the others stay where they are.
  LeastSquares equations(const Point& point, double noise, const std::vector<char>& held) const {
    LeastSquares system(n_);
    std::vector<Term> row;
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      row.clear();
      for (int k = 0; k < n_; ++k) {
        if (held[k] == 0) row.push_back({k, point.gradients[p][k]});
      }
      system.add(row, -point.errors[p], 1 / noise);
    }
    for (int k = 0; k < n_; ++k) {
      const Term term{k, 1};
      if (held[k] != 0)
        system.add({&term, 1}, 0, 1);
      else
        system.add({&term, 1}, priors_[k].mean - point.unknowns[k], priors_[k].weight);
    }
    return system;
  }

  /// Unknowns at 0 that would rather be negative.
  std::vector<char> held_at_zero(const Point& point, double noise) const {
    std::vector<char> held(n_);
    for (int k = 0; k < n_; ++k) {
      if (point.unknowns[k] > 0) continue;
      double slope = (point.unknowns[k] - priors_[k].mean) * priors_[k].weight * priors_[k].weight;
      for (std::size_t p = 0; p < plans_.size(); ++p)
        slope += point.errors[p] * point.gradients[p][k] / (noise * noise);
      held[k] = slope >= 0 ? 1 : 0;
    }
    return held;
  }

  Point descend(Point point, double noise) {
    constexpr int most_steps = 60;
    constexpr double worth_it = 1e-7, most_damping = 1e12;
    double damping = 1e-3;
    for (int step = 0; step < most_steps; ++step) {
      const std::vector<char> held = held_at_zero(point, noise);
      const double before = point.objective;
      bool better = false;
      for (; !better && damping < most_damping; damping *= better ? 0.1 : 10) {
        LeastSquares system = equations(point, noise, held);
        // Marquardt's damping: relative to what the data say of each unknown.
        for (int k = 0; k < n_; ++k) {
          double square = 1e-12 + std::pow(priors_[k].weight, 2);
          for (const auto& gradient : point.gradients) square += std::pow(gradient[k] / noise, 2);
          const Term term{k, 1};
          system.add({&term, 1}, 0, std::sqrt(damping * square));
        }
        std::vector<double> next = system.solve();
        for (int k = 0; k < n_; ++k) next[k] = std::max(0.0, point.unknowns[k] + (held[k] != 0 ? 0 : next[k]));
        Point candidate = at(std::move(next), noise);
        if (candidate.objective < point.objective) {
          point = std::move(candidate);
          better = true;
        }
      }
      damping = std::max(damping, 1e-9);
      if (!better || point.objective > before * (1 - worth_it)) break;
    }
    return point;
  }

  std::vector<double> stddev(const Point& point, double noise) const {
    const LeastSquares system = equations(point, noise, std::vector<char>(n_));
    const std::vector<double> covariance = system.covariance(point.unknowns);
    std::vector<double> result(n_);
    for (int k = 0; k < n_; ++k) result[k] = std::sqrt(covariance[static_cast<std::size_t>(k) * (n_ + 1)]);
    return result;
  }

 private:
  TimedPipeline& pipeline_;
  std::span<const TimedPlan> plans_;
  int n_;
  std::vector<Prior> priors_;
};

double rms(const std::vector<double>& errors) {
  double squares = 0;
  for (const double e : errors) squares += e * e;
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

}  // namespace

TimingFit fit_timing(TimedPipeline& pipeline, std::span<const TimedPlan> plans) {
  PERSEUS_CHECK(!plans.empty(), "nothing to fit to");
  constexpr double first_noise = 1e-3;
  constexpr std::size_t finalists = 4;
  Fit fit(pipeline, plans);
  std::vector<Fit::Point> found;
  for (const double latency : first_latencies_s) {
    std::vector<double> start(pipeline.num_unknowns(), 1);
    start.front() = latency;
    start.back() = 0;
    const Fit::Point without_tail = fit.at(start, first_noise);
    found.push_back(fit.descend(without_tail, first_noise));
    double missing_s = 0;
    for (std::size_t p = 0; p < plans.size(); ++p)
      missing_s -= without_tail.errors[p] * plans[p].measured_s / static_cast<double>(plans.size());
    if (missing_s <= 0) continue;
    start.back() = missing_s;
    found.push_back(fit.descend(fit.at(std::move(start), first_noise), first_noise));
  }
  // The noise is not known yet: those that leave least over must not lose against those that the priors like.
  std::ranges::stable_sort(found, {}, [](const Fit::Point& point) { return rms(point.errors); });
  found.resize(std::min(finalists, found.size()));

  TimingFit best;
  for (Fit::Point& point : found) {
    double noise = first_noise;
    for (int round = 0; round < most_rounds; ++round) {
      const double next = std::max(rms(point.errors), least_noise);
      if (round > 0 && std::abs(next / noise - 1) < 0.02) break;
      noise = next;
      point = fit.descend(fit.at(point.unknowns, noise), noise);
    }
    // Minus twice the logarithm of the posterior, the noise being one more unknown.
    const double objective = point.objective + 2 * static_cast<double>(plans.size()) * std::log(noise);
    if (!best.unknowns.empty() && objective >= best.objective) continue;
    best = {point.unknowns, fit.stddev(point, noise), rms(point.errors), objective};
  }
  return best;
}

}  // namespace perseus
