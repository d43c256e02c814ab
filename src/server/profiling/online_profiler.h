// Online profiling: chooses the clock of each computation in the next iterations, and evaluates the results.
//
// A *rank* here is a pipeline rank, an index into Schedule::ranks; its tensor- and data-parallel copies are its
// replicas 0 .. n-1, which all run the same clocks. Units: s, J, MHz. A replica reports for itself; the profile is of
// one rank with all its replicas, as in planning/model/profile.h: the time of the slowest, the sum of energies. State
// is a fold over the windows handed out and the results reported, in that order, and nothing else: a restarted server
// calls hand_out() and report() again with its log and reaches the same state; next() depends only on that state.
//
// Problem: a job starts without a profile. Clocks are varied while it trains; the times and energies that ranks
//          report must yield time and energy of every (stage, instruction) at every clock, accurately enough for
//          planning, in few iterations.
// Input:   the job (schedule, supported clocks per stage, replicas, pipeline costs), options; then, repeatedly, a
//          window handed out and the results of its ranks.
// Output:  the next window's clocks in execution order, or that profiling is done and why; a Profile with standard
//          deviations over all supported clocks; the expected energy loss and lateness of the plan made from it.
// Errors:  create() names what is wrong with the job; report() names what is wrong with the whole result (unknown
//          window, lists of the wrong length) and then changes nothing. Single implausible values, throttled ones
//          included, are left out one by one and reported: see Rejection.
// Cost:    report() is linear in its values. next() and uncertainty() plan some twenty times (0.3 s for 8 stages of
//          24 microbatches, see docs/online_profiling.md): keep them off an event loop.
// Threads: one object, one thread at a time; concurrent const calls are safe.
// Source:  paper section 5 (Profiler): one clock after another from the highest, stopping once energy rises: that is
//          ProfilingMode::plain. The adaptive mode is beyond the paper, see docs/online_profiling.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/stop_check.h"
#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/profile.h"
#include "planning/model/schedule.h"
#include "server/profiling/link_times.h"

