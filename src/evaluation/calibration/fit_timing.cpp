#include "evaluation/calibration/fit_timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/median.h"
#include "base/result.h"
#include "evaluation/calibration/least_squares.h"

namespace perseus::calibration {
namespace {

constexpr double kDegreesOfFreedom = 4;       // of Student's t
constexpr double kLoadingSpread = 0.1;        // relative to the measured loading
constexpr double kTailSpread = 0.02;          // relative to the iteration
constexpr double kLatencySpread = 10;         // relative to the median latency
constexpr double kLeastLatencySpread = 1e-3;  // s
constexpr double kLeastScale = 1e-9;          // relative
constexpr double kFirstScale = 1e-3;
constexpr int kMostRounds = 40;
constexpr int kFirstSteps = 15, kMostSteps = 40;
constexpr std::array kFirstLatencies_s = {0.0, 0.002, 0.006, 0.015, 0.04};
// Where one boundary is slow:
constexpr std::array kSlowLatencies_s = {0.02, 0.06};
constexpr double kFastLatency_s = 0.001;
// Where one latency of a fit is another:
constexpr std::array kHops_s = {0.0, 0.02, 0.06};
constexpr int kMostHops = 4;        // per latency
constexpr double kWorthAHop = 0.1;  // of the objective
constexpr double kNearlyAsGood = 10;

/// Distribution of an unknown before the data: normal, or Cauchy, around `center`.
struct Prior {
  double center = 0;
  double spread = 0;  ///< 0: no prior
  bool is_normal = false;

  [[nodiscard]] double cost(double x) const {
    if (spread <= 0) return 0;
    const double square = std::pow((x - center) / spread, 2);
    return is_normal ? square : 2 * std::log1p(square);
  }
  /// Square root of the weight of the parabola that touches the cost at x.
  [[nodiscard]] double weight(double x) const {
    if (is_normal) return 1 / spread;
    return spread > 0 ? std::sqrt(2 / (1 + std::pow((x - center) / spread, 2))) / spread : 0;
  }
};

class Fit {
 public:
  Fit(TimedPipeline& pipeline, std::span<const TimedPlan> plans, ErrorModel errors)
      : pipeline_(pipeline), plans_(plans), n_(pipeline.num_unknowns()), normal_(errors == ErrorModel::normal) {
    for (const TimedPlan& plan : plans) mean_s_ += plan.measured_s / static_cast<double>(plans.size());
  }

  void set_common_latency(double seconds) { common_s_ = seconds; }
  void pin(const std::vector<char>& unknowns) { pinned_ = unknowns; }

  struct Point {
    std::vector<double> unknowns;
    std::vector<double> errors;                  ///< relative, per plan
    std::vector<std::vector<double>> gradients;  ///< of the errors; none of a point that is only tried
    double objective = 0;                        ///< without the term of the scale
  };

  Point at(std::vector<double> unknowns, double scale) {
    Point point = tried(std::move(unknowns), scale);
    add_gradients(point);
    return point;
  }

  /// The same point, where errors have another scale or latencies another prior.
  [[nodiscard]] Point rescaled(Point point, double scale) const {
    point.objective = objective(point, scale);
    return point;
  }

  Point descend(Point point, double scale, int most_steps) {
    constexpr double worth_it = 1e-7, most_damping = 1e12;
    double damping = 1e-3;
    for (int step = 0; step < most_steps; ++step) {
      const std::vector<char> held = held_at_zero(point, scale);
      const double before = point.objective;
      bool better = false;
      for (; !better && damping < most_damping; damping *= better ? 0.1 : 10) {
        LeastSquares system = equations(point, scale, held);
        // Marquardt's damping: relative to the information about each unknown.
        for (int k = 0; k < n_; ++k) {
          double square = 1e-12 + std::pow(prior(k).weight(point.unknowns[k]), 2);
          for (const auto& gradient : point.gradients) square += std::pow(gradient[k] / scale, 2);
          const Term term{k, 1};
          system.add({&term, 1}, 0, std::sqrt(damping * square));
        }
        std::vector<double> next = system.solve();
        for (int k = 0; k < n_; ++k) next[k] = std::max(0.0, point.unknowns[k] + (held[k] != 0 ? 0 : next[k]));
        Point candidate = tried(std::move(next), scale);
        if (candidate.objective < point.objective) {
          point = std::move(candidate);
          add_gradients(point);
          better = true;
        }
      }
      damping = std::max(damping, 1e-9);
      if (!better || before - point.objective < worth_it * (std::abs(before) + 1)) break;
    }
    return point;
  }

