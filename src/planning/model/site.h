// A site: a tree of power domains with watt limits, and the jobs that share them.
//
// Shape:   domain 0 is the site, and every parent comes before its children. A job runs in one domain, whose limit and
//          those of all domains around it count its whole power. The points of a curve are strictly increasing in power
//          and in rate.
// Units:   W of all accelerators of a job, by the profile: losses of supply and cooling are taken off the limits.
//          Rates are iterations per second over those of the job's fastest plan: 1 is full speed.
// Errors:  validate() names the first thing that breaks this shape.
// Threads: plain values.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace perseus::model {

/// A limit that never binds.
inline constexpr Watts kNoLimit{std::numeric_limits<double>::infinity()};

struct PowerDomain {
  std::string name;
  int parent = -1;  ///< -1: the site
};

/// A way to run a job: a plan of its frontier, or the slowest plan with a wait after each iteration.
struct PowerPoint {
  Watts power;
  double rate = 0;
  int plan = 0;        ///< point of the frontier
  bool paced = false;  ///< waits
};

struct PowerCurve {
  std::vector<PowerPoint> points;
};

struct SiteJob {
  std::string name;
  PowerCurve curve;
  double weight = 1;      ///< cost of its slowdown, relative to other jobs
  double least_rate = 0;  ///< the floor of its tier: 0.9 accepts 10 % fewer iterations per second
  int domain = 0;
  Watts all_max{};  ///< with all computations at maximum clock: what the job draws without Perseus
};

struct Site {
  std::vector<PowerDomain> domains;
  std::vector<SiteJob> jobs;
};

Status validate(const Site& site);

/// What the jobs of a site get.
struct Allocation {
  std::vector<int> chosen;     ///< per job: index into its curve's points
  std::vector<double> price;   ///< per domain: value of one more watt, 0 where its limit does not bind
  std::vector<Watts> missing;  ///< per domain: by how much the floors of its jobs exceed its limit
  double value = 0;            ///< of the objective: summed over jobs; for max_min the least rate
  double bound = 0;            ///< no allocation has a greater value; not a number where floors exceed a limit
};

}  // namespace perseus::model
