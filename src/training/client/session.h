// One rank's talk with the server: registers, waits for plans, reports iterations, for as long as training runs.
//
// Problem: servers are restarted, slow, wrong or gone; training goes on all the same. Input: options, what is known of
// the rank, then and later, measured iterations. Output: plans through `on_plan`; held(true) when the server was out of
// reach for `grace_s` (the highest clock is safe, an old plan is not), held(false) when it answers again. Asks again
// with back-off (`least_wait_s` doubling to `most_wait_s`, spread by rank); a rank that the server does not know
// registers again. Errors: Complaints, one per cause. Cost: two threads that wait, a kept connection each. Threads:
// report() any but the training thread; listeners are called from the session's threads, never after stop() has
// returned. Source: paper section 5, table of the client's API.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "training/client/background_thread.h"
#include "training/client/complaints.h"
#include "training/client/messages.h"
#include "training/client/options.h"

namespace perseus::client {

struct SessionListener {
  std::function<void(const std::string&)> on_job;
  std::function<void(std::unique_ptr<ClockPlan>)> on_plan;
  std::function<void(bool)> on_held;
  std::function<std::int64_t()> iteration;  ///< that training is in
};

class Session {
 public:
  Session(const ClientOptions& options, RankFacts facts, SessionListener listener, Complaints& complaints);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Starts the threads that could not be made before. Not beside stop().
  void keep_running();
  /// Until the job is known or registering it failed once, at most so long.
  void wait_for_job(double limit_s);
  /// Sent every report_interval_s; profiling windows as soon as they are whole.
  void report(MeasuredIteration iteration);
  /// What is known of the rank by now: said to the server soon, unless it knows.
  void learnt(RankFacts facts);
  /// Tells the server soon.
  void plan_dropped(DroppedPlan dropped);
  /// Sends what is left, says that the job has ended if this rank registered it; within `limit_s`.
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
