// Answers to ranks as JSON: their plan, registration and report.
//
// Output:  as Plan, RegisterRankAnswer and Reported of docs/openapi.json. A plan under a budget, and its renewal, have
//          the server's time, since falls that are sent ahead have times (training/client/server_clock.h).
// Cost:    a plan's text is made once per StageSchedule and shared by all ranks that have it.
// Threads: io thread.
#pragma once

#include <string>

#include "server/jobs/requests.h"

namespace perseus::routes {

/// When an answer is sent, and how long after its request has arrived.
struct AnswerTimes {
  double sent_at_s = 0, held_s = 0;
};
std::string plan_json(const jobs::PlanAnswer& answer, const AnswerTimes& times);
std::string registered_json(const jobs::RegisterRankAnswer& rank, const AnswerTimes& times);
std::string reported_json(const jobs::ReportedIterations& reported);

}  // namespace perseus::routes
