#include "server/power/site_history.h"

#include <cmath>
#include <map>
#include <utility>

namespace perseus::power {

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
  for (const SiteDomainView& domain : view.domains) {
    if (domain.parent.empty() || domain.limit) minutes_.add(domain.name, site_figures(domain));
  }
}

void SiteHistory::proof(const SiteProofQuery& query, work::Done<SiteProof> done) {
  store_.read<std::vector<store::SiteRow>>(
      [query](store::Store& store) { return store.site_history(query.from_s, query.until_s + query.step_s); },
      [this, query, done = std::move(done)](Result<std::vector<store::SiteRow>> rows) {
        if (!rows) return done(rows.error());
        done(site_proof(query, minutes_.with_own(*std::move(rows))));
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
