// A day of a site: what its limits are, what happens unannounced, and how long a grant takes to reach a rank.
//
// Units:   W of the accelerators.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/site/site_plan.h"
#include "simulation/site_emulator/job_kind.h"

namespace perseus::site_emulator {

/// One pipeline; jobs of a kind differ in how many they have.
struct DayKind {
  const model::ComputationDag* dag = nullptr;
  const model::Frontier* frontier = nullptr;
};

/// A limit that nobody knows of before it holds.
struct Surprise {
  int domain = 0;
  Seconds at, until;
  Watts limit;
  Seconds within;                      ///< how long the site has got
  std::optional<double> up_w_per_s{};  ///< of the rise at its end
};

/// Time from a grant to a rank's clock: lognormal, cut off at `most`.
struct GrantDelay {
  Seconds median{0.05}, most{1};
  double spread = 1;  ///< standard deviation of its logarithm
};

/// What plans learn of the power that jobs really draw; nothing: an open loop.
struct Feedback {
  bool reports = false;  ///< energies of whole iterations under one plan
  bool meter = false;    ///< of each domain with a limit
};

struct SiteDay {
  site::TimedSite timed;  ///< its limits are announced
  std::vector<DayKind> kinds;
  std::vector<int> kind_of;    ///< per job
  std::vector<double> copies;  ///< per job: of each accelerator of its kind
  std::vector<Surprise> surprises;
  Seconds ramp_step{60};
  GrantDelay delay;
  double bias = 0;       ///< standard deviation of the factor by which a job draws more or less than its profile says
  double draw_more = 0;  ///< by which all jobs draw more
  Feedback feedback;
  std::uint64_t seed = 1;
};

/// The way of a point of a job's curve.
int way_of_point(const SiteDay& day, std::vector<JobKind>& kinds, std::size_t job, int point);

}  // namespace perseus::site_emulator
