// What links that a calibration leaves possible mean for a plan.
//
// Input:   a pipeline with Pipeline::other_links, its frontier, the rule of the default plan.
// Output:  the frontier, whose plans keep their times with all links (planning/planner/robust_frontier.h); how much
//          that avoids and costs, for people and programs.
// Cost:    that of robust_frontier().
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "plan/pipeline.h"
#include "planning/model/default_plan.h"
#include "planning/model/frontier.h"

namespace perseus::cli {

/// Key of a plan file's metadata: the number of sets that its plans keep their times with.
constexpr const char* kOtherLinksKey = "other_links";

/// Of the default plan, in percent; all 0 where the links are known.
struct LinkDoubt {
  std::size_t sets = 0;        ///< of links, besides the chosen one
  double late_pct = 0;         ///< how much later the plan for the chosen links alone may be
  double may_be_late_pct = 0;  ///< the same of the plan in the frontier
  double cost_pct = 0;         ///< points of saving that it costs
};

LinkDoubt keep_with_all_links(const Pipeline& pipeline, const model::DefaultRule& rule, model::Frontier& frontier);
/// The doubt about a frontier that is not changed, such as one with a switch latency.
LinkDoubt doubt_about(const Pipeline& pipeline, const model::DefaultRule& rule, const model::Frontier& frontier);

/// One line, empty where the links are known.
std::string text_of(const LinkDoubt& doubt);
boost::json::object json_of(const LinkDoubt& doubt);

}  // namespace perseus::cli
