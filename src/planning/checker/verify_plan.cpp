#include "planning/checker/verify_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planning/checker/certificate_check.h"
#include "planning/checker/plan_run.h"

namespace perseus::checker {
namespace {

/// The plan that chooses for each computation its first option in the order `less`.
template <class Less>
model::Plan plan_of_least(const model::ComputationDag& dag, Less less) {
  model::Plan plan;
  for (const model::Computation& computation : dag.computations) {
    const std::vector<model::Measurement>& options = dag.types[computation.type].options;
    plan.push_back(static_cast<std::uint16_t>(std::ranges::min_element(options, less) - options.begin()));
  }
  return plan;
}

class FrontierCheck {
 public:
  FrontierCheck(const model::ComputationDag& dag, const model::Frontier& frontier, const VerifyOptions& options)
      : dag_(dag), frontier_(frontier), options_(options), runner_(dag) {}

  Verification run(std::span<const model::BoundCertificate> certificates) {
    check_curve(certificates);
    const std::size_t points = frontier_.points.size();
    for (std::size_t i = 0; i < points; ++i) {
      check_point(static_cast<int>(i));
      if (options_.progress) options_.progress(static_cast<double>(i + 1) / static_cast<double>(points));
    }
    for (std::size_t i = 1; i < frontier_.points.size(); ++i) check_order(static_cast<int>(i));
    if (frontier_.points.empty())
      report(-1, "points", 0, 1, "frontier has no points");
    else
      check_ends();
    return std::move(verification_);
  }

 private:
  void report(int point, std::string quantity, double claimed, double recomputed, std::string message) {
    verification_.findings.push_back({point, std::move(quantity), claimed, recomputed, std::move(message)});
  }

  /// Returns the error relative to `scale`, and reports it if it is above `tolerance`.
  double compare(int point, const char* quantity, double claimed, double recomputed, double scale, double tolerance) {
    const double difference = std::abs(claimed - recomputed);
    const double error = scale > 0 ? difference / scale : difference;
    if (!(error <= tolerance))  // a NaN must not pass
      report(point, quantity, claimed, recomputed,
             fmt::format("{}: {} is {}, recomputed {}", name_of(point), quantity, claimed, recomputed));
    return error;
  }

  /// Compares a time or an energy that a plan claims.
  void compare_realized(int point, const char* quantity, double claimed, double recomputed, double scale) {
    const double error = compare(point, quantity, claimed, recomputed, scale, options_.tolerance);
    verification_.worst_error = std::max(verification_.worst_error, error);
  }

  static std::string name_of(int point) { return point < 0 ? "frontier" : fmt::format("point {}", point); }

  [[nodiscard]] bool has_curve() const { return !frontier_.bound.vertices.empty(); }

  void check_curve(std::span<const model::BoundCertificate> certificates) {
    if (!has_curve()) return;
    const BoundCheck check =
        check_bound(dag_, frontier_.bound, certificates, options_.bound_tolerance, options_.bound_may_be_lower);
    verification_.certificates = check.certificates;
    verification_.worst_mismatch = check.worst_mismatch;
    for (const std::string& finding : check.findings) report(-1, "bound", 0, 0, finding);
  }

  void check_point(int index) {
    const model::FrontierPoint& point = frontier_.points[index];
    ++verification_.points;
    if (const Status fits = plan_fits(dag_, point.plan); !fits) {
      report(index, "plan", 0, 0, fmt::format("point {}: {}", index, fits.error().message));
      return;
    }
    const PlanRun& run = runner_.run(point.plan, {options_.switch_latency});
    if (index == 0) verification_.slowest_time = run.makespan;
    verification_.fastest_time = run.makespan;
    const Seconds expected = run.makespan + point.noise.lateness;
    const double energy = energy_of(point, run).value();
    const double time = expected.value();
    compare_realized(index, "time_s", point.time.value(), time, time);
    compare_realized(index, "energy_j", point.energy.value(), energy, energy);
    // Effective energy is a difference of energies and may be near 0: its error is relative to those energies.
    compare_realized(index, "effective_energy_j", point.effective_energy.value(), run.effective_energy.value(), energy);
    check_bound_of(index, run);
    check_clock_limit_cost(index, run);
  }

  /// Includes the waiting that a noisy profile's lateness causes.
  [[nodiscard]] Joules energy_of(const model::FrontierPoint& point, const PlanRun& run) const {
    return run.energy + dag_.total_blocking_power() * point.noise.lateness;
  }