  /// The most likely scale of errors: a fixed point of the weighted mean square.
  [[nodiscard]] double scale_of(const Point& point, double scale) const {
    for (int round = 0; round < 50; ++round) {
      double squares = 0;
      for (const double e : point.errors) squares += std::pow(weight(e / scale) * e, 2);
      const double next = std::max(std::sqrt(squares / static_cast<double>(point.errors.size())), kLeastScale);
      if (std::abs(next / scale - 1) < 1e-4) return next;
      scale = next;
    }
    return scale;
  }

  [[nodiscard]] Matrix covariance(const Point& point, double scale) const {
    return equations(point, scale, std::vector<char>(n_)).covariance(point.unknowns);
  }

 private:
  Point tried(std::vector<double> unknowns, double scale) {
    Point point{std::move(unknowns), {}, {}, 0};
    point.errors = pipeline_.makespans(plans_, point.unknowns);
    for (std::size_t p = 0; p < plans_.size(); ++p) point.errors[p] = point.errors[p] / plans_[p].measured_s - 1;
    return rescaled(std::move(point), scale);
  }
  /// Of the point that was tried last.
  void add_gradients(Point& point) const {
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      point.gradients.push_back(pipeline_.gradient(p));
      for (double& g : point.gradients.back()) g /= plans_[p].measured_s;
    }
  }
  [[nodiscard]] double objective(const Point& point, double scale) const {
    double sum = 0;
    for (const double error : point.errors) sum += cost(error / scale);
    for (int k = 0; k < n_; ++k) sum += prior(k).cost(point.unknowns[k]);
    return sum;
  }
  [[nodiscard]] double cost(double x) const {
    return normal_ ? x * x : (kDegreesOfFreedom + 1) * std::log1p(x * x / kDegreesOfFreedom);
  }
  /// Square root of the weight of an error of x scales.
  [[nodiscard]] double weight(double x) const {
    return normal_ ? 1 : std::sqrt((kDegreesOfFreedom + 1) / (kDegreesOfFreedom + x * x));
  }
  [[nodiscard]] bool is_pinned(int unknown) const { return !pinned_.empty() && pinned_[unknown] != 0; }
  [[nodiscard]] Prior prior(int unknown) const {
    if (is_pinned(unknown)) return {};
    const int latencies = pipeline_.num_latencies();
    if (unknown == pipeline_.tail_unknown()) return {0, kTailSpread * mean_s_};
    if (unknown >= latencies) return {1, kLoadingSpread, true};
    if (latencies == 1) return {};
    return {common_s_, kLatencySpread * std::max(common_s_, kLeastLatencySpread)};
  }

  /// Normal equations of a step from `point`, over the unknowns that are free; `held` unknowns do not change.
  [[nodiscard]] LeastSquares equations(const Point& point, double scale, const std::vector<char>& held) const {
    LeastSquares system(n_);
    std::vector<Term> row;
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      row.clear();
      for (int k = 0; k < n_; ++k) {
        if (held[k] == 0) row.push_back({k, point.gradients[p][k]});
      }
      system.add(row, -point.errors[p], weight(point.errors[p] / scale) / scale);
    }
    for (int k = 0; k < n_; ++k) {
      const Term term{k, 1};
      const Prior known = prior(k);
      if (held[k] != 0)
        system.add({&term, 1}, 0, 1);
      else
        system.add({&term, 1}, known.center - point.unknowns[k], known.weight(point.unknowns[k]));
    }
    return system;
  }

