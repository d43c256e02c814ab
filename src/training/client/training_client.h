// Client of one rank: implements the functions of the C ABI.
//
// It measures every computation, follows the server's plan, has clocks set when the device gets there, and never
// delays training. The training thread's calls are in TrainingCalls; a watching thread here does all work that may
// take time.
//
// Input:   options, then the training thread's calls.
// Output:  clock changes at the device's moment, reports to the server, statistics.
// Errors:  none reach the caller; each becomes a Complaint, and the clock goes to the highest.
// Cost:    hot calls: docs/measurements/client.md; two threads of its own, asleep most of the time.
// Threads: calls() see there; the rest any.
// Source:  paper section 5; docs/decisions/0030-clocks-at-device-time.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "training/client/background_thread.h"
#include "training/client/client_status.h"
#include "training/client/complaints.h"
#include "training/client/device_positions.h"
#include "training/client/iteration_meter.h"
#include "training/client/job_messages.h"
#include "training/client/learned_facts.h"
#include "training/client/options.h"
#include "training/client/rank_budget.h"
#include "training/client/session.h"
#include "training/client/shape_guards.h"
#include "training/client/step_shapes.h"
#include "training/client/straggler_report.h"
#include "training/client/training_calls.h"
#include "training/clock_control/clock_controller.h"
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
  /// Gives the clock back, informs the server, stops logging. False: a thread of this object hangs in a driver, so it
  /// must never be destroyed.
  bool stop();

  [[nodiscard]] TrainingCalls& calls() { return calls_; }
  [[nodiscard]] const char* job() const { return job_.load(std::memory_order_acquire); }
  void statistics(perseus_statistics& statistics);
  /// See perseus_step_table().
  void add_table(int microbatches, std::string action_table);
  [[nodiscard]] std::string status();

 private:
  // The watching thread.
  void watch(const std::stop_token& stop);
  bool open(const std::stop_token& stop);
  void end_control();
  void open_device(const std::stop_token& stop);
  void open_session();
  [[nodiscard]] RankGpu rank_gpu() const;
  void measure(double now_s, bool all);
  void take_applied_clocks();
  bool take_step_of_device(const Step& step, double now_s, bool all);
  void take_step(const Step& step, double now_s);
  void take_whole_step(const Step& step, double now_s);
  [[nodiscard]] bool is_mixed(const Step& step) const;
  void end_guarded(const Step& step);
  void guard(const Step& step);
  /// The device runs at another clock than the one that was set, and gives no reason.
  [[nodiscard]] bool off_clock() const { return device_clock_.other.value() != 0 && device_clock_.limited_by == 0; }
  void look_at_shape(const Step& step, double now_s);
  void act_on_guard(const Step& step);
  void take_plan(std::unique_ptr<ClockPlan> plan);
  [[nodiscard]] bool follows_plan() const;
  void hold_as_needed();
  [[nodiscard]] double boundary_to_clock_s() const;
  void send_news();
  void look_after(double now_s);
  void look_after_plan();
  void look_after_control();
  void look_after_progress();
  /// Steps that were lost, or calls that were missed.
  struct RisingCount {
    std::int64_t count = 0, finished = 0;  ///< finished: iterations when it last rose
  };
  void look_after_count(RisingCount& known, std::int64_t count, Cause cause, const char* wrong, const char* gone);
  void look_after_budget(double now_s);
  void look_after_clock(double now_s);
  [[nodiscard]] bool device_follows(double now_s) const;

  // The session's threads.
  [[nodiscard]] SeenClocks seen_clocks() const;

  // Any thread.
  [[nodiscard]] int state_now(bool opened) const;
  [[nodiscard]] std::string_view why_ceiling(const RankBudget::Now& budget);

  ClientOptions options_;
  Complaints complaints_;
  std::unique_ptr<clock_control::ClockController> control_;
  TrainingCalls calls_;  ///< after control_: a device writes into its memory
  ShapeGuards guard_;
  StepShapes shapes_;
  RankBudget budget_;
  std::mutex holding_;  ///< guards the next line and serializes hold_maximum()
  bool server_holds_ = false;
  BackgroundThread watching_;
  bool left_behind_ = false;  ///< a thread still runs in this object
  std::mutex mutex_;          ///< guards the next members, and control_, until opened_; then they are constant
  std::condition_variable changed_;
  bool opened_ = false;
  LastStep last_step_;          ///< guarded after opened_, too
  device::CudaView cuda_view_;  ///< of the thread that called start()
  RankFacts facts_;
  std::string no_control_;   ///< why there is no control_
  Megahertz locked_before_;  ///< see RankDevice
  std::unique_ptr<Session> session_;
  std::deque<std::string> jobs_;  ///< returned ids stay valid
  std::atomic<const char*> job_{""};
  std::map<int, std::string> tables_;  ///< action tables by microbatches; guarded by mutex_ after opened_, too

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
  StragglerReport straggler_;
  clock_control::DeviceClock device_clock_, told_clock_;  ///< as last seen; as last complained about
  double foreign_s_ = 0, limited_since_s_ = 0;  ///< when it was foreign last; since when it is limited; 0: never, not
  double helper_since_s_ = 0;                   ///< when helper_ was first seen
  std::int64_t applied_before_ = 0;             ///< clock changes, until then
  std::int64_t told_misfit_ = 0;
  std::int64_t helper_ = 0;  ///< number of the helper that sets clocks, as last seen: the first, second, ...; 0: none
                             ///< does
  RisingCount lost_steps_, missed_calls_;
  LearnedFacts learned_;
  double next_learned_s_ = 0;
  double next_latency_s_ = 0;
  /// When a power budget kept the clock below what was requested, ns on the host's clock; the last may not have ended
  /// (0).
  struct LimitedTime {
    std::int64_t from_ns = 0, to_ns = 0;
  };
  std::deque<LimitedTime> limited_;
  std::uint64_t applied_read_ = 0;  ///< clocks that the device accepted, read from control_
  DevicePositions positions_;       ///< reached_to_call(): any thread's

  std::atomic<std::int64_t> plans_dropped_{0}, throttled_iterations_{0};
};

}  // namespace perseus::client
