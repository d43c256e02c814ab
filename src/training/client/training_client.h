// Client of one rank: implements the functions of the C ABI.
//
// It measures every computation, follows the server's plan, has clocks set when the device gets there, and never
// delays training.
//
// Input:   options, then the training thread's calls.
// Output:  clock changes at the device's moment, reports to the server, statistics.
// Errors:  none reach the caller; each becomes a Complaint, and the clock goes to the highest.
// Cost:    hot calls: docs/measurements/client.md; two threads of its own, asleep most of the time.
// Threads: step, begin, end, set_speed and time_with one thread; the rest any.
// Source:  paper section 5; docs/decisions/0030-clocks-at-device-time.md.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "training/client/background_thread.h"
#include "training/client/call_cost.h"
#include "training/client/complaints.h"
#include "training/client/cuda_events.h"
#include "training/client/device_progress.h"
#include "training/client/iteration_meter.h"
#include "training/client/late_clock_complaint.h"
#include "training/client/options.h"
#include "training/client/plan_follower.h"
#include "training/client/plan_guard.h"
#include "training/client/session.h"
#include "training/client/step_recorder.h"
#include "training/clock_control/clock_controller.h"
#include "training/clock_control/latency_histogram.h"
#include "training/device/gpu.h"
#include "training/device/visible_devices.h"

namespace perseus::client {

class TrainingClient {
 public:
  explicit TrainingClient(ClientOptions options);
  TrainingClient(const TrainingClient&) = delete;
  TrainingClient& operator=(const TrainingClient&) = delete;
  ~TrainingClient();

  /// Opens the device, starts the helper, registers: on a separate thread, and waits for it at most start_limit_s.
  void start(const std::vector<std::string>& remarks);
  /// Gives the clock back, informs the server, stops logging. False: another thread may still use this object (one
  /// hangs in a driver, or the training thread is another thread or within a step), so it must never be destroyed.
  bool stop();

  void step_begin(bool train);
  void step_end();
  // Hot, so that the compiler puts them on the same few pages: after a computation none of them is in the caches any
  // more, and each page costs some hundred nanoseconds.
  [[gnu::hot]] void begin(model::Instruction instruction, int microbatch, int chunk);
  [[gnu::hot]] void end(model::Instruction instruction);
  [[gnu::hot]] void set_speed(model::Instruction instruction, int microbatch, int chunk);
  /// False: the reason was logged.
  bool time_with_cuda(void* stream);
  void time_with(std::uint64_t (*now_ns)(void*), void* context);

  [[nodiscard]] const char* job() const { return job_.load(std::memory_order_acquire); }
  void statistics(perseus_statistics& statistics);
  [[nodiscard]] std::string status();

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
  /// When clocks change within a step.
  enum class Moment {
    none,   ///< not known: the highest clock
    host,   ///< at the call: the program waits for its device
    device  ///< when the device has passed the boundary
  };
  void choose_moment();
  bool open_progress(clock_control::ClockController& control);

  // The watching thread.
  void watch_progress();
  void check_position(const Step& step, double now_s);
  void measure_reached(const Step& step);
  [[nodiscard]] std::string progress_fault() const;
  [[nodiscard]] std::string_view device_time() const;

  void watch(const std::stop_token& stop);
  bool open(const std::stop_token& stop);
  void end_control();
  void open_device(const std::stop_token& stop);
  void choose_gpu();
  void measure_switch_latency(const std::stop_token& stop);
  [[nodiscard]] double boundary_to_clock_s() const;
  void open_session();
  void measure(double now_s, bool all);
  void guard(const Step& step);
  void hold_as_needed();
  void tell_what_was_learnt();
  bool control_changed();
  void look_after(double now_s);
  void look_after_control();

  // Used by the training thread for every computation: in few adjacent cache lines, since none is cached any more
  // when a computation ends. The first fills one line, the two after it begin with one.
  alignas(64) std::atomic<clock_control::ClockController*> usable_control_{nullptr};
  std::uint64_t (*now_ns_)(void*) = nullptr;
  void* now_context_ = nullptr;
  int clock_ = 0;      ///< last requested clock
  int under_way_ = 0;  ///< number of open computations
  std::uint32_t speed_calls_ = 0, begin_calls_ = 0, end_calls_ = 0;
  bool in_step_ = false, train_ = false;
  bool use_cuda_ = false;   ///< from the next step on
  bool cuda_step_ = false;  ///< this one's marks are events
  Moment moment_ = Moment::host;
  DeviceProgress* progress_ = nullptr;  ///< of progress_owner_, while it works
  std::uint32_t position_ = 0;          ///< of the last boundary that the device must report
  PlanFollower follower_;
  StepRecorder recorder_;
  std::array<std::array<int, 8>, model::kNumInstructions> counted_{};  ///< microbatches per instruction and chunk

