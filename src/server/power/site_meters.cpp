#include "server/power/site_meters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"

namespace perseus::power {
namespace {

constexpr const char* kReadingsKey = "site/meter/readings";
constexpr const char* kRefusedKey = "site/meter/refused";
constexpr const char* kCorrectionsKey = "site/meter/corrections";

/// Of a domain.
struct StoredCorrection {
  double factor = 1, used_s = 0;
};
void describe(auto& f, formats::MaybeConst<StoredCorrection> auto& s) {
  f.always("factor", s.factor);
  f.always("used_s", s.used_s);
}

/// Of two, the greater one.
Watts median_of(std::vector<Watts> readings) {
  std::ranges::sort(readings);
  return readings[readings.size() / 2];
}

}  // namespace

Status SiteMeters::open(store::Store& from) {
  const auto readings = from.blob(kReadingsKey);
  if (!readings) return readings.error();
  const auto refused = from.blob(kRefusedKey);
  if (!refused) return refused.error();
  const auto corrections = from.blob(kCorrectionsKey);
  if (!corrections) return corrections.error();
  if (*readings) readings_ = readings_in(**readings);
  if (*refused) refused_ = readings_in(**refused);
  if (*corrections) corrections_ = corrections_in(**corrections);
  return Ok{};
}

/// What a later version wrote is ignored: meters report again soon.
SiteMeters::Readings SiteMeters::readings_in(std::string_view text) {
  auto stored = formats::parse_json_as<Readings>(text, kReadingsKey);
  return stored ? *std::move(stored) : Readings();
}

SiteMeters::Corrections SiteMeters::corrections_in(std::string_view text) {
  Corrections corrections;
  const auto stored = formats::parse_json_as<std::map<std::string, StoredCorrection>>(text, kCorrectionsKey);
  if (!stored) return corrections;
  for (const auto& [domain, one] : *stored)
    corrections[domain] = site::MeterCorrection(one.factor, Seconds(one.used_s));
  return corrections;
}

std::string SiteMeters::corrections_text() const {
  std::map<std::string, StoredCorrection> stored;
  for (const auto& [domain, correction] : corrections_) {
    if (const auto used = correction.last_read()) stored[domain] = {correction.factor(*used), used->value()};
  }
  return json_text(stored);
}

void SiteMeters::take(const jobs::SiteDocument& document, std::span<const Watts> most,
                      std::vector<jobs::MeterReading> readings, work::Done<Ok> done) {
  const double now_s = clock_.now_s();
  Readings next = readings_;
  // Domains that the site does not have any more.
  std::erase_if(next, [&](const auto& known) { return !document.site.has(known.first); });
  for (std::size_t k = 0; k < readings.size(); ++k) {
    const jobs::MeterReading& reading = readings[k];
    const std::string at = fmt::format("body: readings[{}].", k);
    if (!document.site.has(reading.domain)) {
      return done(Error{ErrorCode::usage,
                        fmt::format("{}domain: '{}'; allowed: the name of a domain of the site", at, reading.domain)});
    }
    const auto domain = std::ranges::find(document.site.domains, reading.domain, &model::DescribedDomain::name);
    const Watts allowed = kFar * most[static_cast<std::size_t>(domain - document.site.domains.begin())];
    if (allowed > Watts(0) && reading.power > allowed) {
      refused_[reading.domain] = {{now_s, reading.power.value()}};
      return store_refused(
          [done = std::move(done),
           error = Error{ErrorCode::usage,
                         fmt::format("{}power_w: {:g}; allowed: at most {:g}, twice what '{}' draws with all its "
                                     "accelerators at accelerator_w, or its greatest limit",
                                     at, reading.power.value(), allowed.value(), reading.domain)}](const Result<Ok>&) {
            done(error);
          });
    }
    if (refused_.erase(reading.domain) > 0) store_refused([](const Result<Ok>&) {});
    const double at_s = reading.at_s == 0 ? now_s : reading.at_s;
    std::vector<Reading>& list = next[reading.domain];
    if (at_s > now_s + kAhead_s) {
      return done(Error{ErrorCode::usage, fmt::format("{}at_s: {:.3f}; allowed: at most {:g} s ahead of the server's "
                                                      "time, {:.3f}",
                                                      at, at_s, kAhead_s, now_s)});
    }
    if (!list.empty() && at_s <= list.back().at_s) {
      return done(Error{ErrorCode::usage, fmt::format("{}at_s: {:.3f}; allowed: after the last reading, {:.3f}", at,
                                                      at_s, list.back().at_s)});
    }
    list.push_back({at_s, reading.power.value()});
    if (list.size() > kKept) list.erase(list.begin());
  }
  store::Blob blob{kReadingsKey, json_text(next)};
  store_.put_blob(std::move(blob), [this, next = std::move(next), done = std::move(done)](const Result<Ok>& put) {
    if (put) readings_ = next;
    done(put);
  });
}

void SiteMeters::store_refused(work::Done<Ok> done) {
  store_.put_blob({kRefusedKey, json_text(refused_)}, std::move(done));
}

std::optional<Watts> SiteMeters::last(const std::string& domain, double now_s) const {
  const auto known = readings_.find(domain);
  if (known == readings_.end()) return std::nullopt;
  std::vector<Watts> fresh;
  for (const Reading& one : known->second) {
    if (one.at_s >= now_s - kFresh_s) fresh.emplace_back(one.power_w);
  }
  return fresh.empty() ? std::nullopt : std::optional(median_of(fresh));
}

std::optional<Watts> SiteMeters::refused(const std::string& domain, double now_s) const {
  const auto known = refused_.find(domain);
  if (known == refused_.end() || known->second.back().at_s < now_s - kFresh_s) return std::nullopt;
  return Watts(known->second.back().power_w);
}

std::vector<double> SiteMeters::factors(const jobs::SiteDocument& document, double now_s) const {
  std::vector<double> factors;
  for (const model::DescribedDomain& domain : document.site.domains) {
    const auto known = corrections_.find(domain.name);
    const site::MeterCorrection correction = known == corrections_.end() ? site::MeterCorrection() : known->second;
    factors.push_back(correction.factor(Seconds(now_s)));
  }
  return factors;
}

void SiteMeters::correct(const std::string& domain, Watts expected, double since_s, double now_s) {
  const auto known = readings_.find(domain);
  if (known == readings_.end()) return;
  std::vector<Watts> usable;
  for (const Reading& one : known->second) {
    if (one.at_s > since_s && one.at_s >= now_s - kFresh_s) usable.emplace_back(one.power_w);
  }
  if (usable.size() < kKept) return;
  site::MeterCorrection& correction = corrections_[domain];
  const Seconds last(known->second.back().at_s), before = correction.last_read().value_or(Seconds(0));
  correction.read(last, median_of(usable), expected);
  // Also where the factor stays: when it was last confirmed matters.
  if (correction.last_read().value_or(Seconds(0)) == before) return;
  store_.put_blob({kCorrectionsKey, corrections_text()}, [](const Result<Ok>&) {});
}

}  // namespace perseus::power
