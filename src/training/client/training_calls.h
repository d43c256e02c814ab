// The calls of the training thread: steps, computations and their clocks; nothing here waits, except for a paced job.
//
// It times every computation, requests the clock that the plan has for the next one, and decides at each step's begin
// when clocks change: at the call, once the device has passed the boundary, or not at all.
//
// Input:   the training thread's calls; plans (PlanFollower); the clock controller, once it works.
// Output:  recorded steps (StepRecorder); clock requests; figures for statistics.
// Errors:  Complaints (cuda); what the training thread must not log itself is returned by a getter.
// Cost:    docs/measurements/client.md.
// Threads: step_begin, step_end, begin, end, set_speed and time_with* one at a time, as the C ABI sees to it; each
//          other function says which.
// Source:  paper section 5; docs/decisions/0030-clocks-at-device-time.md.
#pragma once

#include <perseus/perseus.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "training/client/call_cost.h"
#include "training/client/complaints.h"
#include "training/client/cuda_events.h"
#include "training/client/device_progress.h"
#include "training/client/graph_steps.h"
#include "training/client/options.h"
#include "training/client/pacer.h"
#include "training/client/plan_follower.h"
#include "training/client/step_recorder.h"
#include "training/clock_control/clock_controller.h"

namespace perseus::client {

/// When clocks change within a step.
enum class ClockMoment {
  none,   ///< not known: the highest clock
  host,   ///< at the call: the program waits for its device
  device  ///< when the device has passed the boundary
};

class TrainingCalls {
 public:
  static constexpr std::size_t kKeptSteps = 16;  ///< recorded, until the oldest is released

  /// Both must outlive this object.
  TrainingCalls(const ClientOptions& options, Complaints& complaints);
  TrainingCalls(const TrainingCalls&) = delete;
  TrainingCalls& operator=(const TrainingCalls&) = delete;

  // The training thread.
  /// `microbatches`: of this step; 0 or less: not known.
  void step_begin(bool train, int microbatches = 0);
  void step_end();
  // Hot, so that the compiler puts them on the same few pages: after a computation none of them is in the caches any
  // more, and each page costs some hundred nanoseconds.
  [[gnu::hot]] void begin(model::Instruction instruction, int microbatch, int chunk);
  [[gnu::hot]] void end(model::Instruction instruction);
  [[gnu::hot]] void set_speed(model::Instruction instruction, int microbatch, int chunk);
  /// False: the reason was logged.
  bool time_with_cuda(void* stream);
  void time_with(std::uint64_t (*now_ns)(void*), void* context);

  // One other thread.
  /// Requests clocks from `control` from now on; it must outlive this object or the next call of stop_control().
  void use_control(clock_control::ClockController& control, int highest_mhz);
  /// The oldest steps, until they are released.
  [[nodiscard]] StepRecorder& recorder() { return recorder_; }
  [[nodiscard]] GraphSteps& graphs() { return graphs_; }
  /// The step took that long by the device's own events.
  void step_took(double time_s) { last_iteration_time_s_.store(time_s, std::memory_order_relaxed); }
  /// The GPU passes boundaries, but its position does not arrive: clocks must not wait for it any more.
  void lose_progress() { progress_lost_ = true; }

  // Any thread.
  /// A call of the training thread came while another one was under way, and did nothing.
  void missed_a_call() { missed_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t missed_calls() const { return missed_.load(std::memory_order_relaxed); }
  void stop_control() { usable_control_ = nullptr; }
  /// A plan or a limit has come that holds at once: the training thread's next call takes it, requests its clocks
  /// again, and lifts the cap with this ticket (ClockController::cap(), never 0).
  void take_at_next_call(std::uint32_t ticket) { news_.store(ticket, std::memory_order_release); }
  /// The next call will take it.
  [[nodiscard]] bool has_news() const { return news_.load(std::memory_order_relaxed) != 0; }
  /// Iterations up to this one, as far as they had not ended on the device, may have run under two plans; -1: none.
  [[nodiscard]] std::int64_t mixed_through() const { return mixed_through_.load(std::memory_order_acquire); }
  [[nodiscard]] bool controlled() const { return usable_control_.load() != nullptr; }
  [[nodiscard]] PlanFollower& follower() { return follower_; }
  [[nodiscard]] const PlanFollower& follower() const { return follower_; }
  [[nodiscard]] Pacer& pacer() { return pacer_; }
  /// Null: the host's clock times computations.
  [[nodiscard]] CudaEvents* events() const { return cuda_.load(std::memory_order_acquire); }
  /// Of the last step; none: no clock could be set anyway.
  [[nodiscard]] std::optional<ClockMoment> clock_moment() const;
  /// How the device's progress is known; "": it is not.
  [[nodiscard]] const char* progress_way() const { return way_.load(std::memory_order_acquire); }
  [[nodiscard]] bool progress_lost() const { return progress_lost_.load(std::memory_order_relaxed); }
  /// Why clocks do not change at the device's moment.
  [[nodiscard]] std::string progress_fault() const;
  /// How the moment of a clock change is determined, as one word for the status.
  [[nodiscard]] std::string_view device_time() const;
  [[nodiscard]] std::int64_t finished_iterations() const { return finished_.load(std::memory_order_acquire); }
  [[nodiscard]] double last_iteration_time_s() const { return last_iteration_time_s_.load(std::memory_order_relaxed); }
  /// Kind of the plan in force; none: there is no plan.
  [[nodiscard]] std::optional<ClockPlan::Kind> plan_kind() const;
  /// Iterations, the plan in force and the cost of the calls.
  void statistics(perseus_statistics& statistics) const;

 private:
  [[nodiscard]] std::uint64_t mark() {
    if (cuda_step_) return cuda_.load(std::memory_order_relaxed)->mark();
    return now_ns_ == nullptr ? host_now_ns() : now_ns_(now_context_);
  }
  [[nodiscard]] std::int64_t working_helper() const {
    const clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire);
    return control == nullptr ? 0 : control->working_helper();
  }
  void request(int clock_mhz) {
    if (clock_mhz != 0 && clock_mhz != clock_) request_other(clock_mhz);
  }
  [[gnu::hot]] void request_other(int clock_mhz);
  [[nodiscard]] bool device_is_idle() const;
  void begin_evaluation();
  void drop_step();
  [[nodiscard]] bool seems_run();
  void record_step_begin();
  void record_shape(Step& step) const;
  [[nodiscard]] bool is_comparable(const Step& step) const;
  [[nodiscard]] int forwards() const;
  [[nodiscard]] bool keeps_clocks() const;
  void choose_moment();
  bool open_progress(clock_control::ClockController& control);
  [[gnu::cold]] void take_news(bool in_middle, bool asked_began);
  void note_plan();
  void request_again(clock_control::ClockController& control);
  void queue_again(clock_control::ClockController& control);

