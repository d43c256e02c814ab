// Runs a site's day in virtual time under one method: who is granted what when, and the power that results.
//
// Model:   Announced limits are known to the ranks ahead ("from t on, point k"): plans change the longest iteration
//          before an announced fall. Grants after a surprise, and raises that wait for falls, take the day's delay to
//          each rank. Raises are sent when every rank of the jobs that fall has confirmed; a change of the limits
//          before that replaces them. Jobs begin at random places of their iterations, and each job's power follows its
//          plan's own timeline, times its bias. Limits are kept by means over iterations plus the guard of the domain's
//          window (planning/site/window_guard.h). Nothing is kept back for the iterations in which jobs fall, although
//          these may draw more than the new plan does on average. With feedback, plans follow what jobs and meters
//          report (day_feedback.h), as after a surprise.
// Input:   a valid day of a length above 0, a method, the name of which is known.
// Output:  power per traced domain (the site, and those with a limit) in bins of 1 s; finer power of the site before
//          the first fall and around surprises; what was planned; work per job. The same day gives the same result.
// Cost:    O(jobs x (bins + grants)), see docs/measurements/site.md.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "planning/model/site_objective.h"
#include "simulation/site_emulator/power_trace.h"
#include "simulation/site_emulator/site_day.h"

namespace perseus::site_emulator {

/// What the site does from a moment on, per traced domain.
struct PlannedPower {
  Seconds from;
  std::vector<Watts> limit, used, guard;
};

struct DomainPower {
  int domain = 0;
  std::vector<double> power_w;  ///< mean of each bin
  Watts demand;                 ///< without any limit
};

/// Finer power of the whole site.
struct FinePower {
  std::string name;
  Seconds from, width;
  std::vector<double> power_w;
};

/// How a surprise ended.
struct Reaction {
  Seconds guaranteed;  ///< longest delay and longest computation
  Seconds reached;     ///< when the last rank of the last falling job followed
  int falls = 0;       ///< jobs
};

struct DayRun {
  std::string method;
  Seconds bin_width;
  std::vector<DomainPower> domains;   ///< the site first
  std::vector<PlannedPower> planned;  ///< ascending
  std::vector<FinePower> fine;
  std::vector<Reaction> reactions;  ///< per surprise
  std::vector<double> rate;         ///< per job: mean over the day, of its full speed
  std::vector<double> work_until;   ///< per planned: weighted work of all jobs before it, over that at full speed
  long falls = 0, raises = 0;       ///< grants that took effect
  long corrections = 0;             ///< plans made again because of what jobs or meters reported
};

DayRun run_day(const SiteDay& day, std::string_view method, model::SiteObjective objective,
               const std::function<void(double)>& progress = {});

/// What is random about a day: where jobs begin, what they draw, how long grants take.
/// Input:   a seed. Normal and uniform numbers are made here, since those of libraries differ.
/// Output:  the same numbers for the same seed and day, whatever the method.
class DayDice {
 public:
  explicit DayDice(std::uint64_t seed) : engine_(seed) {}
  double uniform();  ///< in [0, 1)
  double normal();

 private:
  std::mt19937_64 engine_;
};

/// Per job: the part of its first iteration that is over at 0 s.
std::vector<double> draw_places(const SiteDay& day);
/// Per job: power over that of its profile, at least a tenth.
std::vector<double> draw_factors(const SiteDay& day);
/// Of one grant to one rank, in s.
double draw_delay_s(const GrantDelay& delay, DayDice& dice);

}  // namespace perseus::site_emulator
