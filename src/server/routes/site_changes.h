// The power of a site for readers that ask again and again, such as dashboards: the rows that have changed since.
//
// Problem: thousands of jobs and hundreds of domains are megabytes, every 2 s for each open dashboard.
// Input:   views; the version that a reader has, which it got with its last answer.
// Output:  answer(): what GET /v1/site/power answers, with a version, and of domains and jobs only the rows that have
//          changed since the reader's version, with the jobs that are gone. All rows if this server does not know that
//          version. A view serves all readers for kAge_s.
// Errors:  none: an unknown version is like none.
// Cost:    take(): a comparison of each row, and the text of each changed one. answer(): O(rows), without making texts.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/power/site_power_view.h"

namespace perseus::routes {

class SiteChanges {
 public:
  static constexpr double kAge_s = 1;
  static constexpr std::size_t kMostGone = 10'000;

  /// `server`: another one for each process, so that versions of different servers differ.
  explicit SiteChanges(std::string server) : server_(std::move(server)) {}

  [[nodiscard]] bool is_fresh(double now_s) const { return now_s < view_.now_s + kAge_s && now_s >= view_.now_s; }
  void take(power::SitePowerView view);
  [[nodiscard]] std::string answer(std::string_view since) const;

 private:
  struct DomainRow {
    std::string name, text;
    std::uint64_t changed = 0;  ///< version since which it has this text
  };
  struct JobRow {
    power::SiteJobView of;
    std::string text;
    std::uint64_t changed = 0, seen = 0;
  };

  void take_domains();
  void take_jobs();
  /// Of a version that was answered and whose rows are still known; 0: another one.
  [[nodiscard]] std::uint64_t version_of(std::string_view since) const;

  std::string server_;
  power::SitePowerView view_;
  std::uint64_t version_ = 0, first_ = 1;  ///< the last one; the first one whose changes are known
  std::vector<DomainRow> domains_;
  std::map<std::string, JobRow> jobs_;
  std::map<std::string, std::uint64_t> gone_;  ///< version at which the job was not there any more
};

}  // namespace perseus::routes
