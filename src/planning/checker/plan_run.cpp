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
}

void PlanRunner::push(Event event) {
  queue_.push_back(event);
  std::ranges::push_heap(queue_, std::ranges::greater{}, &Event::time);
}

PlanRunner::Event PlanRunner::pop() {
  std::ranges::pop_heap(queue_, std::ranges::greater{}, &Event::time);
  const Event event = queue_.back();
  queue_.pop_back();
  return event;
}

template <class Run, class Ended>
double PlanRunner::iterate(Run run, Ended ended) {
  const std::size_t n = dag_.computations.size();
  queue_.clear();
  messages_missing_ = messages_needed_;
  next_in_order_.assign(dag_.rank_order.size(), 0);
  is_running_.assign(dag_.rank_order.size(), 0);
  start_.assign(n, 0);
  end_.assign(n, 0);

  const auto start_next_of = [&](int rank, double now) {
    const std::vector<int>& order = dag_.rank_order[rank];
    if (is_running_[rank] || next_in_order_[rank] == order.size()) return;
    const int computation = order[next_in_order_[rank]];
    if (messages_missing_[computation] > 0) return;
    is_running_[rank] = 1;
    start_[computation] = now;
    run(computation, now);
    push({now + runs_[computation].duration.value(), computation, true});
  };
  const auto deliver = [&](int computation, double now) {
    if (--messages_missing_[computation] == 0) start_next_of(dag_.computations[computation].rank, now);
  };

  for (int rank = 0; rank < dag_.num_ranks(); ++rank) start_next_of(rank, 0);
  double now = 0;
  std::size_t num_ended = 0;
  while (!queue_.empty()) {
    const Event event = pop();
    now = event.time;
    if (!event.is_end) {
      deliver(event.computation, now);
      continue;
    }
    const int rank = dag_.computations[event.computation].rank;
    end_[event.computation] = now;
    ++num_ended;
    ended(event.computation, next_in_order_[rank], now);
    ++next_in_order_[rank];
    is_running_[rank] = 0;
    for (int r = first_receiver_[event.computation]; r < first_receiver_[event.computation + 1]; ++r) {
      const Receiver& receiver = receivers_[r];
      if (receiver.latency == 0)
        deliver(receiver.computation, now);
      else
        push({now + receiver.latency, receiver.computation, false});
    }
    start_next_of(rank, now);
  }
  PERSEUS_CHECK(num_ended == n, "ranks wait for each other: the rank orders contradict the dependencies");
  return now;
}

double PlanRunner::run_on_time(const model::Plan& plan) {
  const auto run = [&](int c, double) {
    const model::Measurement& option = chosen(dag_, plan, c);
    runs_[c] = {option.time, option.energy};
  };
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
    runs_[c] = option.clock == Megahertz(0) ? ClockLine::Run{option.time, option.energy}
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

PlanRun PlanRunner::run(const model::Plan& plan, const PlanRunOptions& options) {
  PERSEUS_CHECK(plan_fits(dag_, plan).ok(), "the plan does not fit the pipeline");
  PERSEUS_CHECK(options.switch_latency >= Seconds(0), "switch latency must not be negative");

  runs_.resize(plan.size());
  const double makespan =
      options.switch_latency == Seconds(0) ? run_on_time(plan) : run_late(plan, options.switch_latency);

  PlanRun result;
  result.makespan = Seconds(makespan);
  result.busy.assign(dag_.rank_order.size(), Seconds(0));
  result.start.reserve(plan.size());
  result.end.reserve(plan.size());
  result.energy_of.reserve(plan.size());
  for (std::size_t c = 0; c < plan.size(); ++c) {
    result.start.emplace_back(start_[c]);
    result.end.emplace_back(end_[c]);
    // Use the duration itself, not end - start, which loses digits late in a long iteration.
    result.busy[dag_.computations[c].rank] += runs_[c].duration;
    result.energy_of.push_back(runs_[c].energy);
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
