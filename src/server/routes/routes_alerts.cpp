// Calls of /v1 about alerts.

#include <string>
#include <vector>

#include "base/json_writer.h"
#include "server/alerts/alerts.h"
#include "server/routes/call_input.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kPageAlerts = 100, kMostPageAlerts = 1000;

std::string alerts_json(const alerts::Alerts& alerts, const alerts::Alerts::Query& query) {
  const alerts::Alerts::Page page = alerts.page(query);
  return json_object([&](JsonWriter& f) {
    f.always("alerts", JsonList{page.alerts, [](const jobs::Alert* alert) -> const jobs::Alert& { return *alert; }});
    if (page.next) f.always("next", alerts::format_alert_cursor(*page.next));
    if (query.after) return;
    std::vector<const jobs::Alert*> resolved;
    for (const jobs::Alert& alert : alerts.resolved()) {
      if (!query.wanted || query.wanted(alert)) resolved.push_back(&alert);
    }
    f.always("resolved", JsonList{resolved, [](const jobs::Alert* alert) -> const jobs::Alert& { return *alert; }});
  });
}

}  // namespace

void Api::list_alerts(Call call) {
  Parameters parameters(call.request);
  alerts::Alerts::Query query{
      parameters.limit("alerts", kPageAlerts, kMostPageAlerts), parameters.after(alerts::parse_alert_cursor), {}};
  const auto kind = parameters.text("alert");
  const auto job = parameters.text("job");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (kind && !jobs::alert_kind_of(*kind)) {
    return call.fail(wrong_parameter("alert", *kind, "one of " + jobs::list_of_alerts(", ")));
  }
  query.wanted = [this, kind, job, identity = call.identity](const jobs::Alert& alert) {
    return (!kind || *kind == name_of(alert.kind)) && (!job || *job == alert.job) &&
           reaches(identity, alert.job) == true;
  };
  call.answer(alerts_json(service_.watch.alerts(), query));
}

}  // namespace perseus::routes
