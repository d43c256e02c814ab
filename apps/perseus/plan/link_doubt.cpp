#include "plan/link_doubt.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "io/report/summary.h"
#include "planning/planner/robust_frontier.h"

namespace perseus::cli {

LinkDoubt doubt_about(const Pipeline& pipeline, const model::DefaultRule& rule, const model::Frontier& frontier) {
  const int point = model::default_point(frontier, report::t_max_of(pipeline.dag, frontier), rule);
  const double late_pct = 100 * planner::lateness_with(pipeline.dag, pipeline.other_links, frontier.points[point].plan);
  return {pipeline.other_links.size(), late_pct, late_pct, 0};
}

LinkDoubt keep_with_all_links(const Pipeline& pipeline, const model::DefaultRule& rule, model::Frontier& frontier) {
  if (pipeline.other_links.empty()) return {};
  const auto saving_pct = [&] { return report::summarize(pipeline.dag, frontier, std::nullopt, rule).saving_pct; };
  LinkDoubt doubt = doubt_about(pipeline, rule, frontier);
  const double before_pct = saving_pct();
  std::vector<double> slowdowns(model::kUsualTolerances.begin(), model::kUsualTolerances.end());
  slowdowns.push_back(rule.slowdown);
  frontier = planner::robust_frontier(pipeline.dag, pipeline.other_links, std::move(frontier), slowdowns);
  doubt.cost_pct = before_pct - saving_pct();
  doubt.may_be_late_pct = doubt_about(pipeline, rule, frontier).late_pct;
  return doubt;
}

std::string text_of(const LinkDoubt& doubt) {
  if (doubt.sets == 0) return "";
  const std::string sets = fmt::format("{} other set{} of links explain{} the calibrated runs too: ", doubt.sets,
                                       doubt.sets == 1 ? "" : "s", doubt.sets == 1 ? "s" : "");
  if (doubt.may_be_late_pct == doubt.late_pct) {
    return sets + fmt::format("with them, the default plan may be {:.2f} % later\n", doubt.late_pct);
  }
  return sets + fmt::format(
                    "the default plan is at most {:.2f} % later with any of them, at {:.2f} points of saving; "
                    "a plan for the chosen links alone may be {:.2f} % later\n",
                    doubt.may_be_late_pct, doubt.cost_pct, doubt.late_pct);
}

boost::json::object json_of(const LinkDoubt& doubt) {
  return {{"sets", doubt.sets},
          {"late_pct", doubt.late_pct},
          {"may_be_late_pct", doubt.may_be_late_pct},
          {"cost_pct", doubt.cost_pct}};
}

}  // namespace perseus::cli
