#include "planning/baselines/envpipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/adjacency_lists.h"
#include "base/count_text.h"
#include "planning/planner/candidate_options.h"

namespace perseus::baselines {
namespace {

constexpr long kOperationsOfStep = 2;  ///< per computation, at most

/// Instructions without a clock: EnvPipe does not know them.
bool is_unknown(const model::ComputationType& type) { return type.options.front().clock == Megahertz(0); }

/// The unit is small enough that rounding to it changes no comparison, and 2^52 units cover a whole iteration.
Seconds finest_unit(const model::ComputationDag& dag) {
  std::vector<Seconds> longest;
  for (const model::ComputationType& type : dag.types) {
    longest.push_back(std::ranges::max(type.options, {}, &model::Measurement::time).time);
  }
  Seconds sum;
  for (const model::Computation& c : dag.computations) sum += longest[c.type];
  return std::ldexp(1.0, -52) * sum;
}

/// Successors of each computation in the order of a breadth-first traversal from the start.
class SuccessorOrder {
 public:
  explicit SuccessorOrder(const model::ComputationDag& dag) {
    std::vector<model::Dependency> edges = dag.dependencies;
    const auto other_rank = [&](const model::Dependency& d) {
      return dag.computations[d.before].rank != dag.computations[d.after].rank;
    };
    std::ranges::sort(edges, {},
                      [&](const model::Dependency& d) { return std::tuple(d.before, other_rank(d), d.after); });
    lists_ = {static_cast<int>(dag.computations.size()), static_cast<int>(edges.size()),
              [&](int e) { return edges[e].before; }, [&](int e) { return edges[e].after; }};
    sort_by(breadth_first(dag));
  }

  [[nodiscard]] const std::vector<int>& sources() const { return sources_; }
  [[nodiscard]] std::span<const int> of(int i) const { return lists_.of(i); }

 private:
  /// Position of each computation in the traversal: 0 for the first.
  std::vector<int> breadth_first(const model::ComputationDag& dag) {
    std::vector<bool> has_predecessor(dag.computations.size());
    for (const model::Dependency& d : dag.dependencies) has_predecessor[d.after] = true;
    for (int i = 0; i < static_cast<int>(has_predecessor.size()); ++i) {
      if (!has_predecessor[i]) sources_.push_back(i);
    }
    std::vector<int> queue = sources_;
    std::vector<int> met(dag.computations.size(), -1);
    for (int k = 0; k < static_cast<int>(queue.size()); ++k) met[queue[k]] = k;
    for (std::size_t head = 0; head < queue.size(); ++head) {
      for (const int after : of(queue[head])) {
        if (met[after] >= 0) continue;
        met[after] = static_cast<int>(queue.size());
        queue.push_back(after);
      }
    }
    return met;
  }

  void sort_by(const std::vector<int>& met) {
    for (int i = 0; i < lists_.num_nodes(); ++i) {
      std::ranges::sort(lists_.of(i), {}, [&](int after) { return met[after]; });
    }
  }

  AdjacencyLists<int> lists_;
  std::vector<int> sources_;
};

/// Pinned computations: those of the last stage, first forwards, and the last of each other instruction of a stage.
std::vector<bool> outer_envelope(const model::ComputationDag& dag) {
  int last_stage = 0;
  for (const model::ComputationType& type : dag.types) last_stage = std::max(last_stage, type.stage);
  std::vector<bool> pinned(dag.computations.size());
  for (const std::vector<int>& order : dag.rank_order) {
    std::map<int, int> chosen;  // per type
    for (const int i : order) {
      const int type = dag.computations[i].type;
      if (dag.types[type].stage == last_stage || is_unknown(dag.types[type])) pinned[i] = true;
      if (dag.types[type].instruction == "forward") {
        chosen.emplace(type, i);
      } else {
        chosen[type] = i;
      }
    }
    for (const auto& [type, i] : chosen) pinned[i] = true;
  }
  return pinned;
}

class EnvPipe {
 public:
  EnvPipe(const model::ComputationDag& dag, Seconds unit)
      : dag_(dag), successors_(dag), pinned_(outer_envelope(dag)), plan_(dag.computations.size(), 0) {
    std::vector<int> slowest;
    for (const model::ComputationType& type : dag.types) {
      std::vector<std::int64_t>& units = units_.emplace_back();
      for (const model::Measurement& option : type.options) {
        units.push_back(is_unknown(type) ? 0 : planner::floor_to_units(option.time, unit));
      }
      slowest.push_back(planner::candidate_options(type.options, unit).front().option);
    }
    for (int i = 0; i < static_cast<int>(plan_.size()); ++i) {
      if (!pinned_[i]) plan_[i] = static_cast<model::Plan::value_type>(slowest[dag.computations[i].type]);
    }
    remaining_.resize(plan_.size());
  }

