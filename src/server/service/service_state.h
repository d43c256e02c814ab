// State and internal functions of the service: events that follow from time and news, plans, profiling.
//
// Service (server/service/service.h) is the facade over this.
//
// Input:   jobs that change (server/service/live_jobs.h), the time.
// Output:  events that follow by themselves, answers to waiting ranks, events for subscribers, work for the executor.
// Errors:  of the store: retried later.
// Cost:    O(1) per rank and event besides looking up a plan.
// Threads: io thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/jobs/job_profiling.h"
#include "server/service/characterizations.h"
#include "server/service/live_job.h"
#include "server/service/live_jobs.h"
#include "server/service/service.h"
#include "server/service/stored_bytes.h"
#include "server/service/upkeep.h"

namespace perseus::service {

/// The owner to whom planning for the job is charged: its team, otherwise its token, otherwise the job itself.
std::string planning_owner_of(const jobs::Job& job);

/// The stored profiles that a new job names or that are known for its setup.
struct JobProfiles {
  /// Reads them: call it off the io thread.
  static Result<JobProfiles> read(store::Store& store, const jobs::RegisterJob& request, double switch_latency_s);

  struct Given {
    std::string csv;
    jobs::PipelineShape shape;
    std::string name;
    std::vector<int> pipelines;  ///< empty: all
    bool fixed_latency = false;  ///< as in ProfileKnown
  };
  std::vector<Given> given;
  /// A profile that an earlier job of the same setup has learned, for a trial.
  struct Learned {
    std::string key;
    jobs::LearnedProfile profile;
    Given given;
  };
  std::optional<Learned> learned;
};

struct Service::State : std::enable_shared_from_this<State> {
  State(ServiceOptions given, store::Store& the_store, const Clock& the_clock, Executor& the_executor)
      : options(std::move(given)),
        store(std::make_shared<StoreAccess>(the_store, the_clock, the_executor, options.store_answers_s)),
        clock(the_clock),
        executor(the_executor),
        opened_s(the_clock.now_s()),
        characterizations(std::make_shared<Characterizations>(options, *store, the_clock, executor)) {}

  struct Subscription {
    std::string job;  ///< empty: all
    std::int64_t after = 0;
    std::shared_ptr<const std::function<void(const jobs::JobEvent&)>> on;  ///< shared with a call in progress
  };

  ServiceOptions options;
  std::shared_ptr<StoreAccess> store;
  const Clock& clock;
  Executor& executor;
  double opened_s;
  std::shared_ptr<Characterizations> characterizations;
  std::shared_ptr<LiveJobs> jobs;
  std::shared_ptr<Upkeep> upkeep;
  std::shared_ptr<StoredBytes> stored_bytes;
  std::unordered_map<std::string, JobList::Owned> registering;  ///< by token; neither in the list nor rejected yet
  std::unordered_map<jobs::WaitId, std::string> job_of_wait;
  std::unordered_map<jobs::WaitId, Done<jobs::PlanAnswer>> waits_to_begin;  ///< their job is being read
  std::set<std::pair<double, jobs::WaitId>> wait_deadlines;
  jobs::WaitId next_wait = 1;
  std::map<jobs::SubscriptionId, Subscription> subscriptions;
  jobs::SubscriptionId next_subscription = 1;
  JobList list;
  std::function<void()> list_changed;
  std::multimap<double, std::pair<jobs::SubscriptionId, std::int64_t>> late_past;  ///< to be read again, with the time
  bool draining = false;
  std::int64_t plans_deployed = 0;
  std::function<void()> earlier_wake;

  // ---- Events that follow by themselves

  std::optional<jobs::EventBody> next_follow_up(LiveJob& live, double now_s);
  std::optional<jobs::EventBody> next_deployment(LiveJob& live, double now_s);
  [[nodiscard]] double expiry_of(const LiveJob& live) const;
  [[nodiscard]] std::optional<double> next_wake_of(const LiveJob& live, double now_s) const;

  // ---- Parts of requests

  void make_job(const std::string& id, jobs::RegisterJob request, Done<jobs::RegisteredJob> done);
  /// The answer to its registration.
  [[nodiscard]] jobs::RegisteredJob registered(const std::string& id);
  /// Wraps `done`; until it is called, the job counts for its token.
  Done<jobs::RegisteredJob> counted_as_owned(const jobs::RegisterJob& request, Done<jobs::RegisteredJob> done);
  void report(LiveJob& live, jobs::ReportIterations request, Done<jobs::ReportedIterations> done);
  /// The live jobs with that accelerator.
  void with_accelerator(const std::string& accelerator, Done<std::vector<std::string>> done);
  /// Called when a job's wake is due.
  void wake(const std::string& id);

