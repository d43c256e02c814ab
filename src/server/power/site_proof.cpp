#include "server/power/site_proof.h"

#include <map>
#include <utility>

namespace perseus::power {

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