  Result<EnvPipeRun> run(int max_steps, StopCheck& check) {
    EnvPipeRun result;
    int highest_changed = static_cast<int>(plan_.size()) - 1;
    for (result.end = EnvPipeEnd::step_limit; result.steps < max_steps; ++result.steps) {
      if (check.stop(kOperationsOfStep * static_cast<long>(plan_.size()))) return planning_stopped();
      update_remaining(highest_changed);
      const std::vector<int> path = first_critical_path();
      if (std::ranges::all_of(path, [&](int i) { return pinned_[i]; })) {
        result.end = EnvPipeEnd::envelope;
        break;
      }
      highest_changed = speed_up_slowest(path);
      if (highest_changed < 0) {
        result.end = EnvPipeEnd::stuck;
        break;
      }
    }
    result.plan = plan_;
    return result;
  }

 private:
  [[nodiscard]] Megahertz clock(int i) const { return dag_.type_of(i).options[plan_[i]].clock; }

  /// Longest path from the start of each computation to the end; computations past `from` have not changed.
  void update_remaining(int from) {
    for (int i = from; i >= 0; --i) {
      std::int64_t longest = 0;
      for (const int after : successors_.of(i)) longest = std::max(longest, remaining_[after]);
      remaining_[i] = units_[dag_.computations[i].type][plan_[i]] + longest;
    }
  }

  [[nodiscard]] std::vector<int> first_critical_path() const {
    std::vector<int> path;
    for (std::span<const int> next = successors_.sources(); !next.empty(); next = successors_.of(path.back())) {
      path.push_back(*std::ranges::max_element(next, {}, [&](int i) { return remaining_[i]; }));
    }
    return path;
  }

  /// Raises the lowest clock on the path by one step. Returns the last computation that changed, -1 if none can.
  int speed_up_slowest(const std::vector<int>& path) {
    const auto can_rise = [&](int i) { return !pinned_[i] && plan_[i] > 0; };
    Megahertz lowest(std::numeric_limits<int>::max());
    for (const int i : path) {
      if (can_rise(i)) lowest = std::min(lowest, clock(i));
    }
    int last = -1;
    for (const int i : path) {
      if (!can_rise(i) || clock(i) != lowest) continue;
      --plan_[i];  // options are ordered by falling clock
      last = std::max(last, i);
    }
    return last;
  }

  const model::ComputationDag& dag_;
  SuccessorOrder successors_;
  std::vector<bool> pinned_;
  std::vector<std::vector<std::int64_t>> units_;  // [type][option]
  std::vector<std::int64_t> remaining_;
  model::Plan plan_;
};

}  // namespace

Result<EnvPipeRun> plan_envpipe(const model::ComputationDag& dag, const EnvPipeOptions& options, StopCheck& check) {
  if (!std::isfinite(options.unit_time.value()) || options.unit_time < Seconds(0)) {
    return Error{ErrorCode::usage,
                 fmt::format("EnvPipe: unit_time_s {}; must be finite and >= 0", options.unit_time.value())};
  }
  for (const model::ComputationType& type : dag.types) {
    if (type.stage >= 0) continue;
    return Error{ErrorCode::usage, fmt::format("EnvPipe: computation type {} has no stage; EnvPipe is defined for "
                                               "pipelines of stages only",
                                               type.instruction)};
  }
  const Seconds unit = options.unit_time > Seconds(0) ? options.unit_time : finest_unit(dag);
  return EnvPipe(dag, unit).run(options.max_steps, check);
}

std::string text_of(const EnvPipeRun& run) {
  switch (run.end) {
    case EnvPipeEnd::envelope:
      return fmt::format("reached its envelope after {}", count_text(run.steps, "step"));
    case EnvPipeEnd::stuck:
      return fmt::format(
          "stuck after {}: a critical path outside its envelope is at maximum clock (the last stage is not the "
          "heaviest)",
          count_text(run.steps, "step"));
    case EnvPipeEnd::step_limit:
      return fmt::format("cut off after {} steps", run.steps);
  }
  return {};
}

}  // namespace perseus::baselines
