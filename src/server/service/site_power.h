// Keeps the watt limits of a site: grants each running job a mean power, and changes the grants such that no limit is
// exceeded meanwhile.
//
// Problem: limits change, jobs come and go, ranks take a while to follow, and servers crash. docs/power.md, "On a
//          server".
// Input:   the site document; the jobs, with their frontiers, and the versions that their ranks have (HeldPlans).
// Output:  PowerGranted in the log of each job whose grant changes; FollowUps then deploys the plan under it. Of
//          several servers on a database, the one with the claim grants. view(): limits, grants and what they lack.
// Errors:  those of the store. While the claim cannot be renewed, no grant changes.
// Cost:    every kTick_s, O(jobs + their ranks), and a division on the executor of the server that grants. What a job
//          can draw is computed again after each of its events.
// Threads: io thread.
// Source:  docs/decisions/0052.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/jobs/site_document.h"
#include "server/service/job_cache.h"
#include "server/service/service_options.h"
#include "server/service/site_power_view.h"
#include "server/service/store_access.h"

namespace perseus::service {

class SitePower : public std::enable_shared_from_this<SitePower> {
 public:
  static constexpr double kTick_s = 1, kLease_s = 15, kReading_s = 10;

  SitePower(const ServiceOptions& options, StoreAccess& store, JobCache& jobs, const Clock& clock, Executor& executor)
      : options_(options), store_(store), jobs_(jobs), clock_(clock), executor_(executor) {}

  /// Reads the document, on this thread: for the start.
  Status open(store::Store& from);
  /// Stores the document before it applies. `expected`: the tag of the document that it replaces (jobs::site_tag()), or
  /// "*" for any; conflict: there is another one, none, or another server is changing it.
  void set(jobs::SiteDocument document, std::optional<std::string> expected, Done<Ok> done);
  /// not_found: there is none.
  void clear(Done<Ok> done);
  void document(Done<std::string> done);
  void view(Done<SitePowerView> done);
  /// Of the document that this server has read last; empty: none.
  std::vector<SiteDomainView> domains_now();
  /// The document of this server now; null: none.
  [[nodiscard]] const jobs::SiteDocument* current() const { return document_ ? &*document_ : nullptr; }

  /// Events of a job may change the allocation.
  void noticed(const LiveJob& live);
  void tick(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const;
  /// Called when next_wake() has become earlier. May be empty.
  std::function<void()> earlier_wake;

 private:
  struct Found;
  struct Turn {
    std::function<void(Done<Ok>)> change;
    Done<Ok> done;
  };

  /// Changes of the document are stored one after another, of all servers: what one has read stays until it has put.
  void in_turn(Turn turn);
  void begin_turn();
  void end_turn(const Result<Ok>& result);
  void put(const jobs::SiteDocument& document, Done<Ok> done);
  void remove(Done<Ok> done);
  /// There must be a document.
  SitePowerView view_now();
  void changed();
  void apply_document(std::optional<jobs::SiteDocument> document, std::string text);
  void read_again(double now_s);
  void claim(double now_s);
  [[nodiscard]] bool allocates(double now_s) const { return now_s < mine_until_s_; }
  void allocate(double now_s);
  void release_all();
  /// What they leave for accelerators; below 0 W: the constants alone exceed a limit.
  [[nodiscard]] std::vector<Watts> limits_now(double now_s, const std::vector<int>& accelerators) const;
  /// The running jobs; nothing while one that may draw power is being read.
  std::optional<Found> find_jobs(double now_s);
  PoweredJob powered(const LiveJob& live, double now_s, SiteJobView* shown = nullptr);
  void divided(std::uint64_t run, PoweredSite site, SiteShares shares);
  void grant(const PoweredJob& job, Watts watts);

  const ServiceOptions& options_;
  StoreAccess& store_;
  JobCache& jobs_;
  const Clock& clock_;
  Executor& executor_;
  std::optional<jobs::SiteDocument> document_;
  std::string text_;        ///< of the document
  std::deque<Turn> turns_;  ///< the first is in progress
  double next_s_ = 0, next_claim_s_ = 0, next_read_s_ = 0;
  double mine_until_s_ = 0;  ///< end of the claim
  double allocating_s_ = 0;  ///< when this server got the claim
  bool dividing_ = false;
  std::uint64_t runs_ = 0;  ///< divisions begun; an older one's result is not used
  SiteShares last_;         ///< for the view
  /// What a job's state at one moment makes of it.
  struct KnownJob {
    std::int64_t sequence = -1;
    int domain = 0;
    double until_s = 0;  ///< a policy changes
    std::shared_ptr<const jobs::PowerChoices> choices;
  };
  std::map<std::string, KnownJob> known_;  ///< by job, under this document
};

}  // namespace perseus::service
