// Client session of one rank: registers with the server, waits for plans, and reports iterations while training runs.
//
// Retries with back-off (`least_wait_s` doubling to `most_wait_s`, spread by rank); a rank that the server does not
// know registers again.
//
// Problem: servers restart, respond slowly or wrongly, or disappear; training continues all the same.
// Input:   options, facts about the rank, initial and later, measured iterations.
// Output:  plans through `on_plan`; held(true) after the server was unreachable for `grace_s` (the highest clock is
//          safe, an old plan is not), held(false) when it responds again. Under a power budget (ClockPlan::budget)
//          the lease takes the place of `grace_s`: held(true) only when the job is over.
// Errors:  Complaints, one per cause.
// Cost:    two waiting threads, one persistent connection each.
// Threads: report() any but the training thread; listeners are called from the session's threads, never after stop()
//          has returned.
// Source:  paper section 5, table of the client's API.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "training/client/background_thread.h"
#include "training/client/complaints.h"
#include "training/client/messages.h"
#include "training/client/options.h"
#include "training/client/server_clock.h"

namespace perseus::client {

struct SessionListener {
  std::function<void(const std::string&)> on_job;  ///< its id is known
  std::function<void(const std::string&)> on_registered = {};
  std::function<void(std::unique_ptr<ClockPlan>)> on_plan;
  std::function<void(bool)> on_held;
  std::function<void(const Answered&)> on_answer = {};  ///< in host_now_s(); before on_plan
  std::function<std::int64_t()> iteration;              ///< iteration that training is in
  std::function<SeenClocks()> clocks;                   ///< of this process; empty: not reported
};

class Session {
 public:
  Session(const ClientOptions& options, RankFacts facts, SessionListener listener, Complaints& complaints);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Starts the threads that could not be created before. Do not call concurrently with stop().
  void keep_running();
  /// Waits until the job is known or its registration failed once, at most that long.
  void wait_for_job(double limit_s);
  /// Sent every report_interval_s; profiling windows as soon as they are whole.
  void report(MeasuredIteration iteration);
  /// Newly learned facts about the rank; sent to the server soon, unless they are unchanged.
  void learned(RankFacts facts);
  /// Reports it to the server soon.
  void plan_dropped(DroppedPlan dropped);
  /// The same.
  void shape_seen(SeenShape shape);
  /// This rank is that many times slower than before, 1: no longer; reports it to the server soon.
  void straggles(double degree);
  /// Sends the rest, and reports the end of the job if this rank registered it; within `limit_s`.
  void stop(double limit_s);

  [[nodiscard]] bool reached() const;
  [[nodiscard]] std::int64_t failures() const;
  [[nodiscard]] double cpu_s() const { return asking_.cpu_s() + reporting_.cpu_s(); }

 private:
  struct State;
  std::shared_ptr<State> state_;
  BackgroundThread asking_, reporting_;
};

}  // namespace perseus::client
