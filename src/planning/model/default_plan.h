// The rule that chooses a plan: of the plans no slower than allowed, the one of least total energy.
//
// Problem: total energy is the energy of all GPUs over an iteration, waiting included. It falls only up to some
//          iteration time: beyond it, waiting costs more than lower clocks save. Of equal energies the rule takes the
//          faster plan. All pipelines wait for a straggler anyway: up to T' slower plans only save, so that without a
//          tolerance T_opt = min(T*, T').
//          T_max is the iteration time with all computations at maximum clock. If a profile has steps (a throttling GPU
//          is faster at a lower clock), T_min, the least time of any plan, is a little less than T_max; plans between
//          them cost energy and gain time that maximum clock never had. Hence the allowed time is T_max, times one plus
//          the slowdown that the operator allows. The published method uses T_min: DefaultRule::fastest.
// Input:   frontiers with at least one point; T_max.
// Output:  the iteration time to look up (T_min if no point is as fast as allowed), or the index of the point.
// Cost:    O(log points + p log p), p: points within the range of times to choose from.
// Threads: pure functions.
// Source:  docs/decisions/0040-no-slower-than-maximum-clock.md, 0042-least-total-energy.md; paper section 3.1.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/units.h"
#include "planning/model/frontier.h"

namespace perseus::model {

struct DefaultRule {
  double slowdown = 0;   ///< allowed, relative: 0.003 is 0.3 %
  bool fastest = false;  ///< start from T_min, as the published method does, instead of T_max
};

/// Sums of the same times in another order differ in their last digits.
inline constexpr double kSameTime = 1 + 1e-9;

/// Identical pipelines that may run any point of their frontier.
struct Followers {
  const Frontier* frontier = nullptr;
  double copies = 1;  ///< of the accelerators that the frontier counts
};

/// The iteration time between `at_least` (the time of another pipeline; or of the fastest plan, if that is slower) and
/// `at_most` of least total energy, each pipeline at its slowest point within it. It is `at_most`, or T*, unless plans
/// of a faster time need less. `others`: power of pipelines that wait whatever the followers run.
Seconds least_energy_time(std::span<const Followers> followers, Watts others, Seconds at_least, Seconds at_most);
/// Index of the slowest point no slower than `time`; of the fastest point if there is none.
int slowest_within(const Frontier& frontier, Seconds time);

/// Allowed iteration time without a straggler and a tolerance: T_max, or T_min if no plan is that fast.
Seconds allowed_time(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});
/// The iteration time to look up while another pipeline takes T' (0: no straggler).
Seconds planned_time(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {}, Seconds straggler = {});
/// T of T'/T: the iteration time without stragglers and without the tolerance.
Seconds time_without_straggler(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});
/// Index of the point to run without a straggler.
int default_point(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});

/// Slowdowns that operators usually allow, relative to T_max. The planner realizes a plan for each of them.
inline constexpr std::array kUsualTolerances = {0.001, 0.003, 0.01, 0.03};

/// The point of an allowed slowdown, which saves energy over the default plan without one.
struct ToleranceGain {
  double slowdown = 0;
  int point = 0;
};
/// The points of kUsualTolerances, without those that save nothing more.
std::vector<ToleranceGain> usual_tolerances(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});

}  // namespace perseus::model
