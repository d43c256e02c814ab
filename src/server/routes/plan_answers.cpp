#include "server/routes/plan_answers.h"

#include <memory>

#include "base/json_writer.h"
#include "server/jobs/api_answers.h"

namespace perseus::routes {

std::string plan_json(const jobs::PlanAnswer& answer, const AnswerTimes& times) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", answer.rank);
    if (answer.renews || (answer.schedule && answer.schedule->budget)) {
      f.always("sent_at_s", times.sent_at_s);
      f.always("held_s", times.held_s);
    }
    if (!answer.schedule) return f.always("unchanged", true);
    f.always("pipeline", answer.pipeline);
    auto& text = answer.schedule->rendered["v1"];
    if (!text) text = std::make_shared<const std::string>(json_text(*answer.schedule));
    f.members_of(*text);
  });
}

std::string registered_json(const jobs::RegisterRankAnswer& rank, const AnswerTimes& times) {
  return json_object([&](JsonWriter& f) {
    f.always("registered", rank.registered);
    f.always("expected", rank.expected);
    f.always("epoch", rank.epoch);
    if (rank.plan) f.always("plan", JsonRaw{plan_json(*rank.plan, times)});
  });
}

std::string reported_json(const jobs::ReportedIterations& reported) { return json_text(reported); }

}  // namespace perseus::routes
