// Measures a job online: hands out profiling windows, takes their results, ends with a profile.
//
// Problem: the search for the next window takes seconds; a restart continues it.
// Input:   jobs that are profiled, as their events arrive; reports of ranks.
// Output:  the events of the next window, of the measured profile, or of the failure.
// Errors:  usage: a report of a window that was not handed out; invalid_input: one that lacks what was to be measured.
// Cost:    the search runs on the executor in its turn (Characterizations::in_turn()), within `planning_budget_s`.
// Threads: io thread.
// Source:  docs/online_profiling.md; server/profiles/job_profiling.h.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "server/live/job_cache.h"
#include "server/plans/characterizations.h"
#include "server/plans/planning_options.h"
#include "server/plans/stored_profiles.h"
#include "server/profiles/job_profiling.h"

namespace perseus::plans {

class ProfilingWindows {
 public:
  ProfilingWindows(const PlanningOptions& options, live::JobCache& jobs, work::StoreAccess& store, const Clock& clock,
                   work::Executor& executor, Characterizations& characterizations, StoredProfiles& profiles)
      : options_(options),
        jobs_(jobs),
        store_(store),
        clock_(clock),
        executor_(executor),
        characterizations_(characterizations),
        profiles_(profiles) {}

  /// Computes the next step after a finished window, on the executor.
  void go_on(live::LiveJob& live);
  /// The profiling window of a report; nothing: none.
  static std::optional<int> window_of(const live::LiveJob& live, const jobs::ReportIterations& request);
  void report(live::LiveJob& live, int window, jobs::ReportIterations request,
              work::Done<jobs::ReportedIterations> done);
  /// Stops all searches, and begins no more.
  void stop();

 private:
  using Profiling = std::shared_ptr<profiles::JobProfiling>;
  /// The search for the next window, on the executor, within what is left of its budget.
  struct Search {
    std::stop_token stop;
    double left_s, budget_s;
    struct Found {
      std::optional<profiles::ProfilingDecision> decided;  ///< nothing: stopped
      double planner_s = 0;
    };
    Found run(const profiling::OnlineProfiler& profiler, profiles::ProfilingQuestion& question) const;
  };
  /// Creates the job's profiler if needed; the reason if the job cannot be profiled.
  std::optional<jobs::ProfilingFailed> prepare(live::LiveJob& live) const;
  [[nodiscard]] bool overdue(const jobs::Job& job, double now_s) const;
  /// Names the late ranks; empty: none.
  [[nodiscard]] std::string why_overdue(const jobs::Job& job) const;
  /// The store does not answer.
  void look_again(const std::string& id, profiles::JobProfiling& profiling);
  void decide_window(const std::string& id, const Profiling& profiling);
  void submit_search(const std::string& id, const Profiling& profiling, profiles::ProfilingQuestion question);
  void search_ended(const std::string& id, const Profiling& profiling, int window, const Search::Found& found);
  /// Writes the decision to the log, and the outcome of a trial to the learned profile.
  void write(const std::string& id, const Profiling& profiling, int window, const profiles::ProfilingDecision& decided);

  /// `judged`: the learned profile whose trial ends with this decision.
  live::Decision events_of(const jobs::Job& job, const profiles::ProfilingDecision& decided,
                           const std::optional<jobs::ProfileOnTrial>& judged, double now_s);

  const PlanningOptions& options_;
  live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  work::Executor& executor_;
  Characterizations& characterizations_;
  StoredProfiles& profiles_;
  bool stopping_ = false;
};

}  // namespace perseus::plans