  // ---- News

  /// Sends past events to a new subscriber until it has caught up; events that arrive meanwhile are read from the
  /// store.
  void tell_past(jobs::SubscriptionId id, std::int64_t after);
  void retry_past(jobs::SubscriptionId id, std::int64_t after);
  void tell_late_past(double now_s);

  void committed(LiveJob& live, const std::vector<SequencedEvent>& events);
  void publish(const std::string& job, const SequencedEvent& event);
  void tell(const jobs::JobEvent& event);
  /// The job and its log are removed: sends the last event of its streams.
  void removed(const store::JobIndexRow& gone);
  /// Rebuilds the changed rows of the list.
  void update_list();
  void update_row(const std::string& job);
  void want_frontiers(LiveJob& live);
  /// Withdraws requests for frontiers that the job no longer needs.
  void forget_frontiers(LiveJob& live);
  /// Requests the frontiers, also of a job that has ended, for its viewers.
  void want_frontiers_to_show(LiveJob& live);
  void frontier_came(const std::string& id, const std::string& key, const Result<Characterizations::Frontier>& came);

  // ---- Profiling

  /// Computes the next step after a finished window, on the executor, under a claim.
  void go_on_profiling(LiveJob& live);
  [[nodiscard]] bool overdue(const jobs::Job& job, double now_s) const;
  /// Names the late ranks; empty: none.
  [[nodiscard]] std::string why_overdue(const jobs::Job& job) const;
  void decide_window(const std::string& id, const std::shared_ptr<jobs::JobProfiling>& profiling);
  void submit_window(const std::string& id, const std::shared_ptr<jobs::JobProfiling>& profiling,
                     jobs::ProfilingQuestion question);
  void profiling_decided(const std::string& id, const std::shared_ptr<jobs::JobProfiling>& profiling, int window,
                         const jobs::ProfilingDecision& decided);
  /// The profiling window of a report; nothing: none.
  static std::optional<int> window_of(const LiveJob& live, const jobs::ReportIterations& request);
  void report_window(LiveJob& live, int window, jobs::ReportIterations request, Done<jobs::ReportedIterations> done);

  // ---- Plans

  /// LiveJobs::with() for a request; `then` gets the job or the error.
  template <class Then>
  void asked(const std::string& id, Then then) {
    jobs->with(id, [this, id, then = std::move(then)](const Result<LiveJob*>& live) mutable {
      if (live && (*live)->job.unknown_events > 0) return then(Result<LiveJob*>(later_version(id)));
      if (live) (*live)->last_seen_s = clock.now_s();
      then(live);
    });
  }
  /// Runs a command on a job.
  void ask(const std::string& id, JobCommand command);
  /// Calls `then` with the job once this server knows the rank and the plan of that version: at once if it does,
  /// whatever the state of the store. Otherwise it reads what other servers have written.
  template <class Then>
  void with_rank(const std::string& id, int rank, std::int64_t version, Then then) {
    LiveJob* const live = jobs->in_memory(id);
    if (live == nullptr || !live->knows(rank, version)) return find_rank(id, rank, version, std::move(then));
    live->last_seen_s = clock.now_s();
    then(Result<LiveJob*>(live));
  }
  /// True if the job had expired and is being revived; ranks must ask again.
  bool revive_if_expired(LiveJob& live);
  /// Time since the rank's last call to this server; nothing: shorter than its lease, or the rank waits for a plan.
  [[nodiscard]] std::optional<double> silence_of(const LiveJob& live, int rank) const;
  /// Ends waits of processes that no longer hold their rank.
  void end_waits_of_earlier(LiveJob& live, int rank);
  void find_rank(const std::string& id, int rank, std::int64_t version, LiveJobs::Found then);
  jobs::WaitId wait(LiveJob& live, const jobs::WaitForPlan& request, jobs::WaitId id, Done<jobs::PlanAnswer> done);
  /// Calls `then` with the job; if the job is in memory, also while the store does not answer.
  void look(const std::string& id, LiveJobs::Found then);
  /// Answers with the result of `make` for the job as clients may see it, see LiveJob::answered_job().
  template <class T, class Make>
  void show(const std::string& id, Make make, Done<T> done);
  /// The schedule in force for a rank: a plan, a profiling window, or the highest clocks. Null: not known yet.
  std::shared_ptr<const jobs::StageSchedule> schedule_for(LiveJob& live, const jobs::Rank& rank,
                                                          std::int64_t shown_version);
  std::shared_ptr<const jobs::StageSchedule> plan_schedule(LiveJob& live, const jobs::Rank& rank);
  /// The computations where there is no frontier. Nothing: being read; null: not known.
  std::optional<const jobs::PipelineShape*> max_clock_shape(LiveJob& live, int pipeline);
  void read_max_clock_shape(LiveJob& live, int pipeline);
  /// True if ranks run at their highest clock and get no plan yet, since a plan for their switch latency will follow.
  [[nodiscard]] bool first_plan_waits(const LiveJob& live, double now_s) const;
  /// The switch latency with which an input must be planned again, unless that has failed.
  static std::optional<Seconds> latency_to_replan(const LiveJob& live, const std::string& input);
  /// Sends a plan that first_plan_waits() held back until now.
  void release_first_plan(LiveJob& live);
  /// The answer to a rank that has that version; nothing: it must wait.
  std::optional<Result<jobs::PlanAnswer>> plan_for(LiveJob& live, int rank, std::int64_t have_version);
  void wake_waiters(LiveJob& live);
  void forget_wait(jobs::WaitId id, const Waiter& waiter);
  std::optional<Waiter> take_wait(jobs::WaitId id);
  /// Call when the wait has reached its time limit.
  void end_wait(jobs::WaitId id);

