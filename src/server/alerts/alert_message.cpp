#include "server/alerts/alert_message.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <string_view>

#include "base/json_writer.h"
#include "io/formats/sha256.h"

namespace perseus::alerts {
namespace {

using Labels = std::map<std::string_view, std::string>;

/// In Go's time format, no time.
constexpr std::string_view kNotEnded = "0001-01-01T00:00:00Z";
constexpr std::size_t kFingerprintDigits = 16;

std::string rfc3339(double time_s) {
  constexpr double last_s = 253402300799;  // of the year 9999
  const auto ms = static_cast<std::int64_t>(std::clamp(time_s, 0.0, last_s) * 1000);
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000);
}

std::string_view subject_label(const jobs::Alert& alert) {
  return is_of_domain(alert) ? std::string_view("domain") : std::string_view("training_job");
}
const std::string& subject(const jobs::Alert& alert) { return is_of_domain(alert) ? alert.name : alert.job; }

Labels labels_of(const jobs::Alert& alert) {
  Labels labels{{"alertname", std::string(entry_of(alert.kind).title)},
                {"alert", std::string(name_of(alert.kind))},
                {"severity", "warning"}};
  labels[subject_label(alert)] = subject(alert);
  if (!alert.name.empty() && !is_of_domain(alert)) labels["name"] = alert.name;
  return labels;
}

Labels annotations_of(const jobs::Alert& alert) {
  return {{"summary", fmt::format("{}: {}", name_of_subject(alert), alert.text)},
          {"description", alert.text},
          {"since", rfc3339(alert.since_s)}};
}

}  // namespace

std::string name_of_subject(const jobs::Alert& alert) {
  if (is_of_domain(alert)) return fmt::format("domain '{}'", alert.name);
  return fmt::format("job {}{}", alert.job, alert.name.empty() ? "" : " '" + alert.name + "'");
}

std::string format_alert_message(const jobs::Alert& alert) {
  const std::string_view status = alert.resolved_s ? "resolved" : "firing";
  const Labels labels = labels_of(alert), annotations = annotations_of(alert);
  const Labels group{{"alertname", labels.at("alertname")}, {subject_label(alert), subject(alert)}};
  const auto one = [&](JsonWriter& f) {
    f.always("status", status);
    f.always("labels", labels);
    f.always("annotations", annotations);
    f.always("startsAt", rfc3339(alert.raised_s));
    f.always("endsAt", alert.resolved_s ? rfc3339(*alert.resolved_s) : std::string(kNotEnded));
    f.always("generatorURL", "");
    f.always("fingerprint", formats::sha256(json_text(group)).substr(0, kFingerprintDigits));
  };
  return json_object([&](JsonWriter& f) {
    f.always("version", "4");
    f.always("groupKey", json_text(group));
    f.always("truncatedAlerts", 0);
    f.always("status", status);
    f.always("receiver", "perseus");
    f.always("groupLabels", group);
    f.always("commonLabels", labels);
    f.always("commonAnnotations", annotations);
    f.always("externalURL", "");
    f.always("alerts", std::array{JsonObject{one}});
  });
}

}  // namespace perseus::alerts