  /// Unknowns at 0 where the objective falls toward negative values.
  [[nodiscard]] std::vector<char> held_at_zero(const Point& point, double scale) const {
    std::vector<char> held(n_);
    for (int k = 0; k < n_; ++k) {
      if (is_pinned(k)) held[k] = 1;
      if (is_pinned(k) || point.unknowns[k] > 0) continue;
      const Prior known = prior(k);
      double slope = (point.unknowns[k] - known.center) * std::pow(known.weight(point.unknowns[k]), 2);
      for (std::size_t p = 0; p < plans_.size(); ++p) {
        const double w = weight(point.errors[p] / scale) / scale;
        slope += w * w * point.errors[p] * point.gradients[p][k];
      }
      held[k] = slope >= 0 ? 1 : 0;
    }
    return held;
  }

  TimedPipeline& pipeline_;
  std::span<const TimedPlan> plans_;
  int n_;
  bool normal_;
  double mean_s_ = 0;
  double common_s_ = 0;       ///< center of the latencies' prior
  std::vector<char> pinned_;  ///< empty: none
};

/// The median, or of two latencies the smaller: a slow link is the exception.
double common_latency(const std::vector<double>& unknowns, int latencies) {
  return lower_median(std::vector<double>(unknowns.begin(), unknowns.begin() + latencies));
}

/// Minus twice the logarithm of the posterior; the scale is one more unknown.
double objective_of(const Fit::Point& point, double scale) {
  return point.objective + 2 * static_cast<double>(point.errors.size()) * std::log(scale);
}

/// The nearest optimum, where the scale is one too.
TimingFit settle(Fit& fit, Fit::Point point, int latencies) {
  double scale = kFirstScale;
  for (int round = 0; round < kMostRounds; ++round) {
    const double next = fit.scale_of(point, scale);
    if (round > 0 && std::abs(next / scale - 1) < 0.01) break;
    // Shrink step by step: a small scale freezes plans that look like outliers only because the fit is not
    // complete.
    scale = std::max(next, scale / 10);
    fit.set_common_latency(common_latency(point.unknowns, latencies));
    point = fit.descend(fit.rescaled(std::move(point), scale), scale, kMostSteps);
  }
  return {point.unknowns, fit.covariance(point, scale), point.errors, scale, objective_of(point, scale), {}};
}

double rms(const std::vector<double>& errors) {
  double squares = 0;
  for (const double e : errors) squares += e * e;
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

}  // namespace

double TimingFit::stddev(int unknown) const { return std::sqrt(covariance(unknown, unknown)); }

double TimingFit::correlation(int a, int b) const {
  const double product = stddev(a) * stddev(b);
  return product > 0 ? covariance(a, b) / product : 0;
}

double TimingFit::rms_error() const { return rms(errors); }

std::vector<std::vector<double>> starts_for(TimedPipeline& pipeline, std::span<const TimedPlan> plans) {
  constexpr double most_latency_s = 10;
  constexpr int halvings = 12;
  const int latencies = pipeline.num_latencies();
  const auto median_missing_s = [&](const std::vector<double>& unknowns) {
    std::vector<double> missing_s;
    const std::vector<double> makespans_s = pipeline.makespans(plans, unknowns);
    for (std::size_t p = 0; p < plans.size(); ++p) missing_s.push_back(plans[p].measured_s - makespans_s[p]);
    return median(std::move(missing_s));
  };
  std::vector<std::vector<double>> starts;
  const auto equal = [&](double latency_s) {
    std::vector<double> start(pipeline.num_unknowns(), 1);
    std::fill_n(start.begin(), latencies, latency_s);
    start.back() = 0;
    return start;
  };
  for (const double latency_s : kFirstLatencies_s) {
    std::vector<double> start = equal(latency_s);
    starts.push_back(start);
    start.back() = median_missing_s(start);
    if (start.back() > 0) starts.push_back(std::move(start));
  }
  if (latencies == 1) return starts;
  for (int slow = 0; slow < latencies; ++slow) {
    std::vector<double> alone = equal(kFastLatency_s);
    double low = kFastLatency_s, high = most_latency_s;
    for (int i = 0; i < halvings; ++i) {
      alone[slow] = std::sqrt(low * high);
      (median_missing_s(alone) > 0 ? low : high) = alone[slow];
    }
    if (low > kFastLatency_s) starts.push_back(std::move(alone));
    for (const double slow_s : kSlowLatencies_s) {
      std::vector<double> start = equal(kFastLatency_s);
      start[slow] = slow_s;
      start.back() = median_missing_s(start);
      if (start.back() > 0) starts.push_back(std::move(start));
    }
  }
  return starts;
}

