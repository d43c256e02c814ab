// The guard below a limit whose meter averages over a window: how far power may exceed its mean.
//
// Problem: a job's power swings within an iteration, so that its mean over a window shorter than minutes is at times
//          above that over the iteration. A limit on window means needs a guard below it, as small as is safe.
// Model:   a job's iteration repeats, and the jobs' iterations are unrelated: at any moment each job is at a random
//          place of its own. The deviations of their window means add up as independent random numbers of mean 0.
// Method:  Bernstein's inequality: the sum exceeds L M / 3 + sqrt((L M / 3)^2 + 2 L V) with a chance of at most
//          exp(-L), M being the greatest deviation of one job and V the sum of the variances; and never the sum of the
//          greatest deviations. The root of the sum of the squares of these alone is no bound: a job that computes at
//          full power and pauses shortly has a small greatest deviation, but many of them exceed its root half of the
//          time.
//          Plans change within windows too, so a job's part of a window may be of any length. Let E(t) be the energy
//          above the mean since the period's beginning. Then the energy of a part exceeds that of the mean by at most
//          max E - min E, with a mean square of at most 4 var E; over the length of the window these are deviations in
//          W. Short windows cannot deviate more than the power itself.
// Input:   one period of power as steps in ascending time, the first at 0; its length; the window; 0: no averaging.
// Output:  window_swing(): the bounds above. window_guard(): what the sum exceeds with a chance of kGuardChance at
//          most, at any moment.
// Errors:  none; a length of 0 is a programming error.
// Cost:    O(steps); O(1).
// Threads: pure functions.
// Source:  S. Bernstein 1924; docs/power.md.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/units.h"

namespace perseus::site {

inline constexpr double kGuardChance = 1e-9;

struct PowerStep {
  Seconds from;
  Watts power;
};

/// Bounds on how the power of a part of a window, over the window's length, deviates from that of the mean.
struct WindowSwing {
  Watts above;             ///< upward
  double variance_w2 = 0;  ///< mean square over all places of the part
};
WindowSwing window_swing(std::span<const PowerStep> period, Seconds length, Seconds window);
/// That of the same job, larger.
WindowSwing operator*(double factor, const WindowSwing& swing);

/// Sums of jobs whose iterations are unrelated.
struct SwingSum {
  Watts above, greatest;
  double variance_w2 = 0;
  void add(const WindowSwing& swing);
  SwingSum& operator+=(const SwingSum& others);
};
Watts window_guard(const SwingSum& jobs);

/// What a choice of points draws: per domain its mean, and the guard that it needs.
struct GuardedLoad {
  std::vector<Watts> used, guard;
};
/// Guards under which a choice keeps the limits: they depend on the choice, and the choice on them. `choose` makes a
/// choice under limits less guards and returns its load. The last choice that it made is the one to take.
std::vector<Watts> settle_guards(std::span<const Watts> limits,
                                 const std::function<GuardedLoad(std::span<const Watts>)>& choose);

}  // namespace perseus::site
