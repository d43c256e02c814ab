#include "server/live/event_effects.h"

#include <variant>

#include "server/live/job_view.h"

namespace perseus::live {

bool leaves_plans_unchanged(const jobs::EventBody& body) {
  return std::holds_alternative<jobs::RankRegistered>(body) || std::holds_alternative<jobs::RankMeasured>(body) ||
         std::holds_alternative<jobs::ResultReported>(body) || std::holds_alternative<jobs::JobSeen>(body) ||
         std::holds_alternative<jobs::IterationsCounted>(body) || std::holds_alternative<jobs::ReportsKept>(body) ||
         std::holds_alternative<jobs::VersionHeld>(body) || std::holds_alternative<jobs::JobSilent>(body) ||
         std::holds_alternative<jobs::JobHeard>(body);
}

namespace {

bool revalues_iterations(const LiveJob& live, const jobs::EventBody& body) {
  if (const auto* rank = std::get_if<jobs::RankRegistered>(&body)) return live.has_rank(rank->rank);
  if (const auto* rank = std::get_if<jobs::RankMeasured>(&body)) return rank->control.has_value();
  if (std::holds_alternative<jobs::ReportsKept>(body)) return !live.reports.name_plans(live.job);
  if (const auto* measured = std::get_if<jobs::EnergyMeasured>(&body)) {
    return measured->version == 0 || !live.reports.name_plans(live.job);
  }
  return std::holds_alternative<jobs::PlanDeployed>(body) || std::holds_alternative<jobs::StragglerTookEffect>(body) ||
         std::holds_alternative<jobs::StragglerWithdrawn>(body) || std::holds_alternative<jobs::JobFinished>(body) ||
         std::holds_alternative<jobs::JobExpired>(body);
}

}  // namespace

std::vector<jobs::IterationsCounted> counts_before(const LiveJob& live, const jobs::EventBody& body) {
  return revalues_iterations(live, body) ? counts_since(live) : std::vector<jobs::IterationsCounted>();
}

}  // namespace perseus::live
