// Events of a job, one value per event, and their JSON text in the store.
//
// Problem: a job must survive a crash, be served by several processes and be observable from outside; its log of
//          events serves all three (docs/decisions/0008).
// Output:  parse_event(format_event(e)) equals e; the store counts them. A member at its default is left out: keep it.
// Errors:  parse_event() names the path, the value and what it expected; an event kind that this version does not
//          know is an error too.
// Cost:    linear in the text.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "server/jobs/power_budget.h"
#include "server/jobs/requests.h"

namespace perseus::jobs {

/// ProfileKnown::by of a profile that the server measured, learned or completed.
inline constexpr std::string_view kByServer = "server";

struct JobRegistered {
  std::string name;
  Degrees degrees;
  bool profile_online = false;
  bool plain_profiling = false;        ///< see ProfilingMode
  std::optional<PipelineShape> shape;  ///< known without a profile
  std::map<std::string, std::string> facts;
  bool detect_stragglers = false;
  std::optional<double> profiling_slowdown_pct = std::nullopt, profiling_worst_slowdown_pct = std::nullopt;
  std::optional<double> switch_latency_s = std::nullopt;  ///< given by the job: overrides profiles and ranks'
                                                          ///< measurements
  Labels labels = {};
  Tier tier = {};  ///< as in RegisterJob, like the next one
  bool tier_bounded = false;
  std::string by = {};  ///< who asked for it, see author_of(); empty: not known. As in the other events of requests
  bool operator==(const JobRegistered&) const = default;
};
struct RankRegistered {
  int rank = 0, dp_rank = 0, pp_rank = 0, tp_rank = 0;
  std::vector<int> clocks_mhz;
  std::string accelerator, host;
  std::optional<double> transfer_latency_s, switch_latency_s;
  std::vector<std::string> instructions;
  std::int64_t epoch = 0;                         ///< as in RegisterRank; greater than before: the rank has restarted
  std::string control = {}, control_reason = {};  ///< as in RegisterRank; empty: the rank sets clocks
  /// The process's own identifier, where the server assigned `epoch`; 0: none.
  std::optional<std::int64_t> process = std::nullopt;
  std::string gpu = {};        ///< as in RegisterRank
  bool keeps_budgets = false;  ///< as in RegisterRank
  bool paces = false;          ///< the same
  bool operator==(const RankRegistered&) const = default;
};
/// What a registered rank measured while it ran; absent members stay as they were.
struct RankMeasured {
  int rank = 0;
  std::optional<double> switch_latency_s, blocking_power_w;
  std::vector<std::string> instructions;
  std::vector<int> clocks_mhz;  ///< of a rank that could set none when it registered
  std::optional<std::string> control = std::nullopt, control_reason = std::nullopt;
  bool operator==(const RankMeasured&) const = default;
};
/// The pipelines (empty: all) run the input in the blob "input/KEY", which is characterized from now on.
struct ProfileKnown {
  std::string input;
  std::string source;  ///< for people: the profile's name, "uploaded", "measured online"
  std::vector<int> pipelines;
  std::string schedule;  ///< for people
  int microbatches = 0;
  std::string text;  ///< quality of a profile measured online
  /// Switch latency to plan with; fixed: ranks' measurements do not change it.
  std::optional<double> switch_latency_s = std::nullopt;
  bool fixed_latency = false;
  std::string by = {};
  std::vector<std::string> doubts = {};  ///< of a client's profile: see planning/model/profile_doubts.h
  bool operator==(const ProfileKnown&) const = default;
};
/// A profile that an earlier job of the same setup learned. The server compares it with this job's first iterations
/// at the highest clock before it uses it (server/profiles/profile_trial.h).
struct ProfileOnTrial {
  ProfileKnown profile;       ///< becomes the job's profile if they agree
  std::string learned;        ///< key of the learned profile
  std::string learned_input;  ///< LearnedProfile::input at the time of reading
  std::string learned_by;     ///< the job that learned it
  bool operator==(const ProfileOnTrial&) const = default;
};
struct TrialEnded {
  bool agreed = false;
  std::string text;  ///< for people: the figures behind the verdict
  bool operator==(const TrialEnded&) const = default;
};
/// These pipelines have no profile: all of them run the windows' clocks, and the ranks of the first one measure.
struct ProfilingStarted {
  std::vector<int> pipelines;
  std::vector<std::vector<int>> clocks_mhz;  ///< per stage, highest first
  /// No rank sets clocks: windows are measured at the clocks that the GPUs have, which count as `clocks_mhz`, one per
  /// stage. SavingModeled follows instead of a profile.
  bool keeps_clocks = false;
  std::string before = {};  ///< input of the profile that is measured again; empty: there was none
  bool operator==(const ProfilingStarted&) const = default;
};
struct WindowHandedOut {
  std::int64_t version = 0;  ///< of the plan, as in PlanDeployed
  int number = 0, iterations = 1;
  bool warm_up = false, confirming = false;
  std::vector<std::vector<int>> clocks_mhz;    ///< per stage rank, per action
  std::string overdue = {};                    ///< results missing from the window before it; empty: all ranks reported
  std::optional<double> uncertainty_pct = {};  ///< see JobView::Profiling; the uncertainty that required this window
  std::string text = {};                       ///< the same as a sentence
  std::int64_t from_iteration = 0;             ///< as in PlanDeployed
  int rest = 0;                                ///< iterations at the highest clock before it
  double slowdown_pct = 0;                     ///< expected
  bool highest = false;                        ///< everything at the highest clock
  int microbatches = 0;                        ///< of its iterations; 0: those that the job registered with
  bool operator==(const WindowHandedOut&) const = default;
};
struct ResultReported {
  int rank = 0, window = 0;
  std::vector<double> iteration_time_s, iteration_energy_j;
  ReportIterations::Breakdown time_s, energy_j;
  std::vector<bool> throttled;
  std::string missed = {};  ///< why nothing was measured; empty: it was
  ReportIterations::Breakdown begin_s = {}, end_s = {};
  bool operator==(const ResultReported&) const = default;
};
/// What a job whose ranks set no clocks would save, if a model of their GPU completes what was measured at one clock
/// (server/profiling/modeled_profile.h). No plan follows from it: the ranks keep the clocks that they have.
struct SavingModeled {
  std::string gpu;                                                ///< as RankRegistered::gpu
  std::optional<double> saving_pct = {}, saving_stddev_pct = {};  ///< nothing: not known; `text` has the reason
  std::string text;                                               ///< one sentence for people
  bool operator==(const SavingModeled&) const = default;
};
/// The measurements do not suffice for planning: the job runs at maximum clock until a client uploads a profile.
struct ProfilingFailed {
  std::string why;
  bool operator==(const ProfilingFailed&) const = default;
};
struct CharacterizationStarted {
  std::vector<std::string> inputs;
  bool operator==(const CharacterizationStarted&) const = default;
};
/// The blob "frontier/KEY" is a frontier of an input: the full one if KEY is the input's, otherwise the quick one,
/// which the full one will follow (server/jobs/pipeline_input.h).
struct Characterized {
  std::string input;  ///< KEY
  int points = 0;
  double t_min_s = 0, t_star_s = 0;
  bool operator==(const Characterized&) const = default;
};
struct CharacterizationFailed {
  std::string input, why;
  bool operator==(const CharacterizationFailed&) const = default;
};
struct StragglerNoticed {
  std::string id;
  StragglerTarget target;
  int pipeline = 0;
  double degree = 1, effective_s = 0;
  bool detected = false;
  std::string by = {};
  bool operator==(const StragglerNoticed&) const = default;
};
struct StragglerTookEffect {
  std::string id;
  bool operator==(const StragglerTookEffect&) const = default;
};
struct StragglerWithdrawn {
  std::string id;
  std::string by = {};
  bool operator==(const StragglerWithdrawn&) const = default;
};
struct PolicySet {
  Policy policy;
  std::string by = {};
  bool operator==(const PolicySet&) const = default;
};
struct PolicyCleared {
  std::string policy;  ///< its kind
  std::string by = {};
  bool operator==(const PolicyCleared&) const = default;
};
/// The job's steps have this shape, besides or in place of the one that it registered with; or no plan can fit them.
struct ShapeSeen {
  int rank = 0;
  int microbatches = 0;
  bool prevails = false;     ///< most steps have this shape
  std::string varies;        ///< so many shapes alternate that no plan can fit: what was seen; empty: plans can fit
  std::string action_table;  ///< of such steps; empty: the job's schedule
  bool operator==(const ShapeSeen&) const = default;
};
/// What steps of a shape run is in the blob "input/KEY", which is characterized from now on: the profile of the input
/// `of`, with that shape.
struct ShapeCompleted {
  int microbatches = 0;
  std::string of;
  std::string input;  ///< KEY; empty: there is none
  std::string why;    ///< why not
  bool operator==(const ShapeCompleted&) const = default;
};
/// An operator gave the job this tier in place of the one before: the team's bounds do not hold for it.
struct TierSet {
  Tier tier;
  std::string by = {};
  bool operator==(const TierSet&) const = default;
};
struct PlanDeployed {
  /// Point per pipeline; -1: maximum clock, since there is no frontier.
  struct Choice {
    std::string input;
    int point = -1;
    bool operator==(const Choice&) const = default;
  };
  std::int64_t version = 0, from_iteration = 0;
  std::vector<Choice> choices;  ///< the distinct choices
  std::vector<int> choice_of;   ///< per pipeline
  std::optional<double> t_straggler_s, t_opt_s;
  std::string reason;
  /// Estimated when it was deployed, of the job's energy at maximum clock, as if every rank could set clocks.
  std::optional<double> saving_pct = {}, saving_stddev_pct = {};
  std::optional<PowerBudget> budget = {};  ///< under the last PowerGranted; nothing: no limit applies
  int shape = 0;                           ///< that `choices` are for: its microbatches; 0: Job::microbatches
  /// The plan of steps of another shape.
  struct OfShape {
    int shape = 0;
    std::vector<Choice> choices;
    std::vector<int> choice_of;
    bool operator==(const OfShape&) const = default;
  };
  std::vector<OfShape> others = {};
  bool operator==(const PlanDeployed&) const = default;
  [[nodiscard]] const Choice& of(int pipeline) const { return choices[choice_of[pipeline]]; }
};
/// Iterations under the plan in force that ranks reported since the last such event.
struct IterationsCounted {
  std::int64_t iterations = 0;
  double saved_j = 0, all_max_energy_j = 0;
  std::int64_t last_iteration = 0;  ///< last iteration included in the count
  bool measured = false;            ///< energies as measured; otherwise estimated
  bool operator==(const IterationsCounted&) const = default;
};
/// A client asked about the job: it is not idle. Written from time to time.
struct JobSeen {
  bool operator==(const JobSeen&) const = default;
};
/// A rank's iterations under the plan were slower than promised, so it switched to its highest clock.
struct PlanDropped {
  int rank = 0;
  std::int64_t version = 0;
  std::string reason;
  double measured_s = 0, promised_s = 0;
  int shape = 0;  ///< of its steps, as PlanDeployed's
  bool operator==(const PlanDropped&) const = default;
};
/// An iteration of the whole job as measured by all ranks' counters: means.
struct EnergyMeasured {
  std::int64_t version = 0;     ///< of the plan that it followed; 0: everything at the highest clock
  std::int64_t iterations = 0;  ///< of the rank with the fewest iterations
  double energy_j = 0, time_s = 0;
  int shape = 0;         ///< of these iterations, as PlanDeployed's
  double least_s = 0;    ///< the shortest one; 0: not known
  double waiting_w = 0;  ///< power of all GPUs while they wait; 0: not known
  double stddev_j = 0;   ///< of energy_j
  bool operator==(const EnergyMeasured&) const = default;
};
/// Reports that name the plan followed and are not counted yet; a server writes them when it stops.
struct ReportsKept {
  /// Consecutive iterations with the same reporting ranks and plan.
  struct Run {
    std::int64_t first = 0;
    std::int64_t version = 0;  ///< of the plan that they followed; 0: no rank with a plan reported; -1: several
                               ///< plans
    bool straggles = false;
    std::vector<int> ranks;          ///< the reporting ranks; empty: all
    std::vector<double> energies_j;  ///< by iteration, the sum over these ranks; < 0: not known
    int shape = 0;                   ///< as PlanDeployed's
    bool operator==(const Run&) const = default;
  };
  std::int64_t closed = -1,
               last_followed = -1;  ///< iterations: reports up to it are not used; the last that followed a plan;
                                    ///< -1: none
  std::vector<int> measure;         ///< ranks that have reported an energy
  std::vector<Run> runs;
  bool operator==(const ReportsKept&) const = default;
};
/// The input keeps its quick frontier, since the full one was not found. Only a new profile restarts planning.
struct RefinementEnded {
  std::string input, why;
  bool operator==(const RefinementEnded&) const = default;
};
struct JobFinished {
  std::string by = {};
  bool operator==(const JobFinished&) const = default;
};
struct JobExpired {
  bool operator==(const JobExpired&) const = default;
};
/// A rank of an expired job requested its plan, registered or reported: the job returns to its previous state.
struct JobRevived {
  bool operator==(const JobRevived&) const = default;
};
/// The limits of the site allow the job this mean power from now on; its next plan keeps to it. Powers are as the
/// job's profile has them: what it really draws is `correction` times as much.
struct PowerGranted {
  std::optional<double> granted_w = std::nullopt;  ///< nothing: no limit applies any more
  double counted_w = 0;  ///< what the job counted as until now: its ranks may still draw it; 0: not known
  double lease_s = 0;    ///< as in PowerBudget
  int ceiling_mhz = 0;
  std::string by = {};
  std::vector<LaterBudget> ahead = {};  ///< as in PowerBudget
  double correction = 1;                ///< the job draws so many times the power of its plans (jobs/drawn_power.h)
  double paced_to_rate = 0;             ///< the grant is below the slowest plan: waits may slow the job to this part of
                                        ///< its full speed; 0: no waits
  bool operator==(const PowerGranted&) const = default;
};
/// Ranks named this version of the plan, or a later one, as the one that they have.
struct VersionHeld {
  std::int64_t version = 0;
  std::vector<int> ranks;  ///< empty: all
  bool operator==(const VersionHeld&) const = default;
};
/// No rank has called for a while, see service/follow_ups.h; or these have not, while others do.
struct JobSilent {
  double since_s = 0;           ///< the last call; of several ranks, the earliest of their last ones
  int ended = 0;                ///< ranks whose process has ended, as far as a server has seen
  std::vector<int> ranks = {};  ///< empty: all
  bool operator==(const JobSilent&) const = default;
};
/// A rank of a silent job has called, or these ranks, which were silent.
struct JobHeard {
  std::vector<int> ranks = {};
  bool operator==(const JobHeard&) const = default;
};
/// An event of a later version of Perseus, which this version does not know. Never written.
struct UnknownEvent {
  std::string kind;
  bool operator==(const UnknownEvent&) const = default;
};

using EventBody =
    std::variant<JobRegistered, RankRegistered, RankMeasured, ProfileKnown, ProfilingStarted, WindowHandedOut,
                 ResultReported, ProfilingFailed, CharacterizationStarted, Characterized, CharacterizationFailed,
                 StragglerNoticed, StragglerTookEffect, StragglerWithdrawn, PolicySet, PolicyCleared, PlanDeployed,
                 IterationsCounted, JobSeen, JobFinished, JobExpired, PlanDropped, EnergyMeasured, ReportsKept,
                 RefinementEnded, JobRevived, ProfileOnTrial, TrialEnded, SavingModeled, PowerGranted, VersionHeld,
                 ShapeSeen, ShapeCompleted, TierSet, JobSilent, JobHeard, UnknownEvent>;

struct Event {
  double at_s = 0;
  EventBody body;
  bool operator==(const Event&) const = default;
};

/// Names of the kinds in the order of EventBody: "job_registered", ...
inline constexpr std::size_t kNumEventKinds = std::variant_size_v<EventBody>;
std::string_view kind_name(std::size_t kind);
inline std::string_view kind_of(const Event& event) { return kind_name(event.body.index()); }

std::string format_event(const Event& event);
/// `name` identifies the log in messages.
Result<Event> parse_event(std::string_view text, const std::string& name);
/// The event, or an UnknownEvent where parse_event() fails: the store's checksum matched, so a later version wrote
/// it.
Event event_in_log(std::string_view text);

// Parts that other formats use too.
std::string format_shape(const PipelineShape& shape);

}  // namespace perseus::jobs
