#include "planning/model/computation_dag.h"

#include <fmt/format.h>

#include <cmath>

namespace perseus::model {
namespace {

Error invalid_dag(const std::string& message) { return {ErrorCode::invalid_input, "dag: " + message}; }

Status check_ranks(const ComputationDag& dag) {
  if (!(std::isfinite(dag.blocking_power.value()) && dag.blocking_power.value() >= 0)) {
    return invalid_dag(fmt::format("blocking_power_w {}; must be finite and >= 0", dag.blocking_power.value()));
  }
  if (dag.accelerators.size() != dag.rank_order.size()) {
    return invalid_dag(
        fmt::format("{} ranks, but accelerators for {}", dag.rank_order.size(), dag.accelerators.size()));
  }
  for (std::size_t rank = 0; rank < dag.accelerators.size(); ++rank) {
    if (dag.accelerators[rank] < 1) {
      return invalid_dag(fmt::format("rank {}: {} accelerators; must be >= 1", rank, dag.accelerators[rank]));
    }
  }
  return Ok{};
}

Status check_types(const ComputationDag& dag) {
  for (std::size_t type = 0; type < dag.types.size(); ++type) {
    if (dag.types[type].options.empty()) return invalid_dag(fmt::format("type {} has no options", type));
    if (dag.types[type].options.size() > 65535) {
      return invalid_dag(
          fmt::format("type {}: {} options; at most 65535 are allowed", type, dag.types[type].options.size()));
    }
    for (const Measurement& m : dag.types[type].options) {
      if (!(std::isfinite(m.time.value()) && m.time.value() > 0)) {
        return invalid_dag(
            fmt::format("type {}: {} MHz: time_s {}; must be finite and > 0", type, m.clock.value(), m.time.value()));
      }
      if (!std::isfinite(m.energy.value()) || m.energy.value() < 0) {
        return invalid_dag(fmt::format("type {}: {} MHz: energy_j {}; must be finite and >= 0", type, m.clock.value(),
                                       m.energy.value()));
      }
    }
  }
  return Ok{};
}

Status check_computations(const ComputationDag& dag) {
  const int count = static_cast<int>(dag.computations.size());
  if (count == 0) return invalid_dag("no computations; at least one is needed");
  for (int i = 0; i < count; ++i) {
    if (dag.computations[i].type < 0 || dag.computations[i].type >= static_cast<int>(dag.types.size())) {
      return invalid_dag(fmt::format("computation {}: type {}; must be 0..{}", i, dag.computations[i].type,
                                     static_cast<int>(dag.types.size()) - 1));
    }
    if (dag.computations[i].rank < 0 || dag.computations[i].rank >= dag.num_ranks()) {
      return invalid_dag(
          fmt::format("computation {}: rank {}; must be 0..{}", i, dag.computations[i].rank, dag.num_ranks() - 1));
    }
  }
  return Ok{};
}

Status check_dependencies(const ComputationDag& dag) {
  const int count = static_cast<int>(dag.computations.size());
  for (std::size_t d = 0; d < dag.dependencies.size(); ++d) {
    const Dependency& edge = dag.dependencies[d];
    if (edge.before < 0 || edge.after >= count || edge.before >= edge.after) {
      return invalid_dag(fmt::format("dependency {}: {} before {}; must be 0 <= before < after < {}", d, edge.before,
                                     edge.after, count));
    }
    if (!(std::isfinite(edge.latency.value()) && edge.latency.value() >= 0)) {
      return invalid_dag(fmt::format("dependency {}: latency_s {}; must be finite and >= 0", d, edge.latency.value()));
    }
  }
  return Ok{};
}

/// Each rank runs its own computations once, in increasing order, with a dependency from each to the next.
Status check_rank_order(const ComputationDag& dag) {
  const int count = static_cast<int>(dag.computations.size());
  std::vector<int> next_on_rank(dag.computations.size(), -1);
  std::vector<char> placed(dag.computations.size());
  std::size_t num_placed = 0;
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    int previous = -1;
    for (const int i : dag.rank_order[rank]) {
      if (i < 0 || i >= count || dag.computations[i].rank != rank || placed[i] != 0 || i <= previous) {
        return invalid_dag(
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
  if (num_placed != dag.computations.size()) {
    return invalid_dag(fmt::format("{} computations, but {} in the ranks' orders", count, num_placed));
  }
  for (const Dependency& edge : dag.dependencies) {
    if (next_on_rank[edge.before] == edge.after) next_on_rank[edge.before] = -1;
  }
  for (int i = 0; i < count; ++i) {
    if (next_on_rank[i] < 0) continue;
    return invalid_dag(fmt::format("rank {}: computation {} follows {} without a dependency between them",
                                   dag.computations[i].rank, next_on_rank[i], i));
  }
  return Ok{};
}

}  // namespace

Watts ComputationDag::total_blocking_power() const {
  int all = 0;
  for (const int count : accelerators) all += count;
  return blocking_power * all;
}

Status ComputationDag::validate() const {
  for (const auto check : {check_ranks, check_types, check_computations, check_dependencies, check_rank_order}) {
    if (Status status = check(*this); !status) return status;
  }
  return Ok{};
}

}  // namespace perseus::model
