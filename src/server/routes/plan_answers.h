// Answers to ranks as JSON: their plan, registration and report.
//
// Output:  as Plan, RegisterRankAnswer and Reported of docs/openapi.json.
// Cost:    a plan's text is made once per StageSchedule and shared by all ranks that have it.
// Threads: io thread.
#pragma once

#include <string>

#include "server/jobs/requests.h"

namespace perseus::routes {

std::string plan_json(const jobs::PlanAnswer& answer);
std::string registered_json(const jobs::RegisterRankAnswer& rank);
std::string reported_json(const jobs::ReportedIterations& reported);

}  // namespace perseus::routes
