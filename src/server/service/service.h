// The server without its protocols: jobs, plans, stragglers and policies, behind one class that every route calls.
//
// Problem: see docs/server.md.
// Input:   requests (server/jobs/requests.h).
// Output:  every mutation answers once, after what it says is durable in the store; reads answer at once if what they
//          ask for is in memory. Same request twice: the same answer and no second effect, where the request names
//          what it makes (a rank, a profile, a job's key).
// Errors:  usage/invalid_input: the request; not_found: job, rank, profile, notice; conflict: the job's state does
//          not allow it; too_large: a limit; unavailable: the store. An error changes nothing, but a change that the
//          store has not answered in time may still be made.
// Cost:    O(1) per rank and request; looking a plan up O(pipelines + log points); planning runs on the executor.
// Threads: one, the io thread: every call, every answer, every callback. Answers may come inside the call or later.
// Source:  paper sections 3.2 and 5; docs/decisions/0008.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "server/jobs/requests.h"
#include "server/service/job_list.h"
#include "server/store/commit_counts.h"

namespace perseus::store {
class Store;
}

namespace perseus::service {

class StoreAccess;

template <class T>
using Done = std::function<void(Result<T>)>;

/// Work away from the io thread. `work` runs on some thread; what it returns then runs on the io thread.
class Executor {
 public:
  using Work = std::function<std::function<void()>()>;
  /// What a request waits for, a millisecond of work, comes before reading frontiers that are known, of which a
  /// restarted server has many, and neither stands behind planning. Refining, which may take minutes, is done when no
  /// other planning waits. Reads of the store have threads of their own, so that a database that hangs holds up nothing
  /// else.
  enum class Kind : unsigned char { request, reading, planning, refining, store };
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;
  virtual void submit(Kind kind, Work work) = 0;
  /// For refining work, to be called every few milliseconds: does planning work that waits, on the calling thread.
  virtual void give_way() {}
};

/// How the store did when it was last asked.
struct StoreHealth {
  bool answers = true;
  std::string problem;  ///< why not
  double since_s = 0;   ///< since when
};

struct ServiceOptions {
  std::string owner;                      ///< of claims: the same after a restart if there is one server, else random
  double idle_expiry_s = 7 * 24 * 3600;   ///< jobs that nobody asked about for so long expire
  double keep_finished_s = 0;             ///< jobs that ended so long ago are removed; 0: never
  std::int64_t keep_finished_bytes = 0;   ///< logs above which jobs that ended are removed; 0: any number
  double keep_unused_s = 0;               ///< profiles, frontiers that no job needs for so long are removed; 0: never
  int margin_iterations = 2;              ///< a new plan holds from the iteration after so many more
  int max_ranks = 1 << 17;                ///< of a job
  int max_computations = 1 << 17;         ///< of a pipeline's iteration
  double rank_lease_s = 60;               ///< another process takes over a rank that has been silent for so long
  double lease_s = 20;                    ///< of a claimed characterization, or search for a profiling window
  double profiling_window_s = 600;        ///< a profiling window that is not reported by then is over
  double profiling_tolerance_pct = 0.15;  ///< energy that the plan of an online profile may be expected to lose
  int profiling_iterations = 100;         ///< after so many, profiling ends with what it has
  double profiling_slowdown_pct = 5;      ///< of a job's iterations while it is profiled, in the mean
  double profiling_worst_slowdown_pct = 30;  ///< of one such iteration
  double switch_latency_s = 0;               ///< planned with where neither profile, job nor ranks know better
  double latency_wait_s = 5;                 ///< of the first plan, for ranks to report their switch latency
  int plan_deadlines = 1000;                 ///< see PlannerOptions
  double slowdown = 0;                       ///< tolerated by jobs without a max_slowdown policy: 0.003 is 0.3 %
  double store_answers_s = 10;               ///< a call that the store has not answered by then is `unavailable`
  int planners = 1;                          ///< plannings of a kind that the executor is given at a time
  double planning_budget_s = 600;            ///< planner seconds of a pipeline; then its quick frontier stays
  double planner_s_per_owner = 1800;         ///< in an hour; then all others come first
  double refinement_slice_s = 30;            ///< planner seconds before refinements of others have their turn
  double quick_above_s = 3;           ///< pipelines estimated to take more planner seconds get a quick frontier first
  double maximum_clock_after_s = 20;  ///< of a rank whose client asks for its plan once; see WaitForPlan
  int finished_jobs_in_memory = 100;  ///< more are read again when asked about
  std::function<std::string()> random_id;  ///< 128 random bits in hex; empty: getrandom(2)
  std::function<void()> tokens_changed;    ///< another server on this database made or revoked tokens
};

/// For metrics.
struct ServiceCounts {
  std::int64_t jobs_in_memory = 0, waiting_ranks = 0, subscriptions = 0;
  std::int64_t plans_deployed = 0, characterisations = 0, characterisations_failed = 0, characterising = 0;
  std::int64_t stragglers_in_force = 0;
  struct Planning {
    std::string_view kind;
    std::int64_t waiting = 0, running = 0;
  };
  std::vector<Planning> planning;
  std::int64_t plannings_stopped = 0;
  double planner_s = 0;
  std::vector<std::pair<std::string_view, std::int64_t>> jobs_by_state;  ///< every state
  std::int64_t ranks = 0;                                                ///< of live jobs
  store::CommitCounts commits;
  std::optional<std::int64_t> database_bytes;  ///< nothing: not known yet
};

class Service {
 public:
  /// Reads the index of all jobs, and no log. The store, clock and executor must outlive the service; work that the
  /// executor finishes later than the service does nothing.
  static Result<std::unique_ptr<Service>> open(ServiceOptions options, store::Store& store, const Clock& clock,
                                               Executor& executor);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();

