#include "planning/checker/certificate_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::checker {
namespace {

constexpr double kRounding = 1e-9;

Error invalid(std::string message) { return Error{ErrorCode::invalid_input, std::move(message)}; }

Status check_flows(const std::vector<double>& flows, std::size_t expected, const char* what) {
  if (flows.size() != expected)
    return invalid(fmt::format("certificate has {} flows of {}; the pipeline has {}", flows.size(), what, expected));
  for (std::size_t i = 0; i < flows.size(); ++i)
    if (!std::isfinite(flows[i]) || flows[i] < 0)
      return invalid(fmt::format("flow of {} {} is {} W: must be finite and not negative", what, i, flows[i]));
  return Ok{};
}

/// Order of magnitude of an iteration's energy, so that relative tolerances work where effective energy is 0.
Joules iteration_energy(const model::ComputationDag& dag, Joules effective_energy, Seconds time) {
  return effective_energy + dag.total_blocking_power() * time;
}

void check_shape(const model::ComputationDag& dag, const model::LowerBound& bound, double tolerance,
                 std::vector<std::string>& findings) {
  const std::vector<model::BoundVertex>& vertices = bound.vertices;
  for (std::size_t i = 0; i < vertices.size(); ++i)
    if (!std::isfinite(vertices[i].time.value()) || !std::isfinite(vertices[i].effective_energy.value())) {
      findings.push_back(fmt::format("bound vertex {} is not finite: {} s, {} J", i, vertices[i].time.value(),
                                     vertices[i].effective_energy.value()));
      return;
    }
  for (std::size_t i = 1; i < vertices.size(); ++i) {
    const model::BoundVertex& left = vertices[i - 1];
    const model::BoundVertex& right = vertices[i];
    if (right.time <= left.time)
      findings.push_back(fmt::format("bound vertices {} and {} are not in order of time: {} s, then {} s", i - 1, i,
                                     left.time.value(), right.time.value()));
    if (right.effective_energy > left.effective_energy)
      findings.push_back(fmt::format("bound rises from vertex {} to {}: {} J, then {} J", i - 1, i,
                                     left.effective_energy.value(), right.effective_energy.value()));
  }
  if (!findings.empty()) return;
  for (std::size_t i = 1; i + 1 < vertices.size(); ++i) {
    const model::BoundVertex& left = vertices[i - 1];
    const model::BoundVertex& right = vertices[i + 1];
    const double part = (vertices[i].time - left.time) / (right.time - left.time);
    const Joules chord = left.effective_energy + part * (right.effective_energy - left.effective_energy);
    const Joules allowed = tolerance * iteration_energy(dag, left.effective_energy, left.time);
    if (vertices[i].effective_energy > chord + allowed)
      findings.push_back(fmt::format("bound is not convex at vertex {}: {} J, above the chord's {} J", i,
                                     vertices[i].effective_energy.value(), chord.value()));
  }
}

}  // namespace

// Let a plan's computations run in [s_i, s_i + t_i] with 0 <= s_i and s_i + t_i <= T, and let x and y be the flows of
// computations and dependencies. Every dependency (b, a) has s_a - (s_b + t_b) - latency >= 0, hence with y >= 0
//     sum x_i t_i <= sum x_i t_i + sum y (s_a - s_b - t_b - latency)
//                  = sum (s_i + t_i) sink_i - sum s_i source_i - sum y latency  <=  F T - sum y latency
// where F = sum max(sink, 0) + sum max(-source, 0). So sum e_i >= sum min(e + x_i t) - sum x_i t_i >= at(T).
Result<CertifiedLine> certify(const model::ComputationDag& dag, const model::BoundCertificate& certificate) {
  const std::vector<double>& x = certificate.computation_flow_w;
  const std::vector<double>& y = certificate.dependency_flow_w;
  if (Status status = check_flows(x, dag.computations.size(), "computation"); !status) return status.error();
  if (Status status = check_flows(y, dag.dependencies.size(), "dependency"); !status) return status.error();

  std::vector<double> source = x;
  std::vector<double> sink = x;
  double at_zero = 0;
  for (std::size_t d = 0; d < y.size(); ++d) {
    const model::Dependency& dependency = dag.dependencies[d];
    source[dependency.after] -= y[d];
    sink[dependency.before] -= y[d];
    at_zero += y[d] * dependency.latency.value();
  }

  const double largest = x.empty() ? 0 : *std::ranges::max_element(x);
  double fall = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const auto& [excess, name] : {std::pair{source[i], "source"}, std::pair{sink[i], "sink"}})
      if (excess < -kRounding * largest)
        return invalid(fmt::format("{} of computation {} is {} W: must not be negative", name, i, excess));
    fall += std::max(sink[i], 0.0) + std::max(-source[i], 0.0);

    const Watts blocking_power = dag.blocking_power_of(static_cast<int>(i));
    double least = std::numeric_limits<double>::infinity();
    for (const model::Measurement& option : dag.type_of(static_cast<int>(i)).options) {
      const Joules effective = option.energy - blocking_power * option.time;
      least = std::min(least, effective.value() + x[i] * option.time.value());
    }
    at_zero += least;
  }
  return CertifiedLine{Joules(at_zero), Watts(fall)};
}

