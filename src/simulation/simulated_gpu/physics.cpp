#include "simulation/simulated_gpu/physics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace perseus::simulated_gpu {
namespace {

/// A transaction that a crash undid may have written behind the newest mark: do not trust the oldest ones.
constexpr std::uint64_t kTrustedMarks = kMostMarks - 64;

bool is_text(const auto& characters) {
  return std::find(characters.begin(), characters.end(), '\0') != characters.end();
}
bool is_positive(double value) { return std::isfinite(value) && value > 0; }
bool is_not_negative(double value) { return std::isfinite(value) && value >= 0; }

double power_at(const Spec& spec, std::int32_t activity, int clock) {
  if (activity == kIdle) return spec.idle_w;
  return activity == kWaiting ? spec.blocking_w[clock] : spec.power_w[activity][clock];
}

void mark(State& state, Marks& marks) { marks[state.marks++ % kMostMarks] = {state.now_s, state.energy_j}; }

int held_down(const Spec& spec, const State& state, int clock) {
  while (clock + 1 < spec.clocks && power_at(spec, state.activity, clock) > state.limit_w) ++clock;
  return clock;
}

/// The energy at that moment: between two marks the power was constant. Before the oldest: the oldest.
Mark energy_at(const State& state, const Marks& marks, double at_s) {
  Mark later{state.now_s, state.energy_j};
  const std::uint64_t oldest = state.marks > kTrustedMarks ? state.marks - kTrustedMarks : 0;
  for (std::uint64_t i = state.marks; i-- > oldest && later.at_s > at_s;) {
    const Mark& earlier = marks[i % kMostMarks];
    if (earlier.at_s > at_s) {
      later = earlier;
      continue;
    }
    const double share = (at_s - earlier.at_s) / (later.at_s - earlier.at_s);
    return {at_s, earlier.energy_j + share * (later.energy_j - earlier.energy_j)};
  }
  return later;
}

/// Advances from now to `end_s`, while nothing changes.
void pass(const Spec& spec, State& state, double end_s) {
  const int clock = running_clock(spec, state);
  const double watts = power_at(spec, state.activity, clock), dt = end_s - state.now_s;
  if (spec.refresh_s > 0) {
    const double refresh = spec.made_s + std::floor((end_s - spec.made_s) / spec.refresh_s) * spec.refresh_s;
    if (refresh >= state.now_s && refresh <= end_s) {
      state.counter_j = std::max(state.counter_j, state.energy_j + watts * (refresh - state.now_s));
    }
  }
  state.energy_j += watts * dt;
  if (spec.refresh_s <= 0) state.counter_j = state.energy_j;
  if (clock != state.clock) state.capped_s += dt;
  if (state.activity >= 0) {
    state.progress += dt / spec.time_s[state.activity][clock];
    state.run_s += dt;
    state.run_energy_j += watts * dt;
  }
  state.now_s = end_s;
}

void finish(State& state, Marks& marks) {
  Run& truth = state.truth[state.activity];
  ++truth.runs;
  truth.time_s += state.run_s;
  truth.energy_j += state.run_energy_j;
  state.finished_s = state.now_s;
  rest(state, marks, kWaiting);
}

void begin_switch(const Spec& spec, State& state, int clock, double from_s) {
  state.target = clock == state.clock ? -1 : clock;
  state.switch_at_s = from_s + spec.switch_latency_s[clock];
  state.next = -1;
}

void finish_switch(const Spec& spec, State& state, Marks& marks) {
  do {
    state.clock = std::exchange(state.target, -1);
    mark(state, marks);
    if (state.next >= 0) begin_switch(spec, state, state.next, std::max(state.switch_at_s, state.next_from_s));
  } while (state.target >= 0 && state.switch_at_s <= state.now_s);
}

}  // namespace

std::string check(const Spec& spec) {
  if (!is_text(spec.name) || !is_text(spec.uuid) || !is_text(spec.pci_bus_id) || !is_text(spec.architecture)) {
    return "a name is not terminated";
  }
  if (spec.clocks < 1 || spec.clocks > kMostClocks) return "the number of clocks is not from 1 to 256";
  if (spec.computations < 0 || spec.computations > kMostComputations) {
    return "the number of computations is not from 0 to 64";
  }
  for (int k = 0; k < spec.clocks; ++k) {
    if (spec.clock_mhz[k] < 1 || (k > 0 && spec.clock_mhz[k] >= spec.clock_mhz[k - 1])) {
      return "its clocks are not positive and falling";
    }
    if (!is_positive(spec.blocking_w[k])) return "a blocking power is not positive";
    if (!is_not_negative(spec.switch_latency_s[k])) return "a switch latency is negative";
    for (int c = 0; c < spec.computations; ++c) {
      if (!is_positive(spec.time_s[c][k])) return "the time of a computation is not positive";
      if (!is_positive(spec.power_w[c][k])) return "the power of a computation is not positive";
    }
  }
  for (int c = 0; c < spec.computations; ++c) {
    if (!is_text(spec.computation_name[c])) return "the name of a computation is not terminated";
  }
  if (!is_not_negative(spec.idle_w)) return "the idle power is negative";
  if (!is_not_negative(spec.refresh_s)) return "the counter's refresh period is negative";
  if (!is_not_negative(spec.power_window_s)) return "the power's window is negative";
  if (!is_not_negative(spec.set_call_s)) return "the time of a call is negative";
  if (!is_positive(spec.default_limit_w)) return "the default power limit is not positive";
  if (!std::isfinite(spec.made_s)) return "the time at which it was made is not finite";
  return {};
}

