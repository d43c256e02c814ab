// A job as the fold of its events: the single definition of a job's state and data.
//
// Problem: memory and log must agree across crashes, restarts and a takeover.
// Input:   the events of one job, in order.
// Output:  a Job; folding the same events always gives an equal one.
// Errors:  apply() rejects an event that the state machine does not allow (next_state()) or that refers to something
//          nonexistent, and then changes nothing: a log with such an event is broken.
// Cost:    O(1) per event (amortized; plans O(pipelines)).
// Threads: plain value.
// Source:  paper section 3.2 (training lifecycle); docs/server.md draws the states.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/jobs/event.h"
#include "server/jobs/job_state.h"

namespace perseus::jobs {

struct Rank {
  int dp_rank = 0, pp_rank = 0, tp_rank = 0;
  int clock_set = 0;        ///< index into Job::clock_sets
  int instruction_set = 0;  ///< index into Job::instruction_sets
  std::string accelerator, host;
  std::optional<double> transfer_latency_s, switch_latency_s, blocking_power_w;
  std::int64_t epoch = 0;  ///< of its process
  int restarts = 0;
  std::string control = {}, control_reason = {};       ///< "advice" or "none"; empty: it sets clocks
  std::optional<std::int64_t> process = std::nullopt;  ///< as in RankRegistered
  std::string gpu = {};                                ///< as in RegisterRank
  bool keeps_budgets = false, paces = false;           ///< as in RegisterRank
  std::int64_t held = 0;                               ///< see VersionHeld; 0: not known
  double heard_s = 0;                                  ///< when it was last no longer silent
  [[nodiscard]] bool names_process() const { return process.value_or(epoch) > 0; }
  /// True if the process with that epoch was the last to register the rank.
  [[nodiscard]] bool is_held_by(std::int64_t of) const { return of != 0 && (of == epoch || of == process); }
  bool operator==(const Rank&) const = default;
};

/// Steps with another number of microbatches than Job::microbatches.
struct JobShape {
  int microbatches = 0;
  std::string action_table;                         ///< empty: the job's schedule
  std::map<std::string, std::string> inputs = {};   ///< by an input of Job::input_of: the same profile with this shape
  std::map<std::string, std::string> why_not = {};  ///< likewise: why there is none
  bool operator==(const JobShape&) const = default;
};

struct FrontierFacts {
  int points = 0;
  double t_min_s = 0, t_star_s = 0;
  bool operator==(const FrontierFacts&) const = default;
};

/// A rank, or an 8-byte placeholder for a rank that has not registered: the declared degrees may be large.
class RankSlot {
 public:
  RankSlot() = default;
  RankSlot(Rank rank) : rank_(std::make_unique<Rank>(std::move(rank))) {}
  RankSlot(const RankSlot& other) : rank_(other.rank_ ? std::make_unique<Rank>(*other.rank_) : nullptr) {}
  RankSlot(RankSlot&&) noexcept = default;
  RankSlot& operator=(const RankSlot& other) { return *this = RankSlot(other); }
  RankSlot& operator=(RankSlot&&) noexcept = default;
  ~RankSlot() = default;

  [[nodiscard]] bool has_value() const { return rank_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  Rank& operator*() { return *rank_; }
  const Rank& operator*() const { return *rank_; }
  Rank* operator->() { return rank_.get(); }
  const Rank* operator->() const { return rank_.get(); }
  bool operator==(const RankSlot& other) const {
    return has_value() == other.has_value() && (!has_value() || *rank_ == *other.rank_);
  }

 private:
  std::unique_ptr<Rank> rank_;
};

struct Job {
  std::string id;
  std::int64_t sequence = 0;  ///< events folded
  /// Number of events from a later version, and of later events that did not apply: the rest of this object may be
  /// wrong.
  std::int64_t unknown_events = 0;
  JobState state = JobState::none;
  JobState state_before_expiry = JobState::none;
  std::string reason;  ///< why it is in this state; may be empty
  double created_s = 0, updated_s = 0;
  double active_s = 0;  ///< time of the last request from outside, according to the log
  JobRegistered spec;

  Tier operator_tier;  ///< as set while it runs: what it has comes before what the job asked for

