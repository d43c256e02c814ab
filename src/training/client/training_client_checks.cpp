// What the watching thread of a training client checks periodically, and the complaints about it, which the training
// thread must not log itself.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "training/client/client_status.h"
#include "training/client/cuda_driver.h"
#include "training/client/training_client.h"

namespace perseus::client {
namespace {

constexpr double kLatencyInterval_s = 0.25;
constexpr std::int64_t kStepsWithoutLoss =
    4 * TrainingCalls::kKeptSteps;  ///< until the complaint about lost records is cleared

constexpr double kTrusted_s = 60;   ///< a helper after one that gave the clock up
constexpr double kForeign_s = 120;  ///< without a change by another process
constexpr double kLimited_s = 1;    ///< until a limit is a complaint

std::string reasons_of(std::uint32_t limited_by) {
  std::string reasons;
  for (const auto& [bit, words] :
       {std::pair{clock_control::kLimitedByPowerCap, "its power cap"}, std::pair{clock_control::kLimitedByHeat, "heat"},
        std::pair{clock_control::kLimitedByPowerBrake, "a power brake or hardware slowdown"},
        std::pair{clock_control::kLimitedUnexplained, "the GPU gives no reason"}}) {
    if ((limited_by & bit) != 0) reasons += (reasons.empty() ? "" : ", ") + std::string(words);
  }
  return reasons;
}

}  // namespace

void TrainingClient::look_after(double now_s) {
  if (session_) session_->keep_running();
  complaints_.remind();
  look_after_plan();
  look_after_budget(now_s);
  if (control_) {
    if (now_s >= next_latency_s_) {
      const SwitchLatency latency = switch_latency_of(control_->statistics());
      meter_->switch_latency(latency.seconds, latency.stddev_s);
      next_latency_s_ = now_s + kLatencyInterval_s;
    }
    look_after_control();
    look_after_clock(now_s);
    look_after_progress();
    late_clocks_.judge(meter_->facts().late, complaints_);
  }
  look_after_count(lost_steps_, calls_.recorder().lost_steps(), Cause::records,
                   "iterations end faster than the client records them; some are not recorded",
                   "iterations are all recorded again");
  look_after_count(
      missed_calls_, calls_.missed_calls(), Cause::threads,
      "several threads call begin, end, set_speed or steps at once: a call beside another one does nothing, "
      "and its iteration is not measured; call them one at a time",
      "calls come one at a time again");
}

/// Checks whether the plan fits the computations that run.
void TrainingClient::look_after_plan() {
  const PlanFollower& follower = calls_.follower();
  const std::int64_t misfit = follower.misfit_version();
  if (misfit == told_misfit_) return;
  told_misfit_ = misfit;
  if (misfit == 0) {
    complaints_.clear(Cause::plan, "the plan fits what this rank runs");
    return;
  }
  const int ran = follower.misfit_instruction();
  complaints_.raise(Cause::plan, fmt::format("plan {} does not fit what this rank runs: computation {} is {}; the "
                                             "highest clock until a plan fits",
                                             misfit, follower.misfit_position() + 1,
                                             ran < 0 ? "missing" : name_of(static_cast<model::Instruction>(ran))));
}

/// Checks whether the plan lease of a power budget has ended. The helper limits the clock without this thread.
void TrainingClient::look_after_budget(double now_s) {
  const RankBudget::Now budget = budget_.now(now_s);
  if (budget.ceiling_mhz != 0) hold_as_needed();
  if (budget.fallen) {
    complaints_.raise(Cause::budget, fmt::format("a limit has fallen as announced, and no plan has come since: the "
                                                 "ceiling of the power budget, {} MHz, until the server answers",
                                                 budget.ceiling_mhz));
  } else if (budget.expired()) {
    complaints_.raise(Cause::budget,
                      fmt::format("no answer about the plan for {:.4g} s: the ceiling of the power budget, {} "
                                  "MHz, until the server answers",
                                  budget.lease_s, budget.ceiling_mhz));
  } else {
    complaints_.clear(Cause::budget, budget.ceiling_mhz == 0 ? "the power budget has ended"
                                                             : "the server answers again: its plan is in force");
  }
}

/// Complains whenever the count has risen, until it has stayed the same for many steps.
void TrainingClient::look_after_count(RisingCount& known, std::int64_t count, Cause cause, const char* wrong,
                                      const char* gone) {
  const std::int64_t finished = calls_.finished_iterations();
  if (std::exchange(known.count, count) != count) {
    known.finished = finished;
    complaints_.raise(cause, wrong);
  } else if (finished - known.finished > kStepsWithoutLoss) {
    complaints_.clear(cause, gone);
  }
}

/// Checks whether the device reports its position, and complains if not.
void TrainingClient::look_after_progress() {
  const std::optional<ClockMoment> moment = calls_.clock_moment();
  if (moment == ClockMoment::none) {
    complaints_.raise(
        Cause::device_time,
        calls_.events() == nullptr
            ? std::string("no clock is set: the GPU computes later than the host calls, at an unknown time; ") +
                  (CudaDriver::hip_here() ? "on AMD GPUs there is no device time: "
                                          : "call perseus_time_with_cuda(), or ") +
                  "set PERSEUS_SYNCHRONOUS if the program waits for its GPU in every computation"
            : "no clock is set: the GPU's position is unknown (" + calls_.progress_fault() + ")");
  } else if (moment) {
    complaints_.clear(Cause::device_time, moment == ClockMoment::device
                                              ? fmt::format("clocks change when the GPU reaches the computation ({})",
                                                            calls_.progress_way())
                                              : "clocks change at the call");
  }
  if (calls_.follower().whole_step()) {
    complaints_.raise(Cause::graph, "steps run without begin and end (captured as CUDA graphs): one clock per step");
  } else {
    complaints_.clear(Cause::graph, "steps run computation by computation");
  }
}

/// A helper that follows one which has given up must work for a while first.
bool TrainingClient::device_follows(double now_s) const {
  return device_clock_.given_up == 0 || now_s - helper_since_s_ >= kTrusted_s;
}

/// Checks whether the device runs at the clocks that are set.
void TrainingClient::look_after_clock(double now_s) {
  const clock_control::DeviceClock clock = device_clock_;
  const clock_control::DeviceClock before = std::exchange(told_clock_, clock);
  if (clock.foreign > before.foreign) {
    foreign_s_ = now_s;
    complaints_.raise_again(
        Cause::foreign_clock,
        fmt::format("another process changed the GPU's clock to {} MHz: it is set again", clock.foreign_clock.value()));
  } else if (now_s - foreign_s_ > kForeign_s) {
    complaints_.clear(Cause::foreign_clock, "no other process changes the GPU's clock any more");
  }
  if (clock.limited_by == 0) {
    limited_since_s_ = 0;
    complaints_.clear(Cause::limited_clock, "the GPU runs at its clocks again");
  } else if (limited_since_s_ == 0) {
    limited_since_s_ = now_s;
  } else if (now_s - limited_since_s_ >= kLimited_s) {
    complaints_.raise(Cause::limited_clock,
                      fmt::format("the GPU runs at {} MHz where {} MHz is set: {}; this rank may slow down the job",
                                  clock.other.value(), clock.set.value(), reasons_of(clock.limited_by)));
  }
}

/// Clock control restarts an ended helper and gives the new one the newest clock. Another refusal by the device is
/// not reported again.
void TrainingClient::look_after_control() {
  const std::int64_t helper = control_->working_helper();
  const std::int64_t before = std::exchange(helper_, helper);
  if (helper != before) {
    helper_since_s_ = host_now_s();
    applied_before_ = control_->statistics().applied;
  }
  if (helper == 0 || (before != 0 && helper != before)) {
    const std::string why = control_->why();
    const double longest_s = options_.helper_restart.most_s;
    complaints_.raise(Cause::clock_control,
                      fmt::format("no clock is set: {}{}", why.empty() ? "perseus-clockd ended" : why,
                                  longest_s > 0 ? fmt::format("; the next try is within {:g} s", longest_s) : ""));
  }
  if (const std::string stuck = control_->left_locked(); !stuck.empty()) {
    complaints_.raise(Cause::stuck_clock, stuck);
  } else {
    complaints_.clear(Cause::stuck_clock, "the clock was given back");
  }
  if (helper == 0 || !complaints_.raised(Cause::clock_control)) return;
  // Changes for later computations are always pending where the host is ahead of the GPU.
  const clock_control::ControlStatistics done = control_->statistics();
  const bool sets = !done.pending || done.applied > applied_before_;
  if (sets && control_->working_helper() == helper) {
    complaints_.clear(Cause::clock_control, fmt::format("clocks are set again, by perseus-clockd {}", helper));
  }
}

}  // namespace perseus::client