std::string check(const Spec& spec, const State& state) {
  for (const double value :
       {state.now_s, state.energy_j, state.counter_j, state.progress, state.run_s, state.run_energy_j, state.finished_s,
        state.switch_at_s, state.next_from_s, state.capped_s}) {
    if (!std::isfinite(value)) return "a number of its state is not finite";
  }
  if (state.activity < kIdle || state.activity >= spec.computations)
    return "its activity is not one of its computations";
  const auto is_clock = [&](std::int32_t clock) { return clock >= 0 && clock < spec.clocks; };
  if (!is_clock(state.clock) || (state.target != -1 && !is_clock(state.target)) ||
      (state.next != -1 && !is_clock(state.next))) {
    return "its current clock is not one of its clocks";
  }
  if (!is_positive(state.limit_w)) return "its power limit is not positive";
  if (state.marks < 1) return "its history is empty";
  for (const Fault& fault : state.faults) {
    if (!is_text(fault.function)) return "the name of a function is not terminated";
  }
  return {};
}

State initial_state(const Spec& spec, double limit_w, Marks& marks) {
  State state{};
  state.now_s = spec.made_s;
  state.activity = kIdle;
  state.target = state.next = -1;
  state.limit_w = limit_w;
  state.persistence = 1;
  mark(state, marks);
  return state;
}

void advance(const Spec& spec, State& state, Marks& marks, double to_s) {
  while (state.now_s < to_s) {
    double end_s = to_s;
    const bool switches = state.target >= 0 && state.switch_at_s <= end_s;
    if (switches) end_s = std::max(state.switch_at_s, state.now_s);
    bool finishes = false;
    if (state.activity >= 0) {
      const double left = std::max(0.0, 1 - state.progress);
      const double finish_s = state.now_s + left * spec.time_s[state.activity][running_clock(spec, state)];
      finishes = finish_s <= end_s;
      if (finishes) end_s = finish_s;
    }
    pass(spec, state, end_s);
    if (finishes) finish(state, marks);
    if (switches && state.switch_at_s <= end_s) finish_switch(spec, state, marks);
  }
}

void begin(const Spec& spec, State& state, Marks& marks, int computation) {
  if (computation < 0 || computation >= spec.computations) return;
  rest(state, marks, computation);
  state.progress = state.run_s = state.run_energy_j = 0;
  ++state.begun;
}

double begin_in_the_past(const Spec& spec, State& state, Marks& marks, int computation, double began_s) {
  if (computation < 0 || computation >= spec.computations) return state.now_s;
  const bool was_free = state.activity < 0;
  const double drew_w = power_w(spec, state);
  begin(spec, state, marks, computation);
  const int clock = running_clock(spec, state);
  const double takes_s = spec.time_s[computation][clock];
  const double ago_s = was_free ? std::clamp(state.now_s - began_s, 0.0, takes_s / 2) : 0.0;
  state.progress = ago_s / takes_s;
  state.run_s = ago_s;
  state.run_energy_j = spec.power_w[computation][clock] * ago_s;
  state.energy_j += state.run_energy_j - drew_w * ago_s;
  mark(state, marks);
  return state.now_s - ago_s;
}

void rest(State& state, Marks& marks, std::int32_t activity) {
  state.activity = activity;
  mark(state, marks);
}

void lock(const Spec& spec, State& state, Marks& marks, int clock) {
  state.locked = clock >= 0 ? 1 : 0;
  clock = std::max(clock, 0);  // the driver's own choice is the highest
  const double from_s = state.now_s + spec.set_call_s;
  if (state.target < 0) {
    begin_switch(spec, state, clock, from_s);
    if (state.target >= 0 && state.switch_at_s <= state.now_s) finish_switch(spec, state, marks);
  } else if (clock == state.target) {
    state.next = -1;
  } else if (clock != state.next) {
    state.next = clock;
    state.next_from_s = from_s;
  }
}

void limit_power(State& state, Marks& marks, double limit_w) {
  state.limit_w = limit_w;
  mark(state, marks);
}

int running_clock(const Spec& spec, const State& state) { return held_down(spec, state, state.clock); }

double power_w(const Spec& spec, const State& state) {
  return power_at(spec, state.activity, running_clock(spec, state));
}

double average_power_w(const State& state, const Marks& marks, double from_s, double to_s) {
  const Mark from = energy_at(state, marks, from_s), to = energy_at(state, marks, to_s);
  return to.at_s > from.at_s ? (to.energy_j - from.energy_j) / (to.at_s - from.at_s) : 0;
}

double energy_at_j(const State& state, const Marks& marks, double at_s) {
  return energy_at(state, marks, at_s).energy_j;
}

double remembered_from_s(const State& state, const Marks& marks) {
  return marks[(state.marks > kTrustedMarks ? state.marks - kTrustedMarks : 0) % kMostMarks].at_s;
}

double remaining_s(const Spec& spec, const State& state) {
  if (state.activity < 0) return 0;
  const PerClock<double>& time_s = spec.time_s[state.activity];
  double left = std::max(0.0, 1 - state.progress), passed_s = 0, switch_at_s = state.switch_at_s;
  int clock = state.clock, target = state.target, next = state.next;
  for (;;) {
    const double takes_s = time_s[held_down(spec, state, clock)];
    const double until_switch_s = std::max(0.0, switch_at_s - state.now_s - passed_s);
    if (target < 0 || left * takes_s <= until_switch_s) return passed_s + left * takes_s;
    left -= until_switch_s / takes_s;
    passed_s += until_switch_s;
    clock = std::exchange(target, next);
    next = -1;
    if (target >= 0) switch_at_s = std::max(switch_at_s, state.next_from_s) + spec.switch_latency_s[target];
  }
}

}  // namespace perseus::simulated_gpu