  std::vector<RankSlot> ranks;  ///< by rank
  std::vector<int> rank_at;     ///< by (dp * pp degree + pp) * tp degree + tp; -1: not registered
  int ranks_registered = 0;
  int restarts = 0;  ///< of the rank with the most; only ranks with as many count iterations for the job
  std::vector<std::vector<int>> clock_sets;  ///< distinct, highest clock first; the first is empty: not known
  std::vector<std::vector<std::string>> instruction_sets;  ///< distinct; the first is empty: not known
  std::map<std::string, std::vector<int>> ranks_of_accelerator;
  std::set<int> uncontrolled;     ///< ranks that set no clocks
  double switch_latency_s = 0;    ///< the largest that a rank measured; 0: none
  std::set<int> without_latency;  ///< ranks whose client measures their switch latency and has not reported it
  double joined_s = 0;            ///< when the last new rank registered
  double registered_s = 0;        ///< when the last process of any rank registered

  std::vector<std::string> input_of;                   ///< per pipeline: key of its input; empty: not known
  std::string profile_source, schedule;                ///< for people
  int microbatches = 0;                                ///< of the inputs, or as the job registered
  std::vector<JobShape> shapes;                        ///< other ones that its steps have; the newest last
  int shape = 0;                                       ///< microbatches that most steps have; 0: Job::microbatches
  std::string varies;                                  ///< as in ShapeSeen
  std::set<std::string> characterizing;                ///< inputs whose full frontier is being planned
  std::map<std::string, FrontierFacts> characterized;  ///< by frontier: an input may have a quick and a full
                                                       ///< frontier
  std::map<std::string, std::string> failures;         ///< by input: why it has no frontier
  std::map<std::string, std::string> unrefined;        ///< by input: why it has only the quick frontier

  struct Trial {
    ProfileOnTrial candidate;
    std::optional<TrialEnded> ended;
    bool operator==(const Trial&) const = default;
  };
  std::optional<Trial> trial;  ///< of a learned profile
  std::optional<ProfilingStarted> profiling;
  std::int64_t profiling_since = 0;      ///< sequence of the event that started profiling
  std::vector<WindowHandedOut> windows;  ///< both dropped when profiling ends
  std::vector<ResultReported> results;
  std::set<int> reported;  ///< ranks that have reported the last window
  double window_s = 0;     ///< when the last window was handed out
  double longest_window_s = 0;
  int windows_overdue = 0;  ///< consecutive, up to the one before the last
  /// Summary that stays after profiling.
  struct Profiled {
    int windows = 0, iterations = 0;
    std::optional<double> uncertainty_pct;
    std::string text;
    // As measured, of the windows that were reported.
    double highest_s = 0, highest_j = 0;  ///< an iteration at the highest clock; 0: not known
    double extra_s = 0, extra_j = 0;      ///< of the measuring ranks, against the highest clock
    double worst_slowdown_pct = 0;
    std::int64_t first_iteration = 0, last_iteration = 0;  ///< of the phase; 0: not known
    bool operator==(const Profiled&) const = default;
  };
  Profiled profiled;
  /// While the ranks set no clocks and their profile is not known: the end of measuring at one clock.
  std::optional<SavingModeled> modeled;
  bool unprofiled = false;     ///< profiling gave no profile: pipelines without one run at maximum clock
  bool profile_again = false;  ///< a rank is now able to set its clock
  /// When its profile is to be measured again, since the ranks' iterations deviate from it; 0: it is not.
  double measure_again_s = 0;
  int measured_again = 0;  ///< times that this was begun

  std::vector<Notice> notices;  ///< pending and in force, in order of arrival
  int notices_ever = 0;
  std::map<std::string, Policy> policies;  ///< by kind

  std::optional<PlanDeployed> plan;
  std::vector<PlanDeployed> earlier_plans;  ///< the last ones before it: reports of iterations under them may still
                                            ///< arrive
  double deployed_s = 0;
  std::int64_t version = 0;  ///< of plans and profiling windows together

  std::optional<JobSilent> silent;     ///< nothing: its ranks call, or it is not known that they do not
  double heard_s = 0;                  ///< time of the last JobHeard of the job
  std::map<int, double> silent_ranks;  ///< those that do not call, while others do: since when