namespace perseus::profiling {

enum class ProfilingMode { adaptive, plain };

struct ProfilingJob {
  model::Schedule schedule;
  std::vector<std::vector<Megahertz>> clocks;  ///< per stage: the supported ones, highest first; never empty
  std::vector<int> replicas;                   ///< per pipeline rank, >= 1; empty: all 1
  std::optional<Watts> blocking_power;         ///< of one accelerator; default: estimated from the results
  model::TransferLatency transfer_latency;
  bool blocking_transfers = false;
  bool serial_transfers = false;
  bool measure_links = false;  ///< use the links that ranks measure in place of both
  Seconds switch_latency;      ///< until a requested clock arrives; 0: not known
};

struct ProfilingOptions {
  ProfilingMode mode = ProfilingMode::adaptive;
  int iterations_per_window = 1;  ///< >= 1; plain: the paper's "about five"
  int warm_up_windows = 0;        ///< at the maximum clock, not counted; plain: at least two, as published
  int max_iterations = 60;        ///< adaptive gives up refining after so many
  double tolerance_pct = 0.15;    ///< adaptive is done when the plan's expected loss is lower, with 90 % confidence;
                                  ///< higher in proportion where a single value varies by more than 1 %
  std::vector<double> slowdowns = {1.0, 1.2};  ///< ... at these multiples of the time at the highest clock
  double mean_slowdown_pct = 5;     ///< adaptive: of all iterations while profiling, those between windows included
  double worst_slowdown_pct = 30;   ///< adaptive: of a single iteration
  double lowest_clock_share = 0.0;  ///< clocks below this share of a stage's highest are never tried nor planned
  std::uint64_t seed = 1;
};

/// A window to run: clocks[rank][i] is the clock of the i-th action of Schedule::ranks[rank], the same in all
/// `iterations`; 0 means "leave the clock" (constant-time instructions).
struct ProfilingWindow {
  int number = 0;  ///< from 0, in the order handed out
  int iterations = 1;
  bool warm_up = false;     ///< results are checked and not used
  bool confirming = false;  ///< runs the plan itself: the last test before profiling ends
  std::vector<std::vector<Megahertz>> clocks;
  int rest = 0;             ///< iterations at the highest clock that must precede it
  double slowdown_pct = 0;  ///< expected, against everything at the highest clock
};

/// Expected loss of the plan made from the estimate, over the profiles that the results leave possible.
struct PlanUncertainty {
  struct At {
    double slowdown = 1;           ///< deadline as a multiple of the time with everything at the highest clock
    double expected_loss_pct = 0;  ///< energy above that of the plan made with the true profile
    double loss_bound_pct = 0;     ///< upper bound with 90 % confidence, 83 % in large jobs
    double late_bound_pct = 0;     ///< likewise: iteration time beyond the deadline
  };
  std::vector<At> at;  ///< as ProfilingOptions::slowdowns; empty: not known yet
  std::string text;    ///< one sentence for people
  /// Of a profile's largest loss or lateness at any of these, the upper bound with that confidence.
  std::optional<double> worst_bound_pct = std::nullopt;
};

struct ProfilingDone {
  std::string why;  ///< one sentence for people
};

struct ProfilingStep {
  std::variant<ProfilingWindow, ProfilingDone> step;
  PlanUncertainty doubt;  ///< with the results so far; nothing in plain mode
  [[nodiscard]] const ProfilingWindow* window() const { return std::get_if<ProfilingWindow>(&step); }
  [[nodiscard]] const ProfilingDone* done() const { return std::get_if<ProfilingDone>(&step); }
};

/// Measurements of one replica of a rank in one window, as in the Zeus protocol: per instruction name a list per
/// iteration of the values of its occurrences in execution order. The client chooses the number of iterations: 1 to
/// 1000, all under the window's clocks. Instructions without a clock are optional. An energy breakdown that is
/// missing, empty, or has empty lists means that only whole iterations were measured.
struct RankResult {
  using Breakdown = std::map<std::string, std::vector<std::vector<double>>>;
  int rank = 0;
  int replica = 0;
  int window = 0;
  std::vector<Seconds> iteration_time;   ///< per iteration
  std::vector<Joules> iteration_energy;  ///< per iteration
  Breakdown time_s;                      ///< must have every instruction of the rank that has a clock
  Breakdown energy_j;
  std::vector<bool> throttled;  ///< per iteration: the device reports that it did not hold its clock; empty: not known
  /// When each occurrence began and ended, s, by any clock of the rank; empty: not known.
  Breakdown begin_s = {}, end_s = {};
};

/// A value that was left out, with the reason.
struct Rejection {
  int rank = 0;
  int replica = 0;
  int window = 0;
  int iteration = 0;        ///< within the window
  std::string instruction;  ///< empty: the iteration as a whole
  int occurrence = -1;      ///< -1: all of them
  double value = 0;
  std::string message;  ///< for people: rank, iteration, value, and what was expected
};

/// Origin of a measurement of the profile.
enum class ProfileSource : unsigned char {
  measured,      ///< samples of that stage, instruction and clock, smoothed by the model
  interpolated,  ///< no samples at that clock, but at higher ones, and at lower ones of this stage or another
  extrapolated,  ///< below (or above) all measured clocks: not for planning
};

struct ProfileEstimate {
  model::Profile profile;                           ///< all supported clocks; stddevs are those of the estimate
  std::vector<std::vector<ProfileSource>> sources;  ///< as profile.entries and their measurements
  Watts blocking_power;                             ///< as given, or as estimated
  Watts blocking_power_stddev;                      ///< 0 if it was given
  bool energies_by_iteration = false;               ///< energies come from regression over whole iterations
  double time_noise_pct = 0;                        ///< spread of a single time, as observed
  double energy_noise_pct = 0;                      ///< likewise of an energy (of an iteration's if by iteration)
  std::optional<MeasuredLinks> links;               ///< nothing: not requested, or not known
};

class OnlineProfiler {
 public:
  static Result<OnlineProfiler> create(ProfilingJob job, ProfilingOptions options = {});
  OnlineProfiler(OnlineProfiler&&) noexcept;
  OnlineProfiler& operator=(OnlineProfiler&&) noexcept;
  ~OnlineProfiler();

  /// The next step, given all windows handed out and results reported; changes nothing. Call it when
  /// window_complete().
  [[nodiscard]] ProfilingStep next() const;
  /// The same; nothing if `check` stopped the search.
  [[nodiscard]] std::optional<ProfilingStep> next(StopCheck& check) const;
  /// Records that the window now runs. Accepts any window of the right shape with the next number, so that a log of
  /// another version can be replayed. Errors: a wrong number or shape.
  Status hand_out(ProfilingWindow window);
  /// True before the first window, and when every replica of every rank has reported the last one.
  [[nodiscard]] bool window_complete() const;
  /// The error that report() would return for the result as a whole.
  [[nodiscard]] Status check(const RankResult& result) const;
  /// Records that the replica ran the window without a measurement. Error: as report().
  Status miss(int rank, int replica, int window);
  /// Adds a result of any window handed out. Error: the result as a whole is invalid, or was already reported.
  Result<std::vector<Rejection>> report(const RankResult& result);

  /// The next windows are of that schedule, which has the same computations, as often as it likes: times and energies
  /// of computations stay known, those of whole iterations do not. Results of windows before it are no longer taken.
  /// Error: other stages, instructions or ranks.
  Status change_schedule(model::Schedule schedule);

  /// The links as measured by the ranks; nothing: not requested, or not known.
  [[nodiscard]] std::optional<MeasuredLinks> links() const;
  [[nodiscard]] int windows_handed_out() const;
  [[nodiscard]] int iterations_handed_out() const;
  /// Needs at least one usable result of every (stage, instruction); the error names one that has none.
  [[nodiscard]] Result<ProfileEstimate> estimate() const;
  /// Same requirements as estimate().
  [[nodiscard]] Result<PlanUncertainty> uncertainty() const;

 private:
  struct State;
  explicit OnlineProfiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perseus::profiling