  // Named profiles.
  void put_profile(jobs::NamedProfile profile, Done<jobs::StoredProfile> done);
  void profile(const std::string& name, Done<jobs::NamedProfile> done);
  void profiles(Done<std::vector<std::string>> done);
  void remove_profile(const std::string& name, Done<Ok> done);
  /// Profiles that jobs have learned, see learned_profile.h; of all teams.
  void learned_profiles(Done<std::vector<jobs::LearnedProfile>> done);
  void forget_learned(const std::string& id, Done<Ok> done);

  // The life of a job.
  void register_job(jobs::RegisterJob request, Done<jobs::RegisteredJob> done);
  /// The job that the same request has made under its key before. not_found: none; invalid_input: another request did.
  void registered_before(const jobs::RegisterJob& request, Done<jobs::RegisteredJob> done);
  void register_rank(jobs::RegisterRank request, Done<jobs::RegisteredRank> done);
  /// A profile for a job that has none, or a better one; for all its pipelines, or those given.
  void upload_profile(const std::string& job, jobs::NamedProfile profile, std::vector<int> pipelines, Done<Ok> done);
  /// Of a profiling window that it was handed, if it was; without `window`, what has times of instructions is of the
  /// last one.
  void report_iterations(jobs::ReportIterations request, Done<jobs::ReportedIterations> done);
  /// Of a plan that is no longer in force: nothing.
  void drop_plan(jobs::DropPlan request, Done<Ok> done);
  void finish_job(const std::string& job, Done<Ok> done);
  /// With its log, for good. conflict while it is alive.
  void remove_job(const std::string& job, Done<Ok> done);

  /// Answers when there is a plan of another version. The id takes the call back; it is 0 if it was answered already.
  jobs::WaitId wait_for_plan(jobs::WaitForPlan request, Done<jobs::PlanAnswer> done);
  void cancel_wait(jobs::WaitId wait);

  void set_straggler(jobs::SetStraggler request, Done<jobs::StragglerSet> done);
  void withdraw_straggler(jobs::WithdrawStraggler request, Done<Ok> done);
  void set_policy(jobs::SetPolicy request, Done<Ok> done);
  void clear_policy(jobs::ClearPolicy request, Done<Ok> done);

  // Reads.
  /// All jobs with their committed changes. A row of a job that is alive is at most a minute old where its savings are
  /// estimated from time: see refresh_row().
  [[nodiscard]] const JobList& job_list();
  void refresh_row(const std::string& job);
  /// The token that registered the job, from the index; empty: none. Nothing: not known without its log.
  [[nodiscard]] std::optional<std::string> owner_of(const std::string& job);
  /// Live jobs that the token has registered, with registrations under way.
  [[nodiscard]] JobList::Owned owned_by(const std::string& token);
  /// See server/service/stored_bytes.h.
  [[nodiscard]] std::int64_t stored_bytes_of(const std::string& token) const;
  /// Keeps the changes of the list for take_job_changes() from now on, or no longer.
  void keep_job_changes(bool keep);
  [[nodiscard]] std::vector<JobList::Change> take_job_changes();
  /// Called when the list has something new; job_list() has it afterwards.
  void on_list_changed(std::function<void()> changed);
  void job(const std::string& job, Done<jobs::JobView> done);
  /// not_found while there is none (also while it is being read from the store).
  void frontier(const std::string& job, int pipeline, Done<std::shared_ptr<const jobs::CharacterisedPipeline>> done);
  void timeline(const std::string& job, int pipeline, Done<jobs::TimelineView> done);
  [[nodiscard]] ServiceCounts counts() const;
  /// As far as it is known. Asks the store anew, for the next caller.
  [[nodiscard]] StoreHealth store_health();

  /// Every event of the job after that sequence, those of the past first, each once and in order, until unsubscribed.
  /// `after` beyond the last event (or -1): from now on. `done` is called before the first event.
  /// A long past comes in parts, see kPartOver.
  void subscribe(const std::string& job, std::int64_t after, std::function<void(const jobs::JobEvent&)> on,
                 Done<jobs::SubscriptionId> done);
  /// Events of all jobs from now on.
  jobs::SubscriptionId subscribe_all(std::function<void(const jobs::JobEvent&)> on);
  void unsubscribe(jobs::SubscriptionId subscription);

  // Time.
  /// Does what time has made due. Call it when next_wake() is over, or as often as you like.
  void tick();
  /// When tick() has something to do next.
  [[nodiscard]] std::optional<double> next_wake() const;
  /// Called whenever next_wake() has become earlier.
  void on_earlier_wake(std::function<void()> changed);

  /// Takes over the limits, times and budgets of these options, for what comes from now on: idle_expiry_s, keep_...,
  /// max_ranks, planning_budget_s and profiling_... . The others stay.
  void set_limits(const ServiceOptions& options);

  /// For an orderly shutdown: answers every parked wait and every later wait or report with `unavailable`, and writes
  /// down what ranks have reported. Calls `kept` once that is durable, or with the error of the store; from now on that
  /// has `store_answers_s` for each call.
  void drain(double store_answers_s, Done<Ok> kept = {});
  /// The way to the store that the service uses, for what else the io thread does with it.
  [[nodiscard]] std::shared_ptr<StoreAccess> store_access() const;

 private:
  struct State;
  void set_straggler_of(const std::vector<std::string>& jobs, const jobs::SetStraggler& request,
                        const Done<jobs::StragglerSet>& done);
  explicit Service(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace perseus::service