TimingFit fit_timing(TimedPipeline& pipeline, std::span<const TimedPlan> plans,
                     const std::vector<std::vector<double>>& starts, ErrorModel errors) {
  PERSEUS_CHECK(!plans.empty() && !starts.empty(), "nothing to fit to");
  constexpr std::size_t finalists = 6;
  Fit fit(pipeline, plans, errors);
  const int latencies = pipeline.num_latencies();
  const auto set_common = [&](const std::vector<double>& unknowns) {
    fit.set_common_latency(common_latency(unknowns, latencies));
  };
  std::vector<Fit::Point> found;
  for (const std::vector<double>& start : starts) {
    set_common(start);
    found.push_back(fit.descend(fit.at(start, kFirstScale), kFirstScale, kFirstSteps));
  }
  // The scale is not known yet: prefer points with small errors to points that the priors favor.
  std::ranges::stable_sort(found, {}, [](const Fit::Point& point) { return mean_absolute(point.errors); });
  found.resize(std::min(finalists, found.size()));

  TimingFit best;
  std::vector<std::vector<double>> ends;
  for (Fit::Point& point : found) {
    TimingFit settled = settle(fit, std::move(point), latencies);
    ends.push_back(settled.unknowns);
    if (best.unknowns.empty() || settled.objective < best.objective) best = std::move(settled);
  }
  best.ends = std::move(ends);
  return best;
}

void try_other_latencies(TimedPipeline& pipeline, std::span<const TimedPlan> plans, TimingFit& known) {
  Fit fit(pipeline, plans, ErrorModel::student_t);
  const int latencies = pipeline.num_latencies();
  const auto try_from = [&](std::vector<double> start) {
    fit.set_common_latency(common_latency(start, latencies));
    const Fit::Point point = fit.descend(fit.at(std::move(start), known.scale), known.scale, kFirstSteps);
    const double objective = objective_of(point, known.scale);
    if (objective > known.objective + kNearlyAsGood) return false;
    known.ends.push_back(point.unknowns);
    if (objective > known.objective - kWorthAHop) return false;
    TimingFit settled = settle(fit, point, latencies);
    if (settled.objective > known.objective - kWorthAHop) return false;
    settled.ends = std::move(known.ends);
    settled.ends.push_back(settled.unknowns);
    known = std::move(settled);
    return true;
  };
  for (int tries = 0, in_vain = 0; tries < kMostHops * latencies && in_vain < latencies; ++tries) {
    const int k = tries % latencies;
    bool better = false;
    for (const double latency_s : kHops_s) {
      std::vector<double> start = known.unknowns;
      start[k] = latency_s;
      better = try_from(std::move(start)) || better;
    }
    std::vector<double> swapped = known.unknowns;
    std::swap(swapped[k], swapped[(k + 1) % latencies]);
    better = try_from(std::move(swapped)) || better;
    in_vain = better ? 0 : in_vain + 1;
  }
}

PinnedFit fit_pinned(TimedPipeline& pipeline, std::span<const TimedPlan> plans, const TimingFit& known,
                     std::vector<double> start, const std::vector<char>& pinned) {
  Fit fit(pipeline, plans, ErrorModel::student_t);
  fit.set_common_latency(common_latency(known.unknowns, pipeline.num_latencies()));
  fit.pin(pinned);
  const Fit::Point point = fit.descend(fit.at(std::move(start), known.scale), known.scale, kFirstSteps);
  return {point.unknowns, objective_of(point, known.scale)};
}

}  // namespace perseus::calibration
