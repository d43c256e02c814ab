// The history of the site's domains: what their limits allowed, what was planned and what was drawn, minute by minute.
//
// Problem: a utility wants a proof of what a site did under an event, an operator the course of a day.
// Input:   views of the site, when wants_reading(): every kReading_s; each counts for its minute. The root and the
//          domains with a limit are recorded.
// Output:  minutes in the store, see work/unwritten_minutes.h. proof(): those of the store and those not written yet.
// Errors:  proof(): those of the store.
// Cost:    per reading, a view of the site; a write per minute.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "server/power/site_power_view.h"
#include "server/store/site_row.h"
#include "server/work/unwritten_minutes.h"

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

class SiteHistory {
 public:
  static constexpr double kReading_s = 5;
  /// Minutes of domains in memory: of 20 domains, those of 16 hours.
  static constexpr std::size_t kMostKept = 20'000;

  /// `source`: unique per server and start.
  SiteHistory(work::StoreAccess& store, const Clock& clock, work::Due& due, std::string source)
      : store_(store), minutes_(store, clock, due, std::move(source), kMostKept) {}

  [[nodiscard]] bool wants_reading(double now_s) const { return now_s >= next_reading_s_ && !stopping_; }
  /// What the division of the watts has led to.
  void take(const SitePowerView& view, double now_s);
  void proof(const SiteProofQuery& query, work::Done<SiteProof> done);

  /// Writes everything, before the server stops; takes no reading after that.
  void keep(work::Done<Ok> done) {
    stopping_ = true;
    minutes_.keep(std::move(done));
  }

 private:
  work::StoreAccess& store_;
  work::UnwrittenMinutes<store::SiteRow, &store::SiteRow::domain, &store::Store::write_site_history> minutes_;
  double next_reading_s_ = 0;
  bool stopping_ = false;
};

/// What one reading of a domain adds to its minute.
store::SiteFigures site_figures(const SiteDomainView& domain);

}  // namespace perseus::power
