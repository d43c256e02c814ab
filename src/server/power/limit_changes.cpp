#include "server/power/limit_changes.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/json_writer.h"
#include "io/formats/described_json.h"
#include "planning/site/site_limits.h"
#include "server/jobs/alert.h"

namespace perseus::power {

void describe(auto& f, formats::MaybeConst<LimitChange> auto& s) {
  f.always("domain", s.domain);
  f.always("text", s.text);
  f("by", s.by);
  f.always("at_s", s.at_s);
  f("number", s.number);
}

namespace {

constexpr const char* kKey = "site/limit_changes";

jobs::JobEvent event_of(const LimitChange& change) {
  return {jobs::job_of_domain(change.domain),
          change.number,
          std::string(kLimitChanged),
          change.at_s,
          change.text,
          change.by,
          change.domain};
}

std::string limit_text(Watts limit) {
  return limit == model::kNoLimit ? "none" : fmt::format("{:.6g} kW", limit.value() / 1000);
}

const model::DescribedDomain* domain_in(const jobs::SiteDocument* document, const std::string& name) {
  if (document == nullptr) return nullptr;
  const auto found = std::ranges::find(document->site.domains, name, &model::DescribedDomain::name);
  return found == document->site.domains.end() ? nullptr : &*found;
}

/// Empty: from now on, the limits of the domain are the same.
std::string difference(const model::DescribedDomain* before, const model::DescribedDomain* after, double now_s) {
  const auto limit_of = [](const model::DescribedDomain* domain, double at_s) {
    return domain == nullptr ? model::kNoLimit : site::limit_at(domain->limits, Seconds(at_s));
  };
  std::set<double> times{now_s};
  for (const model::DescribedDomain* const domain : {before, after}) {
    if (domain == nullptr) continue;
    for (const model::LimitStep& step : domain->limits) times.insert(std::max(now_s, step.from.value()));
  }
  for (const double at_s : times) {
    const Watts was = limit_of(before, at_s), is = limit_of(after, at_s);
    if (was == is) continue;
    const std::string from =
        at_s > now_s ? fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(at_s))) : std::string("now");
    return fmt::format("limit from {} on: {}; before: {}", from, limit_text(is), limit_text(was));
  }
  return "";
}

}  // namespace

Status LimitChanges::open(store::Store& from) {
  const auto text = from.blob(kKey);
  if (!text) return text.error();
  if (*text) {
    // What a later version wrote is ignored.
    if (auto read = formats::parse_json_as<std::vector<LimitChange>>(**text, kKey)) changes_ = *std::move(read);
  }
  for (const LimitChange& change : changes_) listener_.limit_changed(event_of(change));
  return Ok{};
}

void LimitChanges::note(const jobs::SiteDocument* before, const jobs::SiteDocument* after, const std::string& by) {
  const double now_s = clock_.now_s();
  std::vector<std::string> names;
  for (const jobs::SiteDocument* const document : {after, before}) {
    if (document == nullptr) continue;
    for (const model::DescribedDomain& domain : document->site.domains) {
      if (std::ranges::find(names, domain.name) == names.end()) names.push_back(domain.name);
    }
  }
  std::vector<jobs::JobEvent> events;
  for (const std::string& name : names) {
    std::string text = difference(domain_in(before, name), domain_in(after, name), now_s);
    if (text.empty()) continue;
    const std::int64_t number = changes_.empty() ? 1 : changes_.back().number + 1;
    changes_.push_back({name, std::move(text), by, now_s, number});
    events.push_back(event_of(changes_.back()));
  }
  if (events.empty()) return;
  if (changes_.size() > kMost) changes_.erase(changes_.begin(), changes_.end() - static_cast<std::ptrdiff_t>(kMost));
  store_.put_blob({kKey, json_text(changes_)}, [this, events](const Result<Ok>&) {
    for (const jobs::JobEvent& event : events) listener_.limit_changed(event);
  });
}

}  // namespace perseus::power
