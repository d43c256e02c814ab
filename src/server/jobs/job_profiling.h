// Online profiling of one job: what its ranks need to begin, the profiler fed from the job's log, what comes next.
//
// Problem: which window follows takes a third of a second to find, too long for the io thread; and memory must stand
//          where the log stands, after a restart and on every server.
// Input:   the job, its events as they become durable, the time.
// Output:  profiling_start(): the event that begins it, or says why it cannot be; JobProfiling: the profiler, and
//          what it left out; decide_profiling(): the next window, the profile, or why there is none. The ranks of one
//          pipeline measure; all pipelines without a profile run the same clocks, since they wait for each other
//          anyway. A window of which a result is missing for long (window_limit_s()) is over: the next one is at
//          maximum clock, and if that one is not reported either, profiling ends with what is known.
// Errors:  a log that the profiler does not take, from another version perhaps, ends profiling and says so.
// Cost:    take() linear in a result; decide_profiling() up to a second: run it away from the io thread.
// Threads: io thread; decide_profiling() any: while a profiler is lent, it is not changed.
// Source:  paper section 5 (Profiler).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "server/jobs/known_profile.h"
#include "server/jobs/profile_trial.h"
#include "server/profiling/online_profiler.h"

namespace perseus::jobs {

/// A profile is wanted, is not known, and nobody has begun to measure it.
bool awaits_profiling(const Job& job);
/// Measuring is under way.
bool is_profiled(const Job& job);
/// Those without a profile.
std::vector<int> unprofiled_pipelines(const Job& job);
/// ProfilingStarted or ProfilingFailed; every rank must be registered.
EventBody profiling_start(const Job& job);
/// Why no window can be measured: a rank that sets no clocks. Nothing: all that are known do.
std::optional<ProfilingFailed> profiling_impossible(const Job& job);
/// The first iteration of a window that is decided now: no earlier than ranks can have it (`earliest`, 0: not known, at
/// once), and after the iterations at the highest clock that must come before it.
std::int64_t first_iteration_of(const WindowHandedOut& window, const Job& job, std::int64_t earliest);

/// After so long a window is over: ten times the longest one so far, but between a tenth of `most_s` and that; and
/// twice the iterations at the highest clock that come before it.
double window_limit_s(const Job& job, double most_s);

/// What profiling cost so far, for the end of a sentence; empty: not known.
std::string text_of_cost(const Job& job);

/// What a decision rests on besides the profiler.
struct ProfilingQuestion {
  int window = 0;  ///< number of the one wanted
  bool plain = false;
  std::string overdue;  ///< why the last window is over though not reported; empty: it is reported
  bool give_up = false;
  std::vector<std::vector<int>> maximum_clocks;  ///< per stage rank, per action
  std::vector<int> pipelines;                    ///< that want the profile; empty: all
  PipelineShape shape;
  bool fixed_latency = false;  ///< see ProfileKnown
  InputLimits limits;
  /// A learned profile is on trial: what it is, and the last window's results if they can be compared with it.
  std::optional<TrialQuestion> trial;
};
struct ProfileMeasured {
  KnownInput known;
};
/// The job's profile is the one that was on trial.
struct ProfileConfirmed {
  std::optional<KnownInput> own_links;  ///< the same with the links that this job's ranks measured; nothing: as it was
};
struct ProfilingDecision {
  std::variant<WindowHandedOut, ProfileMeasured, ProfilingFailed, ProfileConfirmed> next;
  std::optional<TrialEnded> trial = std::nullopt;
};
/// Nothing where `check` stopped the search.
std::optional<ProfilingDecision> decide_profiling(const profiling::OnlineProfiler& profiler,
                                                  const ProfilingQuestion& question, StopCheck& check);

/// See ServiceOptions.
struct ProfilingLimits {
  double tolerance_pct = 0.15;
  int most_iterations = 100;
  double slowdown_pct = 5, worst_slowdown_pct = 30;
};

class JobProfiling {
 public:
  /// From a job all of whose events are durable, or that has no window yet.
  /// The job's own budget comes before the server's; the plain mode has none of all this.
  static Result<std::shared_ptr<JobProfiling>> create(const Job& job, const ProfilingLimits& limits);
  JobProfiling(const JobProfiling&) = delete;
  JobProfiling& operator=(const JobProfiling&) = delete;
  /// Stops the search for the next window.
  ~JobProfiling() { search.request_stop(); }

  /// An event became durable. Kept for later while the profiler is lent; those from before profiling began (again) are
  /// another's.
  void take(const Job& job, std::int64_t sequence, const Event& event);
  [[nodiscard]] std::int64_t since() const { return since_; }  ///< Job::profiling_since
  /// What is wrong with the result as a whole.
  [[nodiscard]] Status check(const Job& job, const ResultReported& result) const;
  [[nodiscard]] bool window_complete() const { return profiler_->window_complete(); }
  [[nodiscard]] int windows() const { return profiler_->windows_handed_out(); }
  [[nodiscard]] const model::Schedule& schedule() const { return schedule_; }

  ProfilingQuestion question(const Job& job, const std::string& overdue, int max_computations, int deadlines) const;
  std::shared_ptr<const profiling::OnlineProfiler> lend();
  void give_back(const Job& job);
  [[nodiscard]] bool lent() const { return lent_; }

  /// What was left out of that rank's result, in words.
  [[nodiscard]] std::vector<std::string> rejections(int rank, int window) const;
  [[nodiscard]] std::int64_t rejected() const { return rejected_; }
  [[nodiscard]] const std::deque<std::string>& last_rejections() const { return last_rejections_; }
  /// Why the log cannot be gone on with; empty: it can.
  [[nodiscard]] const std::string& broken() const { return broken_; }

  bool deciding = false;               ///< somebody works on the next window
  std::stop_source search;             ///< stops that work, if it is this server's
  double planner_s = 0;                ///< spent on it by this server, since it began or started
  std::optional<double> look_again_s;  ///< another server does

 private:
  JobProfiling(std::int64_t since, model::Schedule schedule, profiling::OnlineProfiler profiler);
  void feed(const Job& job, const Event& event);
  void reject(const ResultReported& result, std::string text);

  std::int64_t since_;
  model::Schedule schedule_;
  std::shared_ptr<profiling::OnlineProfiler> profiler_;
  bool lent_ = false;
  std::vector<Event> later_;
  std::map<std::pair<int, int>, std::vector<std::string>> rejections_;  ///< by rank and window
  std::deque<std::string> last_rejections_;
  std::int64_t rejected_ = 0;
  std::string broken_;
};

}  // namespace perseus::jobs
