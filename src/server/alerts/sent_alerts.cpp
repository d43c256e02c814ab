#include "server/alerts/sent_alerts.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "io/formats/described_json.h"

namespace perseus::alerts {
namespace {

constexpr std::string_view kSentPrefix = "alert/";

struct StoredAlert {
  std::string alert, job, name, text;
  double since_s = 0, raised_s = 0;
};
void describe(auto& f, formats::MaybeConst<StoredAlert> auto& s) {
  f.always("alert", s.alert);
  f.always("job", s.job);
  f("name", s.name);
  f("text", s.text);
  f("since_s", s.since_s);
  f("raised_s", s.raised_s);
}

std::string blob_of(const jobs::Alert& alert) {
  return std::string(kSentPrefix) + alert.job + "/" + std::string(name_of(alert.kind));
}

/// Nothing: a later version wrote it.
std::optional<jobs::Alert> alert_in(std::string_view text) {
  const auto stored = formats::parse_json_as<StoredAlert>(text, "alert");
  if (!stored) return std::nullopt;
  const auto kind = jobs::alert_kind_of(stored->alert);
  if (!kind) return std::nullopt;
  return jobs::Alert{*kind, stored->job, stored->name, stored->text, stored->since_s, stored->raised_s, std::nullopt};
}

Result<std::vector<jobs::Alert>> read_sent(store::Store& store) {
  const auto keys = store.blob_keys(kSentPrefix);
  if (!keys) return keys.error();
  std::vector<jobs::Alert> alerts;
  for (const std::string& key : *keys) {
    const auto text = store.blob(key);
    if (!text && text.error().code != ErrorCode::internal) return text.error();
    if (!text || !*text) continue;
    if (auto alert = alert_in(**text)) alerts.push_back(*std::move(alert));
  }
  return alerts;
}

}  // namespace

void SentAlerts::enable(bool enabled) {
  if (std::exchange(enabled_, enabled) == enabled) return;
  alarm_.set(enabled ? std::optional(clock_.now_s() + kBetweenLooks_s) : std::nullopt);
  if (!enabled) return;
  for (const auto& [blob, alert] : raised_) raise(alert);
}

void SentAlerts::changed(const jobs::Alert& alert) {
  if (!alert.resolved_s) {
    raised_.insert_or_assign(blob_of(alert), alert);
    if (enabled_) raise(alert);
  } else if (raised_.erase(blob_of(alert)) > 0 && enabled_) {
    sink_.changed(alert);
  }
}

void SentAlerts::raise(const jobs::Alert& alert) {
  sink_.changed(alert);
  const StoredAlert stored{
      std::string(name_of(alert.kind)), alert.job, alert.name, alert.text, alert.since_s, alert.raised_s};
  store_.put_blob({blob_of(alert), json_text(stored)}, [](const Result<Ok>&) {});
}

void SentAlerts::delivered(const jobs::Alert& end) {
  if (raised_.contains(blob_of(end))) return;  // it was raised again meanwhile
  store_.remove_blob(blob_of(end), [](const Result<Ok>&) {});
}

void SentAlerts::look(double now_s) {
  alarm_.set(now_s + kBetweenLooks_s);
  store_.read<std::vector<jobs::Alert>>(read_sent, [this](const Result<std::vector<jobs::Alert>>& sent) {
    constexpr double again_s = 60;
    if (!sent && enabled_) alarm_.set(clock_.now_s() + again_s);
    if (!sent || !enabled_) return;
    for (jobs::Alert alert : *sent) {
      if (raised_.contains(blob_of(alert))) continue;
      alert.resolved_s = clock_.now_s();
      sink_.changed(alert);
    }
  });
}

}  // namespace perseus::alerts
