#include "server/service/sent_alerts.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json_writer.h"
#include "io/formats/described_json.h"

namespace perseus::service {
namespace {

constexpr std::string_view kSentPrefix = "alert/";

struct StoredAlert {
  std::string alert, job, name, text;
  double since_s = 0, raised_s = 0;
};
template <class F, class S>
requires std::is_same_v<std::remove_const_t<S>, StoredAlert>
void describe(F& f, S& s) {
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
  const auto kind = std::ranges::find(jobs::kAlertNames, stored->alert);
  if (kind == jobs::kAlertNames.end()) return std::nullopt;
  return jobs::Alert{static_cast<jobs::AlertKind>(kind - jobs::kAlertNames.begin()),
                     stored->job,
                     stored->name,
                     stored->text,
                     stored->since_s,
                     stored->raised_s,
                     std::nullopt};
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

void SentAlerts::note(const jobs::Alert& alert) {
  if (alert.resolved_s) {
    const auto last = raised_s_.find(blob_of(alert));
    if (last != raised_s_.end() && last->second > alert.raised_s) return;  // it was raised again meanwhile
    if (last != raised_s_.end()) raised_s_.erase(last);
    return store_.remove_blob(blob_of(alert), [](const Result<Ok>&) {});
  }
  raised_s_[blob_of(alert)] = alert.raised_s;
  const StoredAlert stored{
      std::string(name_of(alert.kind)), alert.job, alert.name, alert.text, alert.since_s, alert.raised_s};
  store_.put_blob({blob_of(alert), json_text(stored)}, [](const Result<Ok>&) {});
}

void SentAlerts::tick(double now_s) {
  if (!enabled_ || now_s < next_s_) return;
  next_s_ = now_s + kBetweenLooks_s;
  store_.read<std::vector<jobs::Alert>>(read_sent,
                                        [weak = weak_from_this()](const Result<std::vector<jobs::Alert>>& sent) {
                                          const auto self = weak.lock();
                                          if (!self) return;
                                          constexpr double again_s = 60;
                                          if (!sent) self->next_s_ = self->clock_.now_s() + again_s;
                                          if (!sent) return;
                                          for (const jobs::Alert& alert : *sent) self->check(alert);
                                        });
}

}  // namespace perseus::service
