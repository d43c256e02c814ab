// Online profiling of one job: its start, the profiler fed from the job's log, and the decision on the next step.
//
// Problem: finding the next window takes a third of a second, too long for the io thread; and memory must match the
//          log, after a restart and on every server.
// Input:   the job, its events as they become durable, the time.
// Output:  profiling_start(): the event that starts profiling, or that names the reason why it cannot start.
//          JobProfiling: the profiler, and the values that it left out. decide_profiling(): the next window, the
//          profile, or the reason why there is none. The ranks of one pipeline measure; all pipelines without a
//          profile run the same clocks, since they wait for each other anyway. A window with a result missing for too
//          long (window_limit_s()) ends; the next one runs at maximum clock, and if its results do not arrive either,
//          profiling ends with what is known. A profile that is measured again is scaled where the first windows allow
//          it (server/profiling/scaled_profile.h).
// Errors:  a log that the profiler rejects, for example one from another version, ends profiling with that reason.
// Cost:    take() is linear in a result; decide_profiling() takes up to a second: run it off the io thread.
// Threads: io thread; decide_profiling() any thread: a lent profiler does not change.
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

#include "server/profiles/known_profile.h"
#include "server/profiles/profile_trial.h"
#include "server/profiling/online_profiler.h"

namespace perseus::profiles {

/// True if the job needs a profile that is not known and whose measurement has not started.
bool awaits_profiling(const jobs::Job& job);
/// The job's ranks have dropped the plans of its profile: it may be measured again now.
bool may_measure_again(const jobs::Job& job, double now_s);
/// True while measuring.
bool is_profiled(const jobs::Job& job);
/// Pipelines without a profile, or whose profile is to be measured again.
std::vector<int> unprofiled_pipelines(const jobs::Job& job);
/// ProfilingStarted or ProfilingFailed; every rank must be registered.
jobs::EventBody profiling_start(const jobs::Job& job);
/// Why no window can be measured: a rank sets no clocks while others do. Nothing: all known ranks do, or none does
/// (ProfilingStarted::keeps_clocks).
std::optional<jobs::ProfilingFailed> profiling_impossible(const jobs::Job& job);
/// The end of measuring at one clock where no saving can be modeled, for that reason.
jobs::SavingModeled not_modeled(const jobs::Job& job, const std::string& why);
/// The first iteration of a window that is decided now: no earlier than ranks can receive it (`earliest`; 0: not
/// known, at once), and after the iterations at the highest clock that must precede it.
std::int64_t first_iteration_of(const jobs::WindowHandedOut& window, const jobs::Job& job, std::int64_t earliest);

/// The time after which a window ends: ten times the longest so far, within `most_s` / 10 .. `most_s`, plus twice the
/// iterations at the highest clock that precede it.
double window_limit_s(const jobs::Job& job, double most_s);

/// Cost of profiling so far, as the end of a sentence; empty: not known.
std::string text_of_cost(const jobs::Job& job);

/// Inputs of a decision besides the profiler.
struct ProfilingQuestion {
  int window = 0;        ///< number of the window wanted
  int microbatches = 0;  ///< of its iterations, as in WindowHandedOut
  bool plain = false;
  bool keeps_clocks = false;      ///< see ProfilingStarted
  std::string gpu;                ///< of all ranks that measure; empty: not known, or they differ
  std::vector<Megahertz> clocks;  ///< of the GPU, highest first, if keeps_clocks
  int gpus = 1;                   ///< of the whole job
  std::string overdue;            ///< why the last window ended without all results; empty: it has them
  bool give_up = false;
  std::vector<std::vector<int>> maximum_clocks;  ///< per stage rank, per action
  std::vector<int> pipelines;                    ///< that need the profile; empty: all
  jobs::PipelineShape shape;
  bool fixed_latency = false;  ///< see ProfileKnown
  jobs::InputLimits limits;
  /// The learned profile on trial, and the last window's results if they can be compared with it.
  std::optional<TrialQuestion> trial;
  bool again = false;  ///< a profile is measured again
  std::string before;  ///< ... the text of its input, where the next step may be to scale it (scaled_profile.h)
};
struct ProfileMeasured {
  KnownInput known;
};
/// The profile on trial becomes the job's.
struct ProfileConfirmed {
  std::optional<KnownInput> own_links;  ///< the same with the links that this job's ranks measured; nothing:
                                        ///< unchanged
};
struct ProfilingDecision {
  std::variant<jobs::WindowHandedOut, ProfileMeasured, jobs::SavingModeled, jobs::ProfilingFailed, ProfileConfirmed>
      next;
  std::optional<jobs::TrialEnded> trial = std::nullopt;
};
/// Nothing if `check` stopped the search.
std::optional<ProfilingDecision> decide_profiling(const profiling::OnlineProfiler& profiler,
                                                  const ProfilingQuestion& question, StopCheck& check);

/// See ServiceOptions.
struct ProfilingLimits {
  double tolerance_pct = 0.15;
  int most_iterations = 60;
  double slowdown_pct = 5, worst_slowdown_pct = 30;
};

class JobProfiling {
 public:
  /// Starts from a job whose events are all durable, or that has no window yet. The job's own budget takes precedence
  /// over the server's; the plain mode uses neither.
  static Result<std::shared_ptr<JobProfiling>> create(const jobs::Job& job, const ProfilingLimits& limits);
  JobProfiling(const JobProfiling&) = delete;
  JobProfiling& operator=(const JobProfiling&) = delete;
  /// Stops the search for the next window.
  ~JobProfiling() { search.request_stop(); }

