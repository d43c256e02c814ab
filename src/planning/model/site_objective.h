// The objective that a site maximizes.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "planning/model/site.h"

namespace perseus::model {

/// throughput: the weighted sum of rates. slowdown: minus the weighted sum of 1/rate, the time per iteration over that
/// at full speed. max_min: the least rate, then the second least, and so on; weights do not count.
enum class SiteObjective { throughput, slowdown, max_min };

std::string_view name_of(SiteObjective objective);
std::optional<SiteObjective> site_objective_named(std::string_view name);
std::vector<std::string_view> site_objective_names();

/// A job's share of the objective's sum; for max_min its rate. Minus infinity for a slowdown at rate 0.
double value_of(SiteObjective objective, const SiteJob& job, double rate);

/// Value that a job of that weight gains by a watt, on the way from a point to a faster one; not for max_min.
inline double gain_per_w(SiteObjective objective, double weight, const PowerPoint& from, const PowerPoint& to) {
  const double more_w = (to.power - from.power).value();
  // Of a slowdown, 1/from - 1/to: as one quotient, since an allocation computes it for every point of a site.
  const double over = objective == SiteObjective::slowdown ? from.rate * to.rate * more_w : more_w;
  return weight * (to.rate - from.rate) / over;
}

}  // namespace perseus::model
