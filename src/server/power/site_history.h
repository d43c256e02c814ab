// The history of the site's domains: what their limits allowed, what was planned and what was drawn, minute by minute.
//
// Problem: a utility wants a proof of what a site did under an event, an operator the course of a day.
// Input:   views of the site, when wants_reading(): every kReading_s; each counts for its minute. The root and the
//          domains with a limit are recorded.
// Output:  a minute is written once it is over, and in an orderly stop; under a name of its own per server and start,
//          so that a write whose outcome is unknown is repeated without counting twice. proof(): the store's rows, with
//          the minutes that this server has not written yet.
// Errors:  while the store does not accept minutes they stay in memory, at most kMostKept (the oldest are dropped).
//          proof(): those of the store.
// Cost:    per reading, a view of the site; a write per minute.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/power/site_power_view.h"
#include "server/power/site_proof.h"
#include "server/work/store_access.h"

namespace perseus::power {

class SiteHistory {
 public:
  static constexpr double kReading_s = 5;
  /// Minutes of domains in memory: of 20 domains, those of 16 hours.
  static constexpr std::size_t kMostKept = 20'000;

  /// `source`: unique per server and start.
  SiteHistory(work::StoreAccess& store, const Clock& clock, work::Due& due, std::string source)
      : store_(store),
        clock_(clock),
        alarm_(due, work::Due::Turn::history, [this](double) { write(); }),
        source_(std::move(source)) {}

  [[nodiscard]] bool wants_reading(double now_s) const { return now_s >= next_reading_s_ && !stopping_; }
  /// What the division of the watts has led to.
  void take(const SitePowerView& view, double now_s);
  void proof(const SiteProofQuery& query, work::Done<SiteProof> done);

  /// Writes everything, before the server stops; takes no reading after that.
  void keep(work::Done<Ok> done);

 private:
  using Domains = std::map<std::string, store::SiteFigures>;

  [[nodiscard]] std::vector<store::SiteRow> rows_before(std::int64_t start_s) const;
  void write();
  void written(const std::vector<store::SiteRow>& rows, const Result<Ok>& done);
  void forget(const store::SiteRow& row);
  /// The rows of the store with this server's own minutes.
  [[nodiscard]] std::vector<store::SiteRow> with_own(std::vector<store::SiteRow> rows,
                                                     const SiteProofQuery& query) const;

  work::StoreAccess& store_;
  const Clock& clock_;
  work::Alarm alarm_;  ///< at the time of the next write
  std::string source_;
  std::map<std::int64_t, Domains> minutes_;  ///< by start: not written yet
  double next_reading_s_ = 0;
  bool writing_ = false, stopping_ = false;
  std::vector<work::Done<Ok>> keepers_;  ///< wait until everything is written
};

/// What one reading of a domain adds to its minute.
store::SiteFigures site_figures(const SiteDomainView& domain);

}  // namespace perseus::power