  /// Call when an event became durable. While the profiler is lent, the event is kept for later; events from before
  /// the current start of profiling are ignored.
  void take(const jobs::Job& job, std::int64_t sequence, const jobs::Event& event);
  [[nodiscard]] std::int64_t since() const { return since_; }  ///< Job::profiling_since
  /// What is wrong with the result as a whole.
  [[nodiscard]] Status check(const jobs::Job& job, const jobs::ResultReported& result) const;
  [[nodiscard]] bool window_complete() const { return profiler_->window_complete(); }
  [[nodiscard]] int windows() const { return profiler_->windows_handed_out(); }
  [[nodiscard]] const model::Schedule& schedule() const { return schedule_; }
  /// Its results fit the schedule, which has not changed since.
  [[nodiscard]] bool takes(const jobs::WindowHandedOut& window) const { return window.microbatches == microbatches_; }

  /// The next window is of the shape that prevails now.
  /// The input to read into ProfilingQuestion::before; empty: none.
  [[nodiscard]] std::string input_before(const jobs::Job& job) const;
  ProfilingQuestion question(const jobs::Job& job, const std::string& overdue, int max_computations, int deadlines);
  std::shared_ptr<const profiling::OnlineProfiler> lend();
  void give_back(const jobs::Job& job);

  /// Values of that rank's result that were left out, as sentences.
  [[nodiscard]] std::vector<std::string> rejections(int rank, int window) const;
  [[nodiscard]] std::int64_t rejected() const { return rejected_; }
  [[nodiscard]] const std::deque<std::string>& last_rejections() const { return last_rejections_; }
  /// Why the log cannot be continued; empty: it can.
  [[nodiscard]] const std::string& broken() const { return broken_; }

  bool deciding = false;    ///< the next window is being computed
  std::stop_source search;  ///< stops that computation, if it is this server's
  double planner_s = 0;     ///< this server's planner time since profiling or the server started
  double look_again_s = 0;  ///< not before; after a failure of the store

 private:
  JobProfiling(std::int64_t since, model::Schedule schedule, profiling::OnlineProfiler profiler);
  void change_shape(const jobs::Job& job, int microbatches);
  void feed(const jobs::Job& job, const jobs::Event& event);
  void reject(const jobs::ResultReported& result, std::string text);

  std::int64_t since_;
  int microbatches_ = 0;  ///< of schedule_; 0: those that the job registered with
  model::Schedule schedule_;
  std::shared_ptr<profiling::OnlineProfiler> profiler_;
  bool lent_ = false;
  std::vector<jobs::Event> later_;
  std::map<std::pair<int, int>, std::vector<std::string>> rejections_;  ///< by rank and window
  std::deque<std::string> last_rejections_;
  std::int64_t rejected_ = 0;
  std::string broken_;
};

}  // namespace perseus::profiles
