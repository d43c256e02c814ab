// The server's requests and answers as plain values, independent of the protocol.
//
// Units are typed inside; `_s` members are times of day, seconds since 1970 (UTC). A job's *ranks* are its processes,
// 0 .. world_size - 1, each with its coordinates (dp, pp, tp). Its *pipelines* are its data-parallel copies, numbered
// by dp rank. A *stage rank* is a pp rank: it has one list of clocks, shared by its tp copies and, where their
// pipelines are alike, by all dp copies.
//
// Problem: three HTTP protocols, the command line and the tests send the same requests to the service in different
//          forms.
// Threads: plain values.
// Source:  paper section 5, table of the client's API.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "io/formats/frequency_plan.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/transfer_latency.h"
#include "server/jobs/labels.h"
#include "server/jobs/power_budget.h"

namespace perseus::jobs {

/// Fact of a job: the team of the token that registered it, or the token's id; absent while tokens are off.
inline constexpr std::string_view kTeamFact = "team";

struct Tier {
  std::string domain = {};  ///< power domain; empty: that of its ranks' hosts
  std::optional<double> least_rate =
      std::nullopt;                               ///< least part of its full speed; nothing: its team's, or the site's
  std::optional<double> priority = std::nullopt;  ///< nothing: its team's, or 1
  bool operator==(const Tier&) const = default;
};

// ---- Profiles, with the shape of the pipeline that they belong to

/// Properties of a pipeline that a profile leaves open. Missing values come from the ranks' own measurements where
/// they exist (latencies, blocking power), otherwise from the defaults of `perseus plan` (blocking power: a fifth of
/// the highest).
struct PipelineShape {
  std::string schedule = "1f1b";  ///< one of schedule_names()
  std::string action_table;       ///< PyTorch's CSV instead of `schedule` and `microbatches`, if not empty
  int microbatches = 0;
  int chunks = 0;  ///< stages per rank; 0: as the schedule fixes, else profile stages / pp degree
  std::optional<Watts> blocking_power;
  std::optional<model::TransferLatency> transfer_latency;
  bool blocking_transfers = false;
  bool serial_transfers = false;         ///< a link carries one transfer per direction at a time
  std::optional<double> split_backward;  ///< see planning/model/derived_instructions.h
  std::optional<Seconds> switch_latency;
  std::optional<Seconds> min_dwell;
  bool operator==(const PipelineShape&) const = default;
};

/// A profile that jobs can name (`perseus profile push`).
struct NamedProfile {
  std::string name;         ///< 1..128 of [A-Za-z0-9._+-], not starting with a dot
  std::string profile_csv;  ///< as io/formats/profile_csv.h reads it
  PipelineShape shape;
  std::string accelerator;  ///< for people: "NVIDIA A100-SXM4-40GB"; may be empty
};
struct StoredProfile {
  std::string name;
  int stages = 0;
  int ranks = 0;                         ///< per pipeline
  std::vector<std::string> doubts = {};  ///< see planning/model/profile_doubts.h
};

/// A stored learned profile: its owner, its origin, and its input.
struct LearnedProfile {
  std::string id;  ///< the key without its prefix; not stored
  std::string input, team, model, job;
  double learned_at_s = 0;
  int confirmed = 0;            ///< jobs whose iterations agreed with it
  std::string doubted_by = {};  ///< a job whose iterations disagreed: the profile is not tried again
  std::string doubted_because = {};
};

// ---- Policies, which decide a job's plan

/// Limit on the average power of the job (all pipelines together): the fastest iteration within it.
struct PowerCap {
  Watts average;
  bool operator==(const PowerCap&) const = default;
};
/// This iteration time, regardless of stragglers and other policies; or the time of that point of pipeline 0's
/// frontier.
struct Pin {
  std::optional<Seconds> time;
  std::optional<int> point;
  bool operator==(const Pin&) const = default;
};
/// Accepts `slowdown` times T_max: always, or where there is a signal (a price, a carbon intensity), while the signal
/// is above the threshold.
struct MaxSlowdown {
  struct Sample {
    double from_s = 0;  ///< valid until the next entry's; the last one has no end
    double value = 0;
    bool operator==(const Sample&) const = default;
  };
  double slowdown = 1;
  std::optional<double> threshold;  ///< of the signal, and only with one; nothing: 0
  std::vector<Sample>
      signal;        ///< by increasing time; before the first, the policy is not in force; empty: always in force
  std::string unit;  ///< for people: "EUR/MWh"
  bool operator==(const MaxSlowdown&) const = default;
};
using Policy = std::variant<PowerCap, Pin, MaxSlowdown>;
inline constexpr std::array<std::string_view, std::variant_size_v<Policy>> kPolicyKinds{"power_cap", "pinned",
                                                                                        "max_slowdown"};
/// One of kPolicyKinds.
inline std::string_view kind_of(const Policy& policy) { return kPolicyKinds[policy.index()]; }

// ---- Jobs and ranks

struct Degrees {
  int dp = 1;
  int pp = 1;
  int tp = 1;
  [[nodiscard]] int world_size() const { return dp * pp * tp; }
  bool operator==(const Degrees&) const = default;
};

struct RegisterJob {
  std::string name;  ///< for people; may be empty
  Degrees degrees;
  int world_size = 0;                     ///< must be the product of the degrees; 0: that product
  std::string id_prefix;                  ///< prefix of the id, before a random part; empty: "j_"
  std::string profile;                    ///< a named profile; empty: none
  std::map<int, std::string> profile_of;  ///< pipelines (dp ranks) with a different named profile
  std::optional<PipelineShape> shape;     ///< instead of the named profile's
  bool profile_online = false;            ///< measure a profile if none is known; needs `shape`
  bool plain_profiling = false;           ///< the published order: one uniform clock after another
  /// Budget of online profiling, in percent: mean of all iterations, and a single one; nothing: the server's.
  std::optional<double> profiling_slowdown_pct = std::nullopt, profiling_worst_slowdown_pct = std::nullopt;
  std::optional<Seconds> switch_latency = std::nullopt;  ///< overrides the profile's and the ranks' measurements
  std::map<std::string, std::string> facts;  ///< framework, model, partition, accelerator, microbatch_size, ...
  bool detect_stragglers = false;            ///< from reported iteration times
  Labels labels = {};                        ///< team, model, ...: lists of jobs select by them
  Tier tier = {};                            ///< as asked for
  bool tier_bounded = false;  ///< by what the site gives its team, see tier_of(): a token of a job asks for it
  /// A key that the client chooses, with the hash of its request: the same key again is the same job. Empty: none.
  std::string idempotency_key = {}, fingerprint = {};
  std::string by = {};  ///< who asks for it, for people: see author_of() in event_text.h; as in the requests below
};
struct RegisterJobAnswer {
  std::string job;
  std::string state;
};

/// Registers a rank. Sent again when the rank knows more about itself: latencies, blocking power, instructions.
struct RegisterRank {
  std::string job;
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
  int tp_rank = 0;
  std::vector<int> clocks_mhz;  ///< supported, in any order; empty: not known, every clock is accepted
  std::string accelerator;      ///< its id in the infrastructure (GPU-...); may be empty
  std::string host;             ///< may be empty
  std::optional<Seconds> transfer_latency;
  std::optional<Seconds> switch_latency;
  std::optional<Watts> blocking_power = std::nullopt;  ///< of this accelerator, while it waits
  std::vector<std::string> instructions = {};  ///< of one iteration, in order, as this client names them; may be empty
  std::string control = {};  ///< "clocks" (also if empty), "advice" (it sets none, by choice) or "none" (it cannot)
  std::string control_reason = {};  ///< for people: why the rank sets no clocks
  std::string gpu = {};             ///< its model, as the driver names it ("NVIDIA A40"); may be empty
  /// Epoch of the rank's process: a later process has a greater one, counts iterations from 0, and may run on another
  /// host. 0: not known.
  std::int64_t epoch = 0;
  bool with_plan = false;      ///< include the rank's plan in the answer, if there is one
  bool replaces = false;       ///< take the rank over even without a greater epoch: clocks of hosts differ
  bool keeps_budgets = false;  ///< its client obeys the lease and the ceiling of a plan's budget
  bool paces = false;          ///< its program lets the client wait where the plan's budget has a period
};

// ---- Plans

/// Lowest and highest of some clocks.
struct ClockSpan {
  int least_mhz = 0, most_mhz = 0;
  bool operator==(const ClockSpan&) const = default;
};

/// The clocks of one stage rank. Made once per plan version, stage rank and set of supported clocks, and shared by
/// all callers. `rendered` is where callers cache the texts that they make of it, by their own names.
struct StageSchedule {
  enum class Kind { plan, profiling_window, maximum_clock };
  Kind kind = Kind::maximum_clock;
  std::int64_t version = 0;         ///< of the job's plan; grows with every change for any of its ranks
  std::int64_t from_iteration = 0;  ///< the first iteration to follow it; 0: at once
  int iterations = 0;               ///< of a profiling window, then the highest clock; 0: until the next version
  int window = -1;                  ///< number of the profiling window
  int pipeline = 0;                 ///< the first one that has this schedule
  int stage_rank = 0;
  std::vector<formats::ClockedInstruction> clocks;  ///< with constant-time instructions left out, in execution order
  /// The computation that each of `clocks` is for; empty: not known.
  struct ComputationId {
    int microbatch = -1;
    int chunk = 0;  ///< index of its stage among those of the rank
  };
  std::vector<ComputationId> computations = {};
  int microbatches = 0;  ///< of the steps that `clocks` are for; 0: not known, or all
  /// Clocks of steps with another number of microbatches.
  struct OfShape {
    int microbatches = 0;
    Seconds iteration_time, all_max_time;
    std::vector<formats::ClockedInstruction> clocks;
    std::vector<ComputationId> computations;
  };
  std::vector<OfShape> shapes = {};
  std::optional<Seconds> iteration_time;  ///< planned, of this pipeline
  std::optional<Seconds> all_max_time;    ///< everything at maximum clock
  std::optional<double> saving_pct;       ///< planned, of the whole job's energy at maximum clock
  /// One standard deviation of saving_pct by the profile's noise; nothing: the profile counts as exact.
  std::optional<double> saving_stddev_pct = {};
  bool only_possible = false;             ///< a rank sets no clocks: saving_pct is what would be saved if all did
  bool modeled = false;                   ///< saving_pct is of a model of clocks that were not measured
  bool slower_on_purpose = false;         ///< than necessary: `reason` names the cause (a straggler, a policy)
  std::string reason;                     ///< the reason for this plan, one sentence for people
  std::vector<std::string> instructions;  ///< of one iteration, as the rank named them when it registered
  std::optional<PowerBudget> budget = {};
  mutable std::map<std::string, std::shared_ptr<const std::string>, std::less<>> rendered;
  mutable std::optional<ClockSpan> clock_range = {};  ///< of `clocks`, once a caller has needed it
};

/// Waits until the job's plan has another version than `have_version`. A rank that has run that version sends 0 to
/// get it again at once.
struct WaitForPlan {
  std::string job;
  int rank = 0;
  std::int64_t have_version = 0;
  std::optional<std::int64_t> iteration;  ///< the iteration that this rank is in
  std::optional<double> max_wait_s;       ///< then the answer is "unchanged"; nothing: no limit
  std::int64_t epoch = 0;  ///< as in RegisterRankAnswer; rejected if it no longer holds the rank. 0: not known
  /// The client asks only once, at its start, and waits for the answer: after a short time it gets the highest
  /// clocks, unless the job is being profiled.
  bool asks_once = false;
};
struct PlanAnswer {
  std::shared_ptr<const StageSchedule> schedule;  ///< null: unchanged
  int rank = 0;
  int pipeline = 0;     ///< the rank's
  bool renews = false;  ///< unchanged, and the rank's plan has a budget: the answer renews its lease
};

struct RegisterRankAnswer {
  int registered = 0;  ///< ranks so far
  int expected = 0;
  /// Epoch of the process that holds the rank now. The process that registered uses it in later requests.
  std::int64_t epoch = 0;
  std::optional<PlanAnswer> plan = std::nullopt;
};

/// Handle of a parked call, to cancel it when its connection closes.
using WaitId = std::uint64_t;

/// What a rank's process has seen of its clocks since it started.
struct ClockFigures {
  int set_mhz = 0;                        ///< last clock that the device accepted; 0: none of the client's
  std::int64_t failed = 0;                ///< requests that the device or its driver did not carry out
  std::int64_t late = 0;                  ///< computations whose clock came later than plans assume
  std::int64_t throttled_iterations = 0;  ///< iterations during which the device was throttled
  bool operator==(const ClockFigures&) const = default;
};

/// Iterations that a rank has run: for profiling (of a window), savings, and straggler detection.
struct ReportIterations {
  using Breakdown = std::map<std::string, std::vector<std::vector<double>>>;
  std::string job;
  int rank = 0;
  std::optional<int> window;                   ///< of profiling; nothing: the last window handed out to this rank
  std::optional<std::int64_t> last_iteration;  ///< number of the last one in the lists
  /// The version that these iterations followed from beginning to end; 0: none, the highest clock; nothing: not
  /// known.
  std::optional<std::int64_t> plan_version = std::nullopt;
  std::string missed = {};  ///< the window ran but nothing could be measured: the reason; the lists are empty
  std::vector<Seconds> iteration_time;   ///< of this pipeline alone: without waiting for others, if known
  std::vector<Joules> iteration_energy;  ///< of this accelerator
  Breakdown time_s;                      ///< instruction -> per iteration -> per occurrence
  Breakdown energy_j;
  std::vector<bool> throttled;  ///< per iteration; empty: not known
  std::int64_t epoch = 0;       ///< as in WaitForPlan
  /// When each occurrence began and ended, by any clock of the rank: for link latencies; empty: not known.
  Breakdown begin_s = {}, end_s = {};
  std::vector<int> microbatches = {};                 ///< per iteration; empty: those of the job
  std::optional<ClockFigures> clocks = std::nullopt;  ///< clients send them from time to time
};
struct ReportedIterations {
  std::vector<std::string> rejected;  ///< single values that were left out, and why
};

/// The rank's steps have this shape, or so many alternate that no plan can fit: see ShapeSeen.
struct SeeShape {
  std::string job;
  int rank = 0;
  int microbatches = 0;
  bool prevails = false;
  std::string varies, action_table;
  std::int64_t epoch = 0;  ///< as in WaitForPlan
};

/// A rank switched to its highest clock because its iterations under a plan were slower than promised.
struct DropPlan {
  std::string job;
  int rank = 0;
  std::int64_t version = 0;
  std::string reason;  ///< for people; may be empty
  Seconds measured, promised;
  int microbatches = 0;    ///< of its steps; 0: not known
  std::int64_t epoch = 0;  ///< as in WaitForPlan
};

// ---- Stragglers

/// The slow component: exactly one of the three.
struct StragglerTarget {
  std::string accelerator;
  std::optional<int> rank;
  std::optional<int> pipeline;
  bool operator==(const StragglerTarget&) const = default;
};

struct SetStraggler {
  std::string job;  ///< may be empty for an accelerator: then every job that has it
  StragglerTarget target;
  Seconds delay;
  double degree = 1;  ///< times slower, 1 .. 1000; 1: back to normal
  std::string by = {};
};
struct StragglerSet {
  struct Outcome {
    std::string job;
    std::string id;  ///< within the job
    int pipeline = 0;
    double at_s = 0;                ///< when it takes effect
    std::string nothing_done = {};  ///< why there is no notice: degree 1, and no notice to end
  };
  std::vector<Outcome> notices;
};
struct WithdrawStraggler {
  std::string job;
  std::string id;
  std::string by = {};
};

/// A notice about a pipeline of a job.
struct Notice {
  std::string id;
  StragglerTarget target;
  int pipeline = 0;
  double degree = 1;
  double effective_s = 0;
  bool detected = false;  ///< by the server
  bool in_force = false;
  bool operator==(const Notice&) const = default;
};

// ---- Policies

struct PolicyInForce {
  Policy policy;
  std::string text;  ///< one sentence
};
struct SetPolicy {
  std::string job;
  Policy policy;  ///< replaces the job's policy of the same kind
  std::string by = {};
};
struct PolicyChanged {
  std::string warning;  ///< why no plan keeps the policy; empty: it is kept, or there is no frontier yet
};
struct ClearPolicy {
  std::string job;
  std::string kind;
  std::string by = {};
};

struct SetTier {
  std::string job;
  Tier tier;           ///< what it does not have stays as it is
  bool reset = false;  ///< first removes what was set before
  std::string by = {};
};
/// As a client sends it.
struct TierBody {
  Tier tier;
  bool reset = false;
};

// ---- Views of a job

/// A pipeline under a power limit: see server/savings/job_savings.h.
struct LimitedPower {
  Joules plan, all_max;  ///< effective
  Seconds all_max_time;
};

/// A frontier with its inputs; shared by all jobs with the same profile, pipeline and options.
struct CharacterizedPipeline {
  std::string key;  ///< of the frontier: same key, same frontier
  model::ComputationDag dag;
  model::Frontier frontier;
  Seconds all_max_time;  ///< everything at maximum clock
  Joules all_max_effective_energy;
  mutable std::map<std::pair<int, double>, LimitedPower> limited = {};  ///< by point and degree; io thread
};

/// The members with which the view of a job and its entry in lists begin.
struct JobHeader {
  std::string job, name, state;
  double created_s = 0, updated_s = 0;
};
/// The figures of a job's entry in lists. Stored in the store's index, as of the last event.
struct JobSummary {
  int ranks = 0, ranks_registered = 0, pipelines = 0;
  int stragglers = 0;                     ///< pipelines that straggle
  std::optional<Seconds> iteration_time;  ///< of the whole job, as its ranks run it; nothing once it has ended
  std::optional<double> saved_pct;        ///< of an iteration's energy at maximum clock, under the plan in force
  /// The same if all ranks set their clocks and the plan were not held back, and its deviation; nothing while so.
  std::optional<double> possible_saving_pct = {}, possible_saving_stddev_pct = {};
  bool possible_saving_modeled = false;       ///< as PossibleSaving::modeled
  std::optional<double> silent_since_s = {};  ///< last call of a rank of a silent job
  int silent_ranks = 0;                       ///< that do not call, while others do
  bool maximum_clock = false;   ///< the plan in force is maximum clock: there is no frontier to choose from
  std::optional<Joules> saved;  ///< so far; nothing without reports
  Joules estimated_saved;       ///< part of `saved` that is estimated from the profile
  /// Mean power of the whole job under the plan in force, and with everything at maximum clock. Nothing until ranks
  /// have reported iterations, and once the job has ended.
  std::optional<Watts> power, all_max_power;
  bool power_measured = false;         ///< `power`, by the ranks' counters; otherwise both are estimated: see JobPower
  std::optional<Watts> planned_power;  ///< of what the ranks run, by the profile; whenever there is a `power`
  std::string accelerator;             ///< the fact of that name; empty: not known
  Labels labels = {};
  std::optional<std::string> owner = std::nullopt;  ///< the token that registered it; empty: none. Only in the index
};
struct JobListEntry {
  JobHeader header;
  JobSummary summary;
};

/// Cost of profiling against everything at the highest clock, as measured; negative: it saved.
struct ProfilingCost {
  std::int64_t iterations = 0;  ///< of the whole phase, those between windows included
  Seconds time;
  Joules energy;
  double mean_slowdown_pct = 0, worst_slowdown_pct = 0;
  std::optional<double> earned_back_after;  ///< iterations under the plan; 0: it cost no energy
  bool operator==(const ProfilingCost&) const = default;
};

struct JobView {
  JobHeader header;
  std::string reason;                         ///< why it is in this state; may be empty
  std::optional<double> silent_since_s = {};  ///< last call of a rank of a silent job
  double now_s = 0;
  std::int64_t sequence = 0;  ///< last event folded into this
  std::string schedule;       ///< empty: not known
  int microbatches = 0;       ///< that most steps have
  /// The numbers of microbatches that its steps have, if there are several.
  struct Shape {
    int microbatches = 0;
    bool planned = false;
    std::string why;  ///< there is no plan; empty: it is being made, or there is one
  };
  std::vector<Shape> shapes = {};
  Degrees degrees;
  int ranks_registered = 0;
  int ranks_waiting = 0;  ///< for a plan, at this server
  std::map<std::string, std::string> facts;
  Labels labels = {};
  bool detect_stragglers = false;
  /// Of a job that is or was profiled online.
  struct Profiling {
    bool over = false;
    int windows = 0, iterations = 0;  ///< handed out
    /// Energy that the plan loses, or time by which it is late, at most, with 90 % confidence; the worst of both, and
    /// of all deadlines examined.
    std::optional<double> uncertainty_pct;
    std::string text;                     ///< the same as a sentence; the failure, if any
    std::vector<int> waiting_for;         ///< ranks that have yet to report the last window
    std::int64_t rejected = 0;            ///< values left out, as far as this server knows
    std::vector<std::string> rejections;  ///< the last of them, and why
    std::optional<ProfilingCost> cost;
  };
  std::optional<Profiling> profiling;
  /// Trial of a learned profile, see server/profiles/profile_trial.h.
  struct ProfileTrial {
    std::string state;       ///< under_way, confirmed, doubted
    std::string learned_by;  ///< job
    std::string text;        ///< the deciding figures
  };
  std::optional<ProfileTrial> profile_trial;
  std::vector<std::string> profile_doubts;  ///< what no GPU would measure in the profiles that pipelines run