  // ---- Profiles

  [[nodiscard]] jobs::InputLimits limits(int ranks) const;
  /// Deletes the learned profile: later runs of this job's setup measure again.
  void forget_learned(const jobs::Job& job, Done<Ok> done);
  /// Stores the outcome of the job's trial with the learned profile.
  void note_trial(const std::string& id, const jobs::ProfileOnTrial& candidate, const jobs::TrialEnded& ended);
  /// Events and blobs of the profiles.
  void complete_profiles(JobProfiles profiles, int ranks, std::function<void(State&, Result<Decision>)> then);
  /// Runs `work` on the executor, and then `then` with its result on the io thread.
  template <class Outcome>
  void away(std::function<Outcome()> work, std::function<void(State&, Outcome)> then) {
    executor.submit(Executor::Kind::request, [weak = weak_from_this(), work = std::move(work), then = std::move(then)] {
      auto outcome = std::make_shared<Outcome>(work());
      return std::function<void()>([weak, then, outcome] {
        if (const auto self = weak.lock()) then(*self, std::move(*outcome));
      });
    });
  }

  /// Calls `in_one` for all these jobs from `first` on. For thousands of jobs it yields to other work after each few.
  void one_after_the_other(const std::shared_ptr<const std::vector<std::string>>& ids, std::size_t first,
                           std::function<void(const std::string&)> in_one);
  void note_followed(LiveJob& live, const jobs::ReportIterations& request);
  /// Writes all reports to the store, before the server stops.
  void keep_reports(LiveJob& live, Done<Ok> done);
  void end_waits();
  /// Answers the waits for the job's plans: the job was removed.
  void removed(LiveJob& live);
  /// Writes the number of iterations under the plan: at each growth by an eighth, and by next_follow_up() every five
  /// minutes; for reports that do not name their plan, at the first one and each time the number has doubled.
  void keep_count(LiveJob& live, const jobs::ReportIterations& request);
  void observe_times(LiveJob& live, const jobs::ReportIterations& request);
  /// Collects the energies of iterations; they are written once all ranks have reported, and occasionally later.
  void observe_energies(LiveJob& live, const jobs::ReportIterations& request);
  /// Ranks measured a switch latency different from the planned one: plans again with it.
  void replan_for_latency(LiveJob& live);
  void replan(const std::string& id, const std::string& input, Seconds latency, const std::string& text);
};

template <class T, class Make>
void Service::State::show(const std::string& id, Make make, Done<T> done) {
  look(id, [make = std::move(make), done = std::move(done)](const Result<LiveJob*>& live) {
    if (!live) return done(live.error());
    // The callback changes the job itself.
    done([&]() -> Result<T> {
      const AsShown as_shown(**live, (*live)->answered_job());
      return make(**live);
    }());
  });
}

}  // namespace perseus::service