  void check_bound_of(int index, const PlanRun& run) {
    const model::FrontierPoint& point = frontier_.points[index];
    const Joules energy = energy_of(point, run);
    const double scale = energy.value();
    if (!(point.bound.value() <= energy.value() + options_.tolerance * scale))
      report(index, "bound_j", point.bound.value(), energy.value(),
             fmt::format("point {}: bound_j is {}, above the plan's own energy {}", index, point.bound.value(),
                         energy.value()));
    if (!has_curve()) return;
    const Seconds time = run.makespan + point.noise.lateness;
    const Joules bound = frontier_.bound.at(time) + dag_.total_blocking_power() * time;
    compare(index, "bound_j", point.bound.value(), bound.value(), scale, options_.tolerance);
    const double gap_pct = bound > Joules(0) ? 100 * ((energy - bound) / bound) : 0;
    verification_.max_gap_pct = std::max(verification_.max_gap_pct, gap_pct);
    verification_.mean_gap_pct += gap_pct / static_cast<double>(frontier_.points.size());
  }

  /// A plan without the limits needs no less than the lower bound at the same time; noise adds the same to both.
  void check_clock_limit_cost(int index, const PlanRun& run) {
    const Joules cost = frontier_.points[index].clock_limit_cost;
    if (!options_.has_clock_limits) {
      compare(index, "clock_limit_cost_j", cost.value(), 0, 0, options_.tolerance);
      return;
    }
    if (!has_curve()) return;
    const Joules most = run.effective_energy - frontier_.bound.at(run.makespan);
    if (cost.value() <= most.value() + options_.tolerance * run.energy.value()) return;
    report(index, "clock_limit_cost_j", cost.value(), most.value(),
           fmt::format("point {}: clock_limit_cost_j is {}, above the distance to the lower bound: {}", index,
                       cost.value(), most.value()));
  }

  void check_order(int index) {
    const model::FrontierPoint& slower = frontier_.points[index - 1];
    const model::FrontierPoint& point = frontier_.points[index];
    if (!(point.time < slower.time))
      report(index, "order", point.time.value(), slower.time.value(),
             fmt::format("point {}: time_s is {}, not below that of point {}: {}", index, point.time.value(), index - 1,
                         slower.time.value()));
    if (!(point.effective_energy > slower.effective_energy))
      report(index, "order", point.effective_energy.value(), slower.effective_energy.value(),
             fmt::format("point {}: effective_energy_j is {}, not above that of point {}: {}", index,
                         point.effective_energy.value(), index - 1, slower.effective_energy.value()));
  }

  void check_ends() {
    const model::Plan fastest = plan_of_least(dag_, [](const auto& a, const auto& b) { return a.time < b.time; });
    const model::Plan max_clock = plan_of_least(dag_, [](const auto& a, const auto& b) { return a.clock > b.clock; });
    verification_.least_makespan = runner_.run(fastest).makespan;
    verification_.max_clock_makespan = runner_.run(max_clock).makespan;
    if (!options_.reaches_both_ends) return;

    const Joules least_effective = least_effective_energy(dag_);
    const double energy = (least_effective + dag_.total_blocking_power() * verification_.slowest_time).value();
    const int last = static_cast<int>(frontier_.points.size()) - 1;
    const double least_time = verification_.least_makespan.value();
    // The plan with the least expected time need not have the least time by the means.
    if (frontier_.maximum_clock_noise == model::ProfileNoise{}) {
      compare_realized(last, "least makespan of all plans", frontier_.points.back().time.value(), least_time,
                       least_time);
    }
    compare_realized(0, "least effective energy of all plans", frontier_.points.front().effective_energy.value(),
                     least_effective.value(), energy);
    if (!has_curve()) return;
    compare(-1, "first time of the bound", frontier_.bound.t_min().value(), least_time, least_time,
            options_.bound_tolerance);
    compare(-1, "last effective energy of the bound", frontier_.bound.vertices.back().effective_energy.value(),
            least_effective.value(), energy, options_.bound_tolerance);
  }

  const model::ComputationDag& dag_;
  const model::Frontier& frontier_;
  const VerifyOptions& options_;
  PlanRunner runner_;
  Verification verification_;
};

}  // namespace

Verification verify_frontier(const model::ComputationDag& dag, const model::Frontier& frontier,
                             std::span<const model::BoundCertificate> certificates, const VerifyOptions& options) {
  return FrontierCheck(dag, frontier, options).run(certificates);
}

}  // namespace perseus::checker