  std::optional<PowerGranted> grant;  ///< the last one
  double granted_s = 0;
  HeldVersions held;

  std::map<std::string, std::string>
      dropped;  ///< by input: sentences on plans from its frontiers that were slower than promised
  struct Planned {
    std::optional<double> switch_latency_s;
    bool fixed = false;
    std::vector<std::string> doubts = {};
    bool operator==(const Planned&) const = default;
  };
  std::map<std::string, Planned> planned_with;  ///< by input of a pipeline: latency and doubts of ProfileKnown
  [[nodiscard]] Seconds switch_latency_of(
      std::string_view frontier_key) const;  ///< planned with; 0: clocks change at once

  // By microbatches.
  std::map<int, EnergyMeasured> measured_highest;  ///< everything at the highest clock
  std::map<int, EnergyMeasured> measured_plan;     ///< under the plan in force

  bool all_measure = false;         ///< every rank has reported energies of iterations since the job's (re)start
  std::optional<ReportsKept> kept;  ///< reports that name their plan; written by a server when it stopped
  bool names_processes = false;     ///< a rank has named its epoch: its client reports the plan that it follows
  IterationsCounted total;          ///< sums of reported iterations; `measured`: nothing of them is estimated
  IterationsCounted estimated;      ///< the part of the sums that is not measured
  IterationsCounted predicted;      ///< the part of `estimated` under the plan in force: subtracted if the plan is
                                    ///< dropped
  std::int64_t counted_to = -1;     ///< iteration up to which they are counted; -1: none is

  [[nodiscard]] bool live() const {
    return state != JobState::none && state != JobState::finished && state != JobState::expired;
  }
  /// Ranks have reported iterations from which savings are counted, though perhaps none under a plan.
  [[nodiscard]] bool has_reports() const { return kept || counted_to >= 0 || total.iterations > 0; }
  [[nodiscard]] int prevailing() const { return shape != 0 ? shape : microbatches; }
  /// The shape that the plan in force is for first.
  [[nodiscard]] int shown_shape() const { return plan ? plan->shape : prevailing(); }
  /// Of that shape; null: not known.
  [[nodiscard]] const EnergyMeasured* plan_measured() const {
    const auto found = measured_plan.find(shown_shape());
    return found == measured_plan.end() ? nullptr : &found->second;
  }
  [[nodiscard]] int num_pipelines() const { return spec.degrees.dp; }
  [[nodiscard]] int coordinate(int dp, int pp, int tp) const {
    return (dp * spec.degrees.pp + pp) * spec.degrees.tp + tp;
  }
  [[nodiscard]] const Notice* notice(std::string_view notice_id) const;
  /// True while a learned profile is being compared with the job's iterations.
  [[nodiscard]] bool tries_profile() const { return trial && !trial->ended; }
  /// The pipeline whose ranks measure while the job is profiled.
  [[nodiscard]] int measured_pipeline() const { return profiling->pipelines.front(); }
  /// A rank that sets no clocks; -1: none.
  [[nodiscard]] int uncontrolled_rank() const { return uncontrolled.empty() ? -1 : *uncontrolled.begin(); }
  /// True if all measuring ranks have reported the last window, or if there is no window yet.
  [[nodiscard]] bool all_reported() const {
    return windows.empty() || static_cast<int>(reported.size()) == spec.degrees.pp * spec.degrees.tp;
  }
  bool operator==(const Job&) const = default;
};

Status apply(Job& job, const Event& event);
/// The name of its state for people: that of `state`, or kSilentState.
std::string_view shown_state(const Job& job);
inline constexpr std::string_view kSilentState = "silent";
/// True if each of its ranks waits for plans as long as it lives: not with one of the two older protocols.
bool waits_for_plans(const Job& job);
/// True if its ranks call all the time while they live. Those of the older protocols report iterations, or request one
/// plan and never call again.
bool keeps_calling(const Job& job);
/// Fact of a job whose clients use one of the two older protocols: which.
inline constexpr std::string_view kProtocolFact = "protocol";

}  // namespace perseus::jobs
