// Messages between client and server, as docs/openapi.json specifies them.
//
// Input:   options and measurements; the server's responses.
// Output:  request bodies; a ClockPlan checked against this rank's clocks.
// Errors:  a sentence with the server's response and the expected one; unknown members are ignored (a newer server),
//          unknown instructions are not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "training/client/options.h"
#include "training/client/plan_follower.h"
#include "training/client/plan_guard.h"
#include "training/client/server_clock.h"

namespace perseus::client {

/// Facts about this rank besides its options.
struct RankFacts {
  std::vector<int> clocks_mhz;  ///< highest first; empty: not known
  std::string accelerator, host;
  bool whole_module = false;  ///< power and energy include the CPU's
  // Learned while training runs.
  double switch_latency_s = 0;                 ///< 0: not known
  double blocking_power_w = 0;                 ///< 0: not known
  std::vector<std::string> instructions = {};  ///< of one iteration; empty: not known
  std::string control = {};         ///< "none", "advice", or "clocks" after one of these; empty: this rank sets clocks
  std::string control_reason = {};  ///< why this rank sets no clocks
  std::string gpu = {};             ///< its model, for a rank that sets no clocks; empty: not known
  std::int64_t epoch = 0;           ///< greater in every later process of the rank
  bool replaces = false;            ///< a restarted process, which takes the rank over regardless of the hosts' clocks
  [[nodiscard]] bool learned_any() const {
    return switch_latency_s > 0 || blocking_power_w > 0 || !instructions.empty();
  }
};

struct MeasuredComputation {
  model::Instruction instruction = model::Instruction::forward;
  double time_s = 0;              ///< 0: not known at its clock
  double energy_j = -1;           ///< negative: not known; 0: not known, like its time
  double begin_s = 0, end_s = 0;  ///< as measured, since the step's begin
};

struct MeasuredIteration {
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;  ///< version followed from beginning to end; 0: none, or the highest clock
  int window = -1;
  bool ends_window = false;  ///< no more iterations of the window follow
  std::string missed;        ///< why it could not be used; it only ends the window then
  double time_s = 0;         ///< from the step's begin to the end of this pipeline's last computation
  double energy_j = -1;      ///< negative: not known
  bool throttled = false;
  int microbatches = 0;                           ///< 0: not known
  std::vector<MeasuredComputation> computations;  ///< of a profiling window, in execution order; else empty
};

/// What this process has seen of its clocks since it started.
struct SeenClocks {
  int set_mhz = 0;                        ///< last clock that the device accepted; 0: none of ours
  std::int64_t failed = 0;                ///< requests that the device or its driver did not carry out
  std::int64_t late = 0;                  ///< computations whose clock came later than plans assume
  std::int64_t throttled_iterations = 0;  ///< iterations during which the device was throttled
};

std::string new_job_body(const ClientOptions& options);
std::string rank_body(const ClientOptions& options, const RankFacts& facts);
/// Consecutive iterations, all of one plan version, and of one window or none. `epoch`: the server's number for this
/// process, as in the functions below; 0: the server gives none. `registered`: microbatches that the job registered
/// with; other numbers are sent.
std::string iterations_body(int rank, std::vector<MeasuredIteration> iterations, std::int64_t epoch = 0,
                            const std::optional<SeenClocks>& clocks = std::nullopt, int registered = 0);

/// A shape of steps that the server does not plan yet, see StepShapes.
struct SeenShape {
  int microbatches = 0;
  bool prevails = false;
  std::string varies;
  std::string action_table;  ///< of such steps; empty: the job's schedule makes it
};
std::string shape_body(const SeenShape& shape, std::int64_t epoch = 0);

/// `degree`: times slower; 1: back to normal.
std::string straggler_body(int rank, double degree);
std::string plan_dropped_body(const DroppedPlan& dropped, std::int64_t epoch = 0);

Result<std::string> read_registered_job(std::string_view body);
/// Null: no plan yet.
Result<std::unique_ptr<ClockPlan>> read_plan_of_registration(std::string_view body, const RankFacts& facts);
/// The server's number for this process from now on; 0: it gives none.
std::int64_t read_registered_epoch(std::string_view body);
/// Null: unchanged.
Result<std::unique_ptr<ClockPlan>> read_plan(std::string_view body, const RankFacts& facts);
/// When the server sent the answer to a registration or a request for a plan; nothing: it does not say it.
std::optional<AnswerTime> read_answer_time(std::string_view body);
/// The server's reason for its refusal; else the begin of the body, or the status of an answer without one.
std::string read_refusal(std::string_view body, int status);

}  // namespace perseus::client
