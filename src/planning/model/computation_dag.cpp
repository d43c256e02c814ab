#include "planning/model/computation_dag.h"

#include <fmt/format.h>

#include <cmath>

namespace perseus::model {

Watts ComputationDag::total_blocking_power() const {
  int all = 0;
  for (const int count : accelerators) all += count;
  return blocking_power * all;
}

Status ComputationDag::validate() const {
  const auto invalid = [](std::string message) { return Error{ErrorCode::invalid_input, "dag: " + message}; };
  if (!(std::isfinite(blocking_power.value()) && blocking_power.value() >= 0)) {
    return invalid(fmt::format("blocking_power_w {}; must be finite and >= 0", blocking_power.value()));
  }
  if (accelerators.size() != rank_order.size()) {
    return invalid(fmt::format("{} ranks, but accelerators for {}", rank_order.size(), accelerators.size()));
  }
  for (std::size_t rank = 0; rank < accelerators.size(); ++rank) {
    if (accelerators[rank] < 1) {
      return invalid(fmt::format("rank {}: {} accelerators; must be >= 1", rank, accelerators[rank]));
    }
  }
  for (std::size_t type = 0; type < types.size(); ++type) {
    if (types[type].options.empty()) return invalid(fmt::format("type {} has no options", type));
    if (types[type].options.size() > 65535) {
      return invalid(fmt::format("type {}: {} options; at most 65535 are allowed", type, types[type].options.size()));
    }
    for (const Measurement& m : types[type].options) {
      if (!(std::isfinite(m.time.value()) && m.time.value() > 0)) {
        return invalid(
            fmt::format("type {}: {} MHz: time_s {}; must be finite and > 0", type, m.clock.value(), m.time.value()));
      }
      if (!std::isfinite(m.energy.value()) || m.energy.value() < 0) {
        return invalid(fmt::format("type {}: {} MHz: energy_j {}; must be finite and >= 0", type, m.clock.value(),
                                   m.energy.value()));
      }
    }
  }
  const int count = static_cast<int>(computations.size());
  if (count == 0) return invalid("no computations; at least one is needed");
  for (int i = 0; i < count; ++i) {
    if (computations[i].type < 0 || computations[i].type >= static_cast<int>(types.size())) {
      return invalid(fmt::format("computation {}: type {}; must be 0..{}", i, computations[i].type,
                                 static_cast<int>(types.size()) - 1));
    }
    if (computations[i].rank < 0 || computations[i].rank >= num_ranks()) {
      return invalid(fmt::format("computation {}: rank {}; must be 0..{}", i, computations[i].rank, num_ranks() - 1));
    }
  }
  for (std::size_t d = 0; d < dependencies.size(); ++d) {
    const Dependency& edge = dependencies[d];
    if (edge.before < 0 || edge.after >= count || edge.before >= edge.after) {
      return invalid(fmt::format("dependency {}: {} before {}; must be 0 <= before < after < {}", d, edge.before,
                                 edge.after, count));
    }
    if (!(std::isfinite(edge.latency.value()) && edge.latency.value() >= 0)) {
      return invalid(fmt::format("dependency {}: latency_s {}; must be finite and >= 0", d, edge.latency.value()));
    }
  }
  std::vector<int> next_on_rank(computations.size(), -1);
  std::vector<char> placed(computations.size());
  std::size_t num_placed = 0;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    int previous = -1;
    for (const int i : rank_order[rank]) {
      if (i < 0 || i >= count || computations[i].rank != rank || placed[i] != 0 || i <= previous) {
        return invalid(
            fmt::format("rank {}: computation {} in its order; each of its computations must stand there "
                        "once, in increasing order",
                        rank, i));
      }
      placed[i] = 1;
      if (previous >= 0) next_on_rank[previous] = i;
      ++num_placed;
      previous = i;
    }
  }
  if (num_placed != computations.size()) {
    return invalid(fmt::format("{} computations, but {} in the ranks' orders", count, num_placed));
  }
  for (const Dependency& edge : dependencies) {
    if (next_on_rank[edge.before] == edge.after) next_on_rank[edge.before] = -1;
  }
  for (int i = 0; i < count; ++i) {
    if (next_on_rank[i] < 0) continue;
    return invalid(fmt::format("rank {}: computation {} follows {} without a dependency between them",
                               computations[i].rank, next_on_rank[i], i));
  }
  return Ok{};
}

}  // namespace perseus::model
