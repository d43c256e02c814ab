// The makespan of a pipeline as a function of the unknowns of its DAG: latencies, loading, tail.
//
// Problem: a fit needs the makespan of every traced plan, and its derivative for each unknown, many times.
// Method:  a transfer is a latency between two computations. Where transfers queue, it is a node of its own, and the
//          link's next transfer follows it.
// Input:   a valid ComputationDag with one stage per rank, built without latencies and with `load` and
//          `optimizer_step` types where such time is possible; durations per computation (of a load: the measured
//          seconds that its unknown scales; of a tail: ignored).
// Output:  makespans, and of one critical path each the gradient. The makespan is convex and piecewise linear in the
//          unknowns.
// Cost:    makespans(): O(plans * (computations + dependencies)), eight plans side by side; gradient(): O(path).
// Threads: one thread per object.
// Source:  docs/fidelity.md. planning/checker/plan_run.h, not this file, makes the reported predictions.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

#include "base/adjacency_lists.h"
#include "evaluation/calibration/link_model.h"
#include "planning/model/computation_dag.h"

namespace perseus::calibration {

struct TimedPlan {
  std::vector<double> durations;  ///< per computation, see TimedPipeline
  double measured_s = 0;
};

class TimedPipeline {
 public:
  /// Unknowns: the latencies of `links` (s), one factor per stage that loads, and last the tail (s).
  TimedPipeline(const model::ComputationDag& dag, const LinkModel& links, Sending sending);

  [[nodiscard]] int num_unknowns() const { return tail_unknown() + 1; }
  [[nodiscard]] int num_latencies() const { return links_.num_latencies(); }
  [[nodiscard]] const std::vector<int>& loading_stages() const { return loading_stages_; }
  [[nodiscard]] int tail_unknown() const { return num_latencies() + static_cast<int>(loading_stages_.size()); }

  /// Seconds, per plan.
  std::vector<double> makespans(std::span<const TimedPlan> plans, std::span<const double> unknowns);
  /// Per unknown: of plan p of the last call of makespans(), while its plans exist.
  [[nodiscard]] std::vector<double> gradient(std::size_t p) const;

 private:
  static constexpr int kNone = -1;
  static constexpr std::size_t kLanes = 8;
  using Lanes = Eigen::Array<double, kLanes, 1>;  ///< seconds, a plan in each
  /// A computation or a transfer. It lasts as long as its computation, its unknown, or the product of both.
  struct Node {
    int computation = kNone;
    int unknown = kNone;
  };
  struct Before {
    int node = kNone;
    int latency = kNone;  ///< its unknown
  };
  struct Edge {
    Before before;
    int after = kNone;
  };
  /// From where the computations after a computation are reached.
  struct Sender {
    Before own;     ///< on its rank
    Before others;  ///< on other ranks
  };

  /// Adds the nodes, and the edges to transfers.
  std::vector<Sender> add_nodes(const model::ComputationDag& dag, Sending sending, std::vector<Edge>& edges);
  [[nodiscard]] int unknown_of(const model::ComputationType& type) const;
  [[nodiscard]] int last_of(std::size_t p) const;
  [[nodiscard]] double end(std::size_t p, int node) const {
    return ends_[p / kLanes * nodes_.size() + node][p % kLanes];
  }
  [[nodiscard]] double latency_s(const Before& before) const {
    return before.latency == kNone ? 0.0 : unknowns_[before.latency];
  }

  LinkModel links_;
  std::vector<Node> nodes_;  ///< in a topological order
  AdjacencyLists<Before> before_;
  std::vector<int> loading_stages_;
  std::vector<int> may_be_last_;  ///< nodes that may end last: those with none after them, or none that must take time

  // Of the last call of makespans().
  std::span<const TimedPlan> plans_;
  std::vector<double> unknowns_;
  std::vector<Lanes> ends_;  ///< [plan / kLanes][node]
};

}  // namespace perseus::calibration