  ClientOptions options_;
  Complaints complaints_;
  PlanGuard guard_;
  std::mutex holding_;  ///< guards the next line and serializes hold_maximum()
  bool server_holds_ = false;
  BackgroundThread watching_;
  bool left_behind_ = false;  ///< a thread still runs in this object
  std::mutex mutex_;          ///< guards the next members until opened_; then they are constant
  std::condition_variable changed_;
  bool opened_ = false;
  device::CudaView cuda_view_;  ///< of the thread that called start()
  std::string selector_;
  RankFacts facts_;
  std::string no_control_;  ///< why there is no control_
  std::unique_ptr<clock_control::ClockController> control_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<const CudaDriver> driver_;
  std::unique_ptr<CudaEvents> cuda_owner_;
  std::unique_ptr<DeviceProgress> progress_owner_;
  void* stream_ = nullptr;
  bool asynchronous_ = false;  ///< the program uses CUDA or HIP, and provided no stream
  std::atomic<CudaEvents*> cuda_{nullptr};
  std::deque<std::string> jobs_;  ///< returned ids stay valid
  std::atomic<const char*> job_{""};

  // Used by the watching thread.
  /// The last step, until the next one begins: then its time is known.
  struct Guarded {
    std::int64_t number = 0;
    std::uint64_t begin_mark = 0;
    GuardedIteration iteration;
  };
  std::optional<Guarded> guarded_;
  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<IterationMeter> meter_;  ///< facts(): any thread's, once opened_
  LateClockComplaint late_clocks_;
  std::int64_t dropped_version_ = 0;  ///< last plan that the guard dropped; 0: none
  std::int64_t told_misfit_ = 0;
  std::int64_t helper_ = 0;  ///< number of the helper that sets clocks, as last seen: the first, second, ...; 0: none
                             ///< does
  std::int64_t lost_steps_ = 0, finished_at_loss_ = 0;
  RankFacts learnt_;  ///< as the server knows them
  bool told_instructions_ = false;
  double control_lost_s_ = 0;  ///< since when no helper sets clocks; 0: one does
  double next_learnt_s_ = 0;
  double next_latency_s_ = 0;
  double behind_since_s_ = 0;       ///< since when the position is behind a step that the GPU has completed; 0: it is
                                    ///< not
  std::uint64_t applied_read_ = 0;  ///< clocks that the device accepted, read from control_
  std::deque<clock_control::AppliedClock> reached_;  ///< at device time, of steps not processed yet
  clock_control::LatencyHistogram reached_to_call_;  ///< from the device passing the boundary to the helper's call

  // Used by the training thread, at a step's ends.
  std::atomic<std::uint64_t> stepping_thread_{0};  ///< thread that began the last step; 0: none yet
  std::int64_t step_helper_ = 0;                   ///< working_helper() when it began
  std::int64_t iteration_ = 0;
  std::uint64_t step_began_ns_ = 0;
  CallCost speed_cost_, begin_cost_, end_cost_;

  std::atomic<std::int64_t> finished_{0};
  std::atomic<int> told_moment_{-1};          ///< a Moment, of the last step; -1: no clock can be set anyway
  std::atomic<const char*> way_{""};          ///< of progress_
  std::atomic<const char*> no_way_{nullptr};  ///< why not: no_progress_, written once
  std::atomic<bool> progress_lost_{false};    ///< the GPU passes boundaries, but its position does not arrive
  std::string no_progress_;
  std::atomic<double> last_iteration_time_s_{0};
  std::atomic<double> planned_time_s_{0};
  std::atomic<int> plan_kind_{-1};  ///< ClockPlan::Kind of the plan in force; -1: none
  std::atomic<std::int64_t> plan_from_{0};
  std::atomic<std::int64_t> plans_dropped_{0};
};

}  // namespace perseus::client
