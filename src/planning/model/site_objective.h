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

}  // namespace perseus::model
