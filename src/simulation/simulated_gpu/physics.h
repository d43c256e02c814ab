// Advances a simulated GPU exactly from one access to the next: clock, progress, power, energy, counter.
//
// Between two events (a switch takes effect, a computation ends) power and speed are constant, so energy is a sum of
// products, and only rounding depends on the accesses.
//
// Problem: nothing runs in the background, so every access must first advance the device to now, and the result must
//          not depend on the times of the accesses.
// Input:   a specification and a state, both plain bytes that processes share; a time.
// Output:  the state at that time.
// Errors:  none; check() validates that bytes of a file are a specification and a state.
// Cost:    a few operations for each event since the last access.
// Threads: no locking here (see state_file.h).
// Source:  see simulated_gpu.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/units.h"

namespace perseus::simulated_gpu {

inline constexpr int kMostClocks = 256, kMostComputations = 64;

template <class T>
using PerClock = std::array<T, kMostClocks>;

/// SimulatedGpuSpec as bytes.
struct Spec {
  std::array<char, 96> name, uuid;
  std::array<char, 32> pci_bus_id, architecture;
  std::int32_t clocks, computations;
  PerClock<std::int32_t> clock_mhz;  ///< highest first
  std::array<std::array<char, 64>, kMostComputations> computation_name;
  std::array<PerClock<double>, kMostComputations> time_s, power_w;
  PerClock<double> blocking_w, switch_latency_s;
  double idle_w, refresh_s, power_window_s, set_call_s, default_limit_w;
  std::int32_t needs_root, mig, power_smoothing;
  double made_s;  ///< the counter is refreshed at made_s + k * refresh_s
};

/// Exclusive activities; values from 0: that computation.
inline constexpr std::int32_t kWaiting = -1, kIdle = -2;

struct Run {
  std::int64_t runs;
  double time_s, energy_j;
};

/// The energy at a moment at which the power changed.
struct Mark {
  double at_s, energy_j;
};
inline constexpr std::uint64_t kMostMarks = 4096;
using Marks = std::array<Mark, kMostMarks>;

struct Fault {
  std::array<char, 60> function;
  std::int32_t code, times;  ///< times: remaining calls; -1: all
};

struct State {
  double now_s, energy_j, counter_j;
  std::int32_t activity;
  std::int64_t begun;                    ///< number of computations begun so far
  double progress, run_s, run_energy_j;  ///< of the current (or last) computation; progress: 0 to 1
  double finished_s;                     ///< when the last one was done
  std::int32_t clock;                    ///< index of the held clock, before the power limit
  std::int32_t target;                   ///< index of the clock of the switch in progress; -1: none
  double switch_at_s;
  std::int32_t next;   ///< index of the newest clock commanded during that switch; -1: none
  double next_from_s;  ///< when the call of that command returned
  std::int32_t locked;
  double limit_w;
  double capped_s;  ///< total time for which the power limit has lowered the clock
  std::int32_t persistence;
  std::uint64_t marks;  ///< total; the newest is at (marks - 1) % kMostMarks
  std::array<Run, kMostComputations> truth;
  std::array<Fault, 16> faults;
  std::array<std::int32_t, 16> processes;  ///< that have computed on it; 0: no entry
};

/// Empty: both are valid; else the error.
std::string check(const Spec& spec);
std::string check(const Spec& spec, const State& state);

State initial_state(const Spec& spec, double limit_w, Marks& marks);

/// Advances the device to that time; an earlier time than the state's changes nothing.
void advance(const Spec& spec, State& state, Marks& marks, double to_s);

// Commands, at state.now_s.
void begin(const Spec& spec, State& state, Marks& marks, int computation);
/// Begins the computation as if at `began_s`, at the clock that the device has now; at most half of it lies in the
/// past. Returns when it began.
double begin_in_the_past(const Spec& spec, State& state, Marks& marks, int computation, double began_s);
void rest(State& state, Marks& marks, std::int32_t activity);
/// Switches to that clock (an index), after its latency; -1: gives the lock back. During a switch: after that switch,
/// in place of any other waiting clock.
void lock(const Spec& spec, State& state, Marks& marks, int clock);
void limit_power(State& state, Marks& marks, double limit_w);

// Getters, at state.now_s.
/// The actual clock, as an index: the highest, not above the held one, that keeps the power limit.
int running_clock(const Spec& spec, const State& state);
double power_w(const Spec& spec, const State& state);
/// Between two moments not after now, or the remembered part of that interval.
double average_power_w(const State& state, const Marks& marks, double from_s, double to_s);
/// The energy at a moment not after now; before the oldest mark: at that mark.
double energy_at_j(const State& state, const Marks& marks, double at_s);
/// The time of the oldest mark that counts.
double remembered_from_s(const State& state, const Marks& marks);
/// Time until the computation ends if nothing changes; 0: there is none.
double remaining_s(const Spec& spec, const State& state);

}  // namespace perseus::simulated_gpu
