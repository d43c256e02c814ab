// What a site was allowed and what it drew over time, domain by domain: the answer to a request for a proof.
//
// Input:   rows of the store, and a query.
// Output:  one entry per step and domain with readings, by start and domain; a step without readings has none. Powers
//          are means over readings. Rows of servers that followed each other, and shorter steps, add up.
// Errors:  none.
// Cost:    O(log) per row.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "server/store/site_row.h"

namespace perseus::power {

struct SiteProofQuery {
  std::int64_t step_s = store::kMinute_s;  ///< kMinute_s, kHour_s or a day
  std::int64_t from_s = 0, until_s = 0;    ///< steps that begin within [from_s, until_s)
  std::string domain;                      ///< empty: all
  std::size_t limit = 10'000;              ///< entries
};

struct SiteProofEntry {
  std::int64_t start_s = 0;
  std::string domain;
  store::SiteFigures sums;

  [[nodiscard]] std::optional<Watts> metered_limit() const { return mean(sums.metered_limit_w, sums.limited); }
  [[nodiscard]] std::optional<Watts> limit() const { return mean(sums.limit_w, sums.limited); }
  [[nodiscard]] std::optional<Watts> metered() const { return mean(sums.metered_w, sums.metered); }
  /// Of a sum over all readings.
  [[nodiscard]] Watts of_all(double sum) const { return Watts(sum / static_cast<double>(sums.readings)); }

 private:
  static std::optional<Watts> mean(double sum, std::int64_t count) {
    return count > 0 ? std::optional(Watts(sum / static_cast<double>(count))) : std::nullopt;
  }
};

struct SiteProof {
  std::int64_t step_s = 0;
  std::vector<SiteProofEntry> entries;
  std::optional<std::int64_t> next_s;  ///< start of the first step beyond the limit; nothing: no more
};

SiteProof site_proof(const SiteProofQuery& query, const std::vector<store::SiteRow>& rows);

}  // namespace perseus::power
