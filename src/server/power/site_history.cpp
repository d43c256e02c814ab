#include "server/power/site_history.h"

#include <cmath>
#include <limits>
#include <utility>

namespace perseus::power {
namespace {

constexpr double kRetry_s = 10;

std::int64_t minute_at(double now_s) {
  return static_cast<std::int64_t>(std::floor(now_s / store::kMinute_s)) * store::kMinute_s;
}

}  // namespace

store::SiteFigures site_figures(const SiteDomainView& domain) {
  store::SiteFigures figures;
  figures.readings = 1;
  if (domain.limit && domain.metered) {
    figures.limited = 1;
    figures.limit_w = domain.limit->value();
    figures.metered_limit_w = domain.metered->value();
    figures.over = domain.counted > *domain.limit * (1 + 1e-9) ? 1 : 0;
  }
  if (domain.meter) {
    figures.metered = 1;
    figures.metered_w = domain.meter->value();
  }
  figures.baseline_w = domain.baseline.value();
  figures.metered_baseline_w = domain.metered_baseline.value();
  figures.planned_w = domain.planned.value();
  figures.counted_w = domain.counted.value();
  figures.reported_w = domain.reported.value();
  figures.planned_of_reporting_w = domain.planned_of_reporting.value();
  figures.missing_w = domain.missing.value();
  for (const TierLoss& tier : domain.tiers) {
    figures.tiers[tier.least_rate] = {static_cast<double>(tier.accelerators), tier.rate_lost * tier.accelerators};
  }
  return figures;
}

void SiteHistory::take(const SitePowerView& view, double now_s) {
  next_reading_s_ = (std::floor(now_s / kReading_s) + 1) * kReading_s;
  Domains& minute = minutes_[minute_at(now_s)];
  for (const SiteDomainView& domain : view.domains) {
    if (domain.parent.empty() || domain.limit) minute[domain.name].add(site_figures(domain));
  }
  std::size_t rows = 0;
  for (const auto& [start_s, domains] : minutes_) rows += domains.size();
  while (rows > kMostKept && minutes_.size() > 1) {
    rows -= minutes_.begin()->second.size();
    minutes_.erase(minutes_.begin());
  }
  if (!alarm_.at() && !writing_) alarm_.set(static_cast<double>(minute_at(now_s) + store::kMinute_s));
}

std::vector<store::SiteRow> SiteHistory::rows_before(std::int64_t start_s) const {
  std::vector<store::SiteRow> rows;
  for (const auto& [minute_s, domains] : minutes_) {
    if (minute_s >= start_s) break;
    for (const auto& [domain, figures] : domains) {
      rows.push_back({domain, store::kMinute_s, minute_s, source_, figures});
    }
  }
  return rows;
}

void SiteHistory::write() {
  const std::int64_t before_s = keepers_.empty() ? minute_at(clock_.now_s()) : std::numeric_limits<std::int64_t>::max();
  const std::vector<store::SiteRow> rows = rows_before(before_s);
  if (rows.empty()) {
    for (work::Done<Ok>& keeper : std::exchange(keepers_, {})) keeper(Ok{});
    alarm_.set(minutes_.empty() ? std::nullopt
                                : std::optional(static_cast<double>(minutes_.begin()->first + store::kMinute_s)));
    return;
  }
  writing_ = true;
  alarm_.set(std::nullopt);
  store_.write(&store::Store::write_site_history, rows, [this, rows](const Result<Ok>& done) { written(rows, done); });
}

void SiteHistory::written(const std::vector<store::SiteRow>& rows, const Result<Ok>& done) {
  writing_ = false;
  if (!done && done.error().code == ErrorCode::unavailable) {
    for (work::Done<Ok>& keeper : std::exchange(keepers_, {})) keeper(done.error());
    alarm_.set(clock_.now_s() + kRetry_s);
  } else {
    // A row that the database rejects would be rejected again.
    for (const store::SiteRow& row : rows) forget(row);
    write();
  }
}

void SiteHistory::forget(const store::SiteRow& row) {
  const auto minute = minutes_.find(row.start_s);
  if (minute == minutes_.end()) return;
  // A minute that an orderly stop writes may still get readings.
  const auto domain = minute->second.find(row.domain);
  if (domain == minute->second.end() || !(domain->second == row.figures)) return;
  minute->second.erase(domain);
  if (minute->second.empty()) minutes_.erase(minute);
}

void SiteHistory::keep(work::Done<Ok> done) {
  stopping_ = true;
  keepers_.push_back(std::move(done));
  if (!writing_) write();
}

std::vector<store::SiteRow> SiteHistory::with_own(std::vector<store::SiteRow> rows, const SiteProofQuery& query) const {
  std::erase_if(rows, [&](const store::SiteRow& row) {
    const auto minute = minutes_.find(row.start_s);
    return row.source == source_ && row.step_s == store::kMinute_s && minute != minutes_.end() &&
           minute->second.contains(row.domain);
  });
  for (store::SiteRow& row : rows_before(query.until_s + query.step_s)) rows.push_back(std::move(row));
  return rows;
}

void SiteHistory::proof(const SiteProofQuery& query, work::Done<SiteProof> done) {
  store_.read<std::vector<store::SiteRow>>(
      [query](store::Store& store) { return store.site_history(query.from_s, query.until_s + query.step_s); },
      [this, query, done = std::move(done)](Result<std::vector<store::SiteRow>> rows) {
        if (!rows) return done(rows.error());
        done(site_proof(query, with_own(*std::move(rows), query)));
      });
}

SiteProof site_proof(const SiteProofQuery& query, const std::vector<store::SiteRow>& rows) {
  std::map<std::pair<std::int64_t, std::string>, store::SiteFigures> sums;
  for (const store::SiteRow& row : rows) {
    const std::int64_t start_s = row.start_s - row.start_s % query.step_s;
    const bool wanted = query.domain.empty() || row.domain == query.domain;
    const bool within = query.from_s <= start_s && start_s < query.until_s;
    if (wanted && within && row.step_s <= query.step_s) sums[{start_s, row.domain}].add(row.figures);
  }
  SiteProof proof;
  proof.step_s = query.step_s;
  for (auto& [of, figures] : sums) {
    if (figures.readings == 0) continue;
    const bool full = proof.entries.size() >= query.limit;
    // A step is whole, however many domains it has.
    if (full && of.first != proof.entries.back().start_s) {
      proof.next_s = of.first;
      break;
    }
    proof.entries.push_back({of.first, of.second, std::move(figures)});
  }
  return proof;
}

}  // namespace perseus::power