Joules least_effective_energy(const model::ComputationDag& dag) {
  const std::vector<double> no_flow(dag.computations.size(), 0);
  const Result<CertifiedLine> line =
      certify(dag, {Seconds(0), no_flow, std::vector<double>(dag.dependencies.size(), 0)});
  return line->at_zero;
}

BoundCheck check_bound(const model::ComputationDag& dag, const model::LowerBound& bound,
                       std::span<const model::BoundCertificate> certificates, double tolerance, bool may_be_lower) {
  BoundCheck check;
  if (bound.vertices.empty()) {
    check.findings.emplace_back("bound has no vertices");
    return check;
  }
  check_shape(dag, bound, tolerance, check.findings);
  if (!check.findings.empty()) return check;

  for (std::size_t i = 0; i < certificates.size(); ++i) {
    const Result<CertifiedLine> line = certify(dag, certificates[i]);
    if (!line) {
      check.findings.push_back(fmt::format("certificate {}: {}", i, line.error().message));
      continue;
    }
    ++check.certificates;

    const Seconds deadline = std::max(certificates[i].deadline, bound.t_min());
    const Joules claimed = bound.at(deadline);
    const Joules certified = line->at(deadline);
    // Two clocks of nearly equal time make a cliff; its position is known to a part in 10^9: 0.001 of 1e-6.
    const double cliff = 1e-3 * (line->fall * deadline).value();
    const double scale = std::abs(iteration_energy(dag, claimed, deadline).value()) + cliff;
    const double above = (claimed - certified).value();
    const double mismatch = may_be_lower ? std::max(above, 0.0) : std::abs(above);
    check.worst_mismatch = std::max(check.worst_mismatch, scale > 0 ? mismatch / scale : mismatch);
    if (mismatch > tolerance * scale)
      check.findings.push_back(fmt::format("bound at {} s is {} J; its certificate proves {} J", deadline.value(),
                                           claimed.value(), certified.value()));

    if (may_be_lower) continue;
    // The curve minus a line is convex between vertices, so its least value is at one of them.
    const auto below = [&](const model::BoundVertex& vertex) {
      return vertex.effective_energy - line->at(vertex.time);
    };
    const model::BoundVertex& lowest = *std::ranges::min_element(bound.vertices, {}, below);
    if (below(lowest).value() < -tolerance * scale)
      check.findings.push_back(fmt::format("bound at {} s is {} J; the certificate of {} s proves more: {} J",
                                           lowest.time.value(), lowest.effective_energy.value(), deadline.value(),
                                           line->at(lowest.time).value()));
  }
  return check;
}

std::vector<Seconds> deadlines_to_certify(const model::LowerBound& bound) {
  std::vector<Seconds> deadlines;
  for (std::size_t i = 1; i < bound.vertices.size(); ++i)
    deadlines.push_back(0.5 * (bound.vertices[i - 1].time + bound.vertices[i].time));
  return deadlines;
}

}  // namespace perseus::checker