  struct PlanInForce {
    std::int64_t version = 0, from_iteration = 0;
    double deployed_s = 0;
    std::optional<Seconds> t_max, t_min, t_star;  ///< of the job: of its slowest pipeline
    std::optional<Seconds> t_straggler;           ///< T' of the slowest straggler in force
    std::optional<Seconds> t_opt;                 ///< effective, after stragglers and policies
    std::string reason;
  };
  std::optional<PlanInForce> plan;
  /// Plans that ranks dropped; no new plan uses their profile.
  std::vector<std::string> dropped;

  struct PipelineView {
    int pipeline = 0;
    bool straggler = false;
    std::optional<int> point;  ///< nothing: maximum clock
    int points = 0;
    Seconds time;
    Joules energy;         ///< of all its accelerators, at its own time
    std::string frontier;  ///< key; empty: not characterized
  };
  std::vector<PipelineView> pipelines;

  std::vector<Notice> stragglers;
  std::vector<PolicyInForce> policies;

  struct PerIteration {
    Joules energy, all_max_energy;
    Seconds time, all_max_time;
    Watts waiting{};  ///< while all ranks wait
    [[nodiscard]] double saved_pct() const {
      return all_max_energy > Joules(0) ? 100 * (1 - energy / all_max_energy) : 0;
    }
  };
  /// The whole job, under the plan in force: an estimate from the profile, in which ranks that set no clocks run at
  /// maximum clock. Nothing once the job has ended.
  std::optional<PerIteration> per_iteration;
  /// What the plan would save if all ranks set their clocks.
  struct PossibleSaving {
    double saving_pct = 0;                  ///< of the energy at maximum clock
    std::optional<double> stddev_pct = {};  ///< by the profile's noise; nothing: the profile counts as exact
    bool modeled = false;                   ///< of a model of clocks that were not measured; there is no plan
  };
  std::optional<PossibleSaving> possible;  ///< nothing while all ranks set clocks, and once the job has ended
  /// Under the power limits of the site; nothing without a site, or once the job has ended.
  struct SitePart {
    std::string domain;
    double least_rate = 0, priority = 1;
    std::string state, reason;  ///< see SiteJobView
    std::optional<Watts> granted;
    int ceiling_mhz = 0;  ///< of a rank without a valid plan; 0: none
    Watts counted, planned, baseline;
    std::optional<double> rate, rate_lost;
  };
  std::optional<SitePart> site;
  /// Of a paced job, in each iteration: all its ranks wait until the period has passed. No saving contains this energy,
  /// an estimate from the profile.
  struct Waits {
    Seconds period, wait;
    Joules energy;
  };
  std::optional<Waits> waits;
  /// Measured by the ranks' own counters; nothing until all ranks have reported.
  struct Measured {
    Joules energy;
    Seconds time;
    std::int64_t iterations = 0;
    bool operator==(const Measured&) const = default;
  };
  std::optional<Measured> measured, measured_all_max;
  std::string no_savings;  ///< why the plan saves nothing: ranks that set no clocks; empty: it does
  struct TotalSavings {
    std::int64_t iterations = 0;
    Joules saved, all_max_energy;
    bool measured = false;                  ///< nothing of it is estimated from the profile
    std::int64_t estimated_iterations = 0;  ///< part of the iterations
    Joules estimated_saved;
  };
  std::optional<TotalSavings> total;  ///< nothing if ranks report no iterations
  std::string no_total;               ///< why a job with a plan has no total
};

/// A registered rank, as far as this server knows it.
struct RankView {
  int rank = 0, dp_rank = 0, pp_rank = 0, tp_rank = 0;
  std::string host, accelerator;        ///< empty: not known
  std::string control, control_reason;  ///< "advice" or "none", and why; empty: it sets clocks
  int restarts = 0;
  std::optional<double> last_heard_s;  ///< time of its last call at this server; nothing: none since the server started
  bool waiting = false;                ///< for a plan, at this server
  std::optional<ClockSpan> wanted;     ///< clocks of the plan in force; nothing: not known
  std::optional<ClockFigures> clocks;  ///< of its present process; nothing: not reported to this server
  std::optional<double> clocks_at_s;   ///< when they arrived
};
struct RankQuery {
  std::string job;
  int after = -1;  ///< only ranks beyond
  int limit = 0;
  std::string host = {};  ///< only ranks of this host; empty: of all
};
/// Ranks in ascending order.
struct RankPage {
  std::vector<RankView> ranks;
  std::optional<int> next;  ///< the next page is of the ranks after this one; nothing: no more ranks
};

/// The ranks of one job on one host, as far as this server knows them.
struct HostView {
  std::string host;  ///< empty: not known
  int ranks = 0, without_control = 0;
  std::string control_reason = {};  ///< of the first rank that sets no clocks
  std::optional<ClockSpan> wanted = {};
  std::optional<ClockSpan> set = {};                            ///< last clocks set, as reported
  int reporting = 0;                                            ///< ranks whose processes have reported their clocks
  std::optional<ClockFigures> clocks = {};                      ///< sums over these; without `set_mhz`
  std::optional<double> first_heard_s = {}, last_heard_s = {};  ///< of the ranks' last calls, the earliest and latest
  int silent = 0;                                               ///< ranks that have not called this server
};
struct HostQuery {
  std::string job = {};
  std::string prefix = {};                ///< of the host's name
  std::optional<std::string> after = {};  ///< only hosts with greater names
  std::size_t limit = 0;
};
/// Hosts in the order of their names.
struct HostPage {
  std::string job_name;
  std::vector<HostView> hosts;
  bool more = false;
};

/// A plan of one pipeline.
struct TimelineView {
  std::shared_ptr<const CharacterizedPipeline> pipeline;
  int point = 0;
  Seconds switch_latency = {};  ///< planned with
};

// ---- Subscriptions

struct JobEvent {
  std::string job;
  std::int64_t sequence = 0;
  std::string kind;
  double at_s = 0;
  std::string text;       ///< one sentence for people
  std::string by = {};    ///< see author_of() in event_text.h
  std::string name = {};  ///< the job's; only in lists over jobs
};
using SubscriptionId = std::uint64_t;
/// Kind of the last event sent for a removed job; no log contains it.
inline constexpr std::string_view kJobRemoved = "job_removed";
/// Sent to a subscriber after each part of a long past, in no log: the stream ends here; the reader subscribes again
/// from the last sequence.
inline constexpr std::string_view kPartOver = "part_over";

}  // namespace perseus::jobs
