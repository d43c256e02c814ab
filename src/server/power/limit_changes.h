// Changes of the limits of a site, as events: the watts before and after, from when on, and who made them.
//
// Problem: jobs have logs, and a site has one document, which says nothing of earlier ones.
// Input:   the documents before and after a change.
// Output:  LimitListener with an event (kLimitChanged, of job "site/DOMAIN") per domain whose limit differs at any time
//          from now on, once it is stored, or cannot be; first those of the start.
// Errors:  a change that cannot be stored is an event of this server until its end.
// Cost:    O(limits) per change; the last kMost are stored, in one blob.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "server/jobs/requests.h"
#include "server/jobs/site_document.h"
#include "server/work/store_access.h"

namespace perseus::power {

inline constexpr std::string_view kLimitChanged = "limit_changed";

struct LimitChange {
  std::string domain, text, by;
  double at_s = 0;
  std::int64_t number = 0;
};

class LimitListener {
 public:
  virtual void limit_changed(jobs::JobEvent event) = 0;

 protected:
  ~LimitListener() = default;
};

class LimitChanges {
 public:
  static constexpr std::size_t kMost = 200;

  LimitChanges(work::StoreAccess& store, const Clock& clock, LimitListener& listener)
      : store_(store), clock_(clock), listener_(listener) {}

  /// Reads what is stored, on this thread: for the start.
  Status open(store::Store& from);
  /// Null: there is no document.
  void note(const jobs::SiteDocument* before, const jobs::SiteDocument* after, const std::string& by);

 private:
  work::StoreAccess& store_;
  const Clock& clock_;
  LimitListener& listener_;
  std::vector<LimitChange> changes_;  ///< the oldest first
};

}  // namespace perseus::power
