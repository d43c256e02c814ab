// The rule by which plans are chosen: of those not slower than allowed, the one of least total energy.
//
// Total energy is what all GPUs draw over an iteration, waiting included. It falls only up to some iteration time:
// beyond it, waiting costs more than lower clocks save. Of equal energies the faster plan. What another pipeline takes
// (a straggler) is waited for anyway: up to T' slower plans only save, so that without a tolerance T_opt = min(T*, T').
//
// T_max is the iteration time with everything at maximum clock. Where a profile has steps (a GPU that throttles is
// faster at a lower clock), T_min, the least time of any plan, is a little less than T_max; plans between them cost
// energy and gain time that maximum clock never had. So what is allowed is T_max, stretched by the slowdown that the
// operator tolerates. The published method keeps T_min: DefaultRule::fastest.
// Input:   frontiers with at least one point; T_max.
// Output:  the iteration time to look up; T_min where no point is as fast as allowed. The point: its index.
// Cost:    O(log points + p log p), p: points of the times between which is chosen.
// Threads: pure.
// Source:  docs/decisions/0040-no-slower-than-maximum-clock.md, 0042-least-total-energy.md; paper section 3.1.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "planning/model/frontier.h"

namespace perseus::model {

struct DefaultRule {
  double slowdown = 0;   ///< tolerated, relative: 0.003 is 0.3 %
  bool fastest = false;  ///< start from T_min, as the published method does, instead of T_max
};

/// Sums of the same times in another order differ in their last digits.
inline constexpr double same_time = 1 + 1e-9;

/// Pipelines that do the same and may run any point of their frontier.
struct Followers {
  const Frontier* frontier = nullptr;
  double copies = 1;  ///< of the accelerators that the frontier counts
};

/// The iteration time between `at_least` (what somebody takes anyway; or the fastest plan, if that is slower) and
/// `at_most` at which all together draw least, each at its slowest point within it. That is `at_most`, or T*, unless a
/// faster time has plans that need less. `others`: power of those that wait along whatever the others run.
Seconds least_energy_time(std::span<const Followers> followers, Watts others, Seconds at_least, Seconds at_most);
/// Index of the slowest point that takes no longer; the fastest point's if there is none.
int slowest_within(const Frontier& frontier, Seconds time);

/// What a pipeline may take without a straggler and a tolerance: T_max, or T_min where no plan is that fast.
Seconds allowed_time(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});
/// The iteration time to look up while another pipeline takes T' (0: none does).
Seconds planned_time(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {}, Seconds straggler = {});
/// T of T'/T: the iteration time without stragglers and without the tolerance.
Seconds time_without_straggler(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});
/// The point that runs without a straggler.
int default_point(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});

/// What a tolerated slowdown saves beyond the default plan without one.
struct ToleranceGain {
  double slowdown = 0;
  int point = 0;
};
/// The points of some usual tolerances (0.1, 0.3, 1 and 3 %); those that save nothing more are left out.
std::vector<ToleranceGain> usual_tolerances(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});

}  // namespace perseus::model
