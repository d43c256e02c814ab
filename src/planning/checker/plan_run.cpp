#include "planning/checker/plan_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::checker {
namespace {

const model::Measurement& chosen(const model::ComputationDag& dag, const model::Plan& plan, int computation) {
  return dag.type_of(computation).options[plan[computation]];
}

/// The clock that the plan requests after position `position` of a rank's order, which repeats forever; 0 if the rank
/// has no clock-controlled computation.
Megahertz next_clock(const model::ComputationDag& dag, const model::Plan& plan, int rank, std::size_t position) {
  const std::vector<int>& order = dag.rank_order[rank];
  for (std::size_t step = 1; step <= order.size(); ++step) {
    const Megahertz clock = chosen(dag, plan, order[(position + step) % order.size()]).clock;
    if (clock != Megahertz(0)) return clock;
  }
  return Megahertz(0);
}

}  // namespace

Status plan_fits(const model::ComputationDag& dag, const model::Plan& plan) {
  if (plan.size() != dag.computations.size())
    return Error{ErrorCode::invalid_input, fmt::format("plan has {} options; the pipeline has {} computations",
                                                       plan.size(), dag.computations.size())};
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const model::ComputationType& type = dag.type_of(static_cast<int>(i));
    if (plan[i] >= type.options.size())
      return Error{ErrorCode::invalid_input,
                   fmt::format("option {} of computation {} ({} of stage {}): must be below {}", plan[i], i,
                               type.instruction, type.stage, type.options.size())};
  }
  return Ok{};
}

// These lists are built here, not by planning/model/neighbors.h: the checker shares no code with the planners.
PlanRunner::PlanRunner(const model::ComputationDag& dag) : dag_(dag) {
  const std::size_t n = dag.computations.size();
  first_receiver_.assign(n + 1, 0);
  messages_needed_.assign(n, 0);
  for (const model::Dependency& dependency : dag.dependencies) {
    ++first_receiver_[dependency.before + 1];
    ++messages_needed_[dependency.after];
  }
  for (std::size_t i = 0; i < n; ++i) first_receiver_[i + 1] += first_receiver_[i];
  receivers_.resize(dag.dependencies.size());
  std::vector<int> filled(first_receiver_.begin(), first_receiver_.end() - 1);
  for (const model::Dependency& dependency : dag.dependencies)
    receivers_[filled[dependency.before]++] = {dependency.after, dependency.latency.value()};

  std::vector<int> first_of_type;
  for (const model::ComputationType& type : dag.types) {
    first_of_type.push_back(static_cast<int>(options_.size()));
    for (const model::Measurement& option : type.options) options_.push_back({option.time, option.energy});
  }
  for (const model::Computation& computation : dag.computations)
    first_option_.push_back(first_of_type[computation.type]);
  runs_.resize(n);
  result_.start.resize(n);
  result_.end.resize(n);
  result_.energy_of.resize(n);
}

template <class Run, class Ended>
double PlanRunner::iterate(Run run, Ended ended) {
  messages_missing_ = messages_needed_;
  next_in_order_.assign(dag_.rank_order.size(), 0);
  arrived_.assign(messages_needed_.size(), 0);
  for (int rank = 0; rank < dag_.num_ranks(); ++rank) may_run_.push_back(rank);
  double makespan = 0;
  std::size_t num_ended = 0;
  while (!may_run_.empty()) {
    const int rank = may_run_.back();
    may_run_.pop_back();
    const std::vector<int>& order = dag_.rank_order[rank];
    std::size_t& next = next_in_order_[rank];
    double now = next == 0 ? 0 : result_.end[order[next - 1]].value();
    for (; next < order.size() && messages_missing_[order[next]] == 0; ++next) {
      const int computation = order[next];
      now = std::max(now, arrived_[computation]);
      result_.start[computation] = Seconds(now);
      const ClockLine::Run& own = runs_[computation] = run(computation, now);
      now += own.duration.value();
      result_.end[computation] = Seconds(now);
      ++num_ended;
      ended(computation, next, now);
      for (int r = first_receiver_[computation]; r < first_receiver_[computation + 1]; ++r) {
        const auto& [receiver, latency] = receivers_[r];
        arrived_[receiver] = std::max(arrived_[receiver], now + latency);
        if (--messages_missing_[receiver] > 0) continue;
        const int other = dag_.computations[receiver].rank;
        if (other != rank && dag_.rank_order[other][next_in_order_[other]] == receiver) may_run_.push_back(other);
      }
    }
    makespan = std::max(makespan, now);
  }
  PERSEUS_CHECK(num_ended == runs_.size(), "ranks wait for each other: the rank orders contradict the dependencies");
  return makespan;
}

double PlanRunner::run_on_time(const model::Plan& plan) {
  const auto run = [&](int c, double) { return options_[first_option_[c] + plan[c]]; };
  return iterate(run, [](int, std::size_t, double) {});
}

double PlanRunner::run_late(const model::Plan& plan, Seconds switch_latency) {
  std::vector<ClockLine> clock_of;
  for (int rank = 0; rank < dag_.num_ranks(); ++rank) {
    const std::size_t size = dag_.rank_order[rank].size();
    clock_of.emplace_back(size == 0 ? Megahertz(0) : next_clock(dag_, plan, rank, size - 1), switch_latency);
  }
  const auto run = [&](int c, double now) {
    const model::Measurement& option = chosen(dag_, plan, c);
    return option.clock == Megahertz(0) ? ClockLine::Run{option.time, option.energy}
                                        : clock_of[dag_.computations[c].rank].run(dag_.type_of(c), Seconds(now));
  };
  const auto request_next = [&](int c, std::size_t position, double now) {
    if (chosen(dag_, plan, c).clock == Megahertz(0)) return;
    const int rank = dag_.computations[c].rank;
    clock_of[rank].request(next_clock(dag_, plan, rank, position), Seconds(now));
  };
  const double first_makespan = iterate(run, request_next);
  for (ClockLine& clock : clock_of) clock.restart_time_at(Seconds(first_makespan));
  return iterate(run, request_next);
}

const PlanRun& PlanRunner::run(const model::Plan& plan, const PlanRunOptions& options) {
  PERSEUS_CHECK(plan_fits(dag_, plan).ok(), "the plan does not fit the pipeline");
  PERSEUS_CHECK(options.switch_latency >= Seconds(0), "switch latency must not be negative");

  const double makespan =
      options.switch_latency == Seconds(0) ? run_on_time(plan) : run_late(plan, options.switch_latency);

  PlanRun& result = result_;
  result.makespan = Seconds(makespan);
  result.busy.assign(dag_.rank_order.size(), Seconds(0));
  result.computing_energy = Joules(0);
  for (std::size_t c = 0; c < plan.size(); ++c) {
    // Use the duration itself, not end - start, which loses digits late in a long iteration.
    result.busy[dag_.computations[c].rank] += runs_[c].duration;
    result.energy_of[c] = runs_[c].energy;
    result.computing_energy += runs_[c].energy;
  }
  Joules waiting_energy;
  result.effective_energy = result.computing_energy;
  for (int rank = 0; rank < dag_.num_ranks(); ++rank) {
    const Watts blocking_power = dag_.blocking_power * dag_.accelerators[rank];
    result.effective_energy -= blocking_power * result.busy[rank];
    waiting_energy += blocking_power * (result.makespan - result.busy[rank]);
  }
  result.energy = result.computing_energy + waiting_energy;
  return result;
}

PlanRun run_plan(const model::ComputationDag& dag, const model::Plan& plan, const PlanRunOptions& options) {
  return PlanRunner(dag).run(plan, options);
}

}  // namespace perseus::checker