  // Used for every computation: in few adjacent cache lines, since none is cached any more when a computation ends. The
  // first fills one line, the two after it begin with one.
  alignas(64) std::atomic<clock_control::ClockController*> usable_control_{nullptr};
  std::uint64_t (*now_ns_)(void*) = nullptr;
  void* now_context_ = nullptr;
  int clock_ = 0;      ///< last requested clock
  int under_way_ = 0;  ///< number of open computations
  std::uint32_t speed_calls_ = 0, begin_calls_ = 0, end_calls_ = 0;
  bool in_step_ = false, train_ = false;
  bool ended_any_ = false;  ///< in this step, a computation that is not of constant time
  bool no_chunks_ = false;  ///< the program gives no chunks
  int microbatches_ = 0;    ///< of this step, as the program gives it; 0: not known
  bool use_cuda_ = false;   ///< from the next step on
  bool cuda_step_ = false;  ///< this one's marks are events
  ClockMoment moment_ = ClockMoment::host;
  std::atomic<std::uint32_t> news_{0};  ///< see take_at_next_call(); 0: nothing
  DeviceProgress* progress_ = nullptr;  ///< of progress_owner_, while it works
  std::uint32_t position_ = 0;          ///< of the last boundary that the device must report
  PlanFollower follower_;
  StepRecorder recorder_;
  std::array<std::array<int, 8>, model::kNumInstructions> counted_{};  ///< microbatches per instruction and chunk

  const ClientOptions& options_;
  Complaints& complaints_;
  std::shared_ptr<const CudaDriver> driver_;
  std::unique_ptr<CudaEvents> cuda_owner_;
  std::unique_ptr<DeviceProgress> progress_owner_;
  void* stream_ = nullptr;
  bool asynchronous_ = false;  ///< the program uses CUDA or HIP, and provided no stream
  std::atomic<CudaEvents*> cuda_{nullptr};

  // Used at a step's ends.
  std::int64_t missed_before_ = 0;  ///< missed_calls() at the last step's end
  std::int64_t step_helper_ = 0;    ///< working_helper() when it began
  std::int64_t iteration_ = 0;
  std::uint64_t step_began_ns_ = 0;
  std::uint64_t iteration_began_ns_ = 0;  ///< the last training step, until it has been paced; 0: none
  double waited_s_ = 0;                   ///< for a pace, since the last step in which something ran
  Pacer pacer_;
  GraphSteps graphs_;
  CallCost speed_cost_, begin_cost_, end_cost_;

  std::atomic<std::int64_t> finished_{0}, missed_{0};
  std::atomic<std::int64_t> mixed_through_{-1};
  std::atomic<int> told_moment_{-1};          ///< a ClockMoment, of the last step; -1: no clock can be set anyway
  std::atomic<const char*> way_{""};          ///< of progress_
  std::atomic<const char*> no_way_{nullptr};  ///< why not: no_progress_, written once, or that no context was current
  std::atomic<bool> progress_lost_{false};
  std::string no_progress_;
  std::atomic<double> last_iteration_time_s_{0};
  std::atomic<double> planned_time_s_{0};
  std::atomic<int> plan_kind_{-1};  ///< ClockPlan::Kind of the plan in force; -1: none
  std::atomic<std::int64_t> plan_from_{0};
};

}  // namespace perseus::client
