// Readings of a site's meters, and by how much they correct the limits of their domains.
//
// Problem: readings, also a refused one, which an alert names, and corrections must survive a restart.
// Input:   readings; what a domain is expected to draw, while no grant changes in it.
// Output:  last(): the median of the last three readings, none of them older than kFresh_s. factors(): per domain, what
//          its limit as metered is to be divided by (planning/site/power_correction.h).
// Errors:  take(): usage: an unknown domain, a time ahead of the server's, or not after the domain's last reading;
//          then no reading counts. Those of the store.
// Cost:    a write per call of take(), and per refused reading, one per call of correct() that uses a reading.
// Threads: io thread.
// Source:  docs/decisions/0055.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "io/formats/described_json.h"
#include "planning/site/power_correction.h"
#include "server/jobs/meter_readings.h"
#include "server/jobs/site_document.h"
#include "server/work/store_access.h"

namespace perseus::power {

class SiteMeters {
 public:
  static constexpr double kFresh_s = 300, kAhead_s = 5;
  static constexpr std::size_t kKept = 3;
  static constexpr double kFar = 2;

  SiteMeters(work::StoreAccess& store, const Clock& clock) : store_(store), clock_(clock) {}

  /// Reads what is stored, on this thread: for the start.
  Status open(store::Store& from);
  /// `most`: per domain, what a meter reads at most; refused are readings beyond kFar times that.
  void take(const jobs::SiteDocument& document, std::span<const Watts> most, std::vector<jobs::MeterReading> readings,
            work::Done<Ok> done);

  [[nodiscard]] std::optional<Watts> last(const std::string& domain, double now_s) const;
  /// The last reading, if it was refused.
  [[nodiscard]] std::optional<Watts> refused(const std::string& domain, double now_s) const;
  [[nodiscard]] std::vector<double> factors(const jobs::SiteDocument& document, double now_s) const;
  /// If the domain's last kKept readings are fresh and after `since_s`, and no correction has used the last one.
  void correct(const std::string& domain, Watts expected, double since_s, double now_s);

 private:
  struct Reading {
    double at_s = 0, power_w = 0;
    friend void describe(auto& f, formats::MaybeConst<Reading> auto& s) {
      f.always("at_s", s.at_s);
      f.always("power_w", s.power_w);
    }
  };
  using Readings = std::map<std::string, std::vector<Reading>>;
  using Corrections = std::map<std::string, site::MeterCorrection>;

  static Readings readings_in(std::string_view text);
  static Corrections corrections_in(std::string_view text);
  [[nodiscard]] std::string corrections_text() const;
  void store_refused(work::Done<Ok> done);

  work::StoreAccess& store_;
  const Clock& clock_;
  Readings readings_;        ///< by domain, in order of time
  Readings refused_;         ///< by domain: its last reading, if it was refused
  Corrections corrections_;  ///< by domain
};

}  // namespace perseus::power
