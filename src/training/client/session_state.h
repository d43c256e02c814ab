// State of a Session, shared with its two threads.
//
// Implemented in session.cpp (requests and their outcome), session_plans.cpp (the thread that registers and waits for
// plans) and session_reports.cpp (the thread that reports iterations and facts).
//
// Errors:  Complaints, one per cause.
// Threads: `mutex` guards the members that its comment says; the others have one thread, or are constant. tell() holds
//          another lock than that while it calls listeners and the log, which may call the session.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "training/client/report_queue.h"
#include "training/client/session.h"

namespace perseus::client {

/// The only conflict for requests of plans and reports of iterations. For a registration a conflict can also mean
/// that the server knows another process as this rank.
constexpr int kJobOverStatus = 409;

constexpr std::uint64_t kMostAnswerBytes = std::uint64_t{1} << 24U;  ///< a plan has some 10 bytes for a computation

/// Shared with the threads, which may outlive the Session by the time of a name look-up.
struct Session::State {
  ClientOptions options;
  SessionTiming timing;
  http::HttpPeer peer;
  std::string shown_url;                                       ///< the server's, without credentials
  std::optional<http::HttpConnection> for_plans, for_reports;  ///< each used by its own thread
  bool own_job = false;
  std::string job_key;     ///< of the request that registers the job, the same for every retry
  std::int64_t epoch = 0;  ///< time of day: greater in a later process
  bool restarted = false;  ///< by torch elastic; until the server knows this process

  struct Outside {
    SessionListener listener;
    Complaints& complaints;
  };
  std::recursive_mutex outside_mutex;  ///< guards `outside`, also while that is called; locked before `mutex`
  std::shared_ptr<Outside> outside;    ///< null: stopped

  std::mutex mutex;  ///< guards all members below
  std::condition_variable_any changed;
  RankFacts facts;
  bool facts_are_news = false;         ///< they are new to the server
  std::optional<DroppedPlan> dropped;  ///< that the server does not know yet
  std::optional<double> degree;        ///< as a straggler, that the server does not know yet
  std::deque<SeenShape> shapes;        ///< the same
  std::string job;
  bool tried = false;  ///< registration was tried
  bool rank_known = false;
  std::atomic<bool> was_known{false};  ///< in this job, to the server
  std::optional<double> silent_since_s;
  bool held = false;
  bool leased = false;                    ///< the last plan came with a power budget
  std::atomic<std::int64_t> known_as{0};  ///< epoch that the server assigned to this process; 0: none yet
  double clocks_due_s = 0;                ///< the reporting thread's: when SeenClocks are sent again
  ReportQueue iterations;
  std::vector<MeasuredIteration> unsent;  ///< the reporting thread's: the server has not confirmed them yet
  bool window_ready = false;              ///< `iterations` contains a whole window
  bool over = false;                      ///< the server reports the job as ended: no more requests

  std::atomic<bool> reached{false};
  std::atomic<std::int64_t> failures{0};

  void ask_for_plans(const std::stop_token& stop);
  void send_reports(const std::stop_token& stop);

  bool register_job(const std::stop_token& stop);
  [[nodiscard]] http::HttpCall new_job_call() const;
  bool register_rank(const std::stop_token& stop, std::int64_t& have);
  bool tell_facts(const std::stop_token& stop);
  bool tell_dropped(const std::stop_token& stop);
  bool tell_degree(const std::stop_token& stop);
  bool tell_shapes(const std::stop_token& stop);
  bool wait_for_plan(const std::stop_token& stop, std::int64_t& have);
  /// Null: no plan yet, or no new one.
  void take_plan(std::unique_ptr<ClockPlan> plan, std::int64_t& have);
  void plan_is_valid(double asked_s, double sent_by_s, const std::string& answer);
  std::optional<std::string> end_of_job(const std::stop_token& stop);
  [[nodiscard]] http::HttpCall plan_call(std::int64_t have, std::int64_t iteration, double wait_s) const;
  std::vector<MeasuredIteration> next_report(bool all);
  bool send(const std::vector<MeasuredIteration>& report, const std::stop_token& stop);

  std::optional<http::HttpReply> call(http::HttpConnection& by, const http::HttpCall& what, double limit_s,
                                      const std::stop_token& stop);
  void failed(Cause cause, const std::string& why);
  void answered();
  void answers_again(Outside& to);
  void job_is_over(const std::string& how);
  void complain(Cause cause, const std::string& what) {
    tell([&](Outside& to) { to.complaints.raise(cause, what); });
  }
  [[nodiscard]] std::string job_now() {
    const std::lock_guard lock(mutex);
    return job;
  }
  [[nodiscard]] RankFacts facts_now() {
    const std::lock_guard lock(mutex);
    return facts;
  }
  bool is_over() {
    const std::lock_guard lock(mutex);
    return over;
  }
  template <class Tell>
  void tell(const Tell& what) {
    const std::lock_guard lock(outside_mutex);
    if (const std::shared_ptr<Outside> to = outside) what(*to);
  }
};

}  // namespace perseus::client
