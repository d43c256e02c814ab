// Days of a cluster with a server, its jobs, operators, meters and database, in which everything that can go wrong goes
// wrong: one seed decides all.
//
// Input:   a seed, the days. The server is the real one (InProcess); its database loses what was not committed, hangs,
//          refuses, or loses its answers; ranks register, wait, report, end, are cut off and return; the server is
//          killed between any two steps, stops in order, stays down, or sleeps for hours.
// Output:  live() checks the promises after each step: simulated_promises.cpp has them. trace(): what happened.
// Errors:  BrokenPromise.
// Cost:    an action and what follows from it. Most of the time passes where nothing is due, or while the machine
//          sleeps: under a site, the server looks at its jobs every second.
// Threads: one.
// Source:  docs/server.md, "The simulation".
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "oracles/dice.h"
#include "tests/server/scenario/budgeted_job.h"
#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/stored_log.h"
#include "tests/server/simulation/trace.h"

namespace perseus::testing {

struct BrokenPromise : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SimulatedRank {
  BudgetedRank process;
  bool alive = false;
  bool closed = false;       ///< its last process ended, and its host said so
  double contact_s = 0;      ///< when it last waited or called
  double acknowledged = 0;   ///< the greatest epoch with which a registration was acknowledged
  int seen = -1;             ///< the last wait whose answer was looked at
  std::int64_t version = 0;  ///< the greatest durable one that it has received
};

struct SimulatedJob {
  std::string id, name, token;
  jobs::RegisterJob request;
  int microbatches = 0;
  bool keeps_budgets = true, paces = false;
  std::vector<SimulatedRank> ranks;
  bool finished = false;       ///< acknowledged
  bool may_be_gone = false;    ///< its end was requested, or it was silent so long that it may expire
  bool straggled = false;      ///< a notice was sent
  std::int64_t iteration = 0;  ///< that all its ranks have reported
  double trained_s = 0;        ///< when they did
  std::int64_t counted = 0;    ///< iterations, when the test looked last
  int late_steps = 0;          ///< the last ones that were reported; in time: < 0
  std::int64_t steps_of = 0;   ///< their version
  Watts counted_w;
  std::optional<double> granted_w;  ///< its grant and the limits' correction, when the test looked last
  double correction = 1;
  bool was_silent = false, counted_silent = false;
  std::int64_t viewed = -1;                                   ///< the last event when its view was checked
  std::int64_t streamed = 0;                                  ///< the last event of its stream
  std::map<std::pair<std::int64_t, int>, std::string> plans;  ///< what ranks received, by version and rank

  [[nodiscard]] bool runs() const;
  [[nodiscard]] Watts draws(double now_s) const;
};

class SimulatedCluster final : plans::ServerHost {
 public:
  explicit SimulatedCluster(std::uint64_t seed);
  ~SimulatedCluster() override;
  void live(double days);
  [[nodiscard]] const Trace& trace() const { return trace_; }

  struct Figures {
    int actions = 0, kills = 0, jobs = 0;
    std::size_t steps = 0;  ///< after each of which all is checked
    double slept_s = 0;
  };
  [[nodiscard]] const Figures& figures() const { return figures_; }

 private:
  std::string random_id() override;
  struct Call {
    std::string what;
    double sent_s = 0, limit_s = 0;
    const SimulatedJob* of_rank = nullptr;  ///< whose process registers
    bool answered = false;
  };
  struct TimedWait {
    int wait = 0;
    double until_s = 0;
    double late_s = 0;  ///< what its answer needs may be read first
  };
  enum class Trouble { none, hangs, refuses, full, loses_answers, reads_are_late, results_are_late };

  // Time: simulated_cluster.cpp.
  void pass(double seconds);
  void sleep(double seconds);
  void one_moment(double seconds, bool thorough = false);
  void ranks_act();
  void killed();
  void end_trouble();
  /// When the next of what is announced becomes due: a notice, a signal, the end of a wait.
  [[nodiscard]] double next_due_s() const;
  [[nodiscard]] double now_s() const { return server_->now_s(); }
  /// Since when the database has been well, and the server up.
  [[nodiscard]] bool healthy_for(double seconds) const;

  // Calls.
  template <class T>
  work::Done<T> expect(std::string what, double limit_s, std::function<void(const T&)> acknowledged = {},
                       const SimulatedJob* of_rank = nullptr);
  void note(std::string line);
  void broken(const std::string& what);
  void check_error(const Call& call, const Error& error);

  // What happens: simulated_actions.cpp.
  void act();
  void job_comes();
  void send_registration(const jobs::RegisterJob& request, int attempt);
  void job_arrived(const std::string& id, const jobs::RegisterJob& request);
  void job_goes();
  void job_is_removed();
  void start_rank(SimulatedJob& job, std::size_t rank);
  void rank_ends();
  void network();
  void job_dies();
  void ranks_return();
  void straggler();
  void set_straggler(SimulatedJob& job, const jobs::SetStraggler& request, int times = 1);
  void straggler_withdrawn();
  void set_signal(SimulatedJob& job, double falls_in_s);
  void policy();
  void tier();
  void limits();
  void limits_end();
  void meter();
  void admission();
  void train();
  bool report(SimulatedJob& job);
  void timed_wait();
  void trouble();
  void stop_in_order();
  void kill_within_a_call();
  SimulatedJob* some_job();

  // Promises: simulated_promises.cpp.
  /// `thorough`: with the views of all jobs, not only of those whose log has grown.
  void check(bool thorough);
  void follow_logs();
  void check_job(SimulatedJob& job, bool thorough);
  void check_ranks(SimulatedJob& job, const jobs::Job& log);
  void check_grant(SimulatedJob& job, const jobs::Job& log);
  /// Ranks follow what time has made due, whatever the database does.
  void check_due(const SimulatedJob& job, const SimulatedRank& rank, const jobs::Job& log);
  void check_silence(SimulatedJob& job, const jobs::Job& log);
  void check_view(SimulatedJob& job, const jobs::Job& log);
  std::optional<Result<jobs::JobView>> view_of(const std::string& id);
  void check_durable_view(SimulatedJob& job, const jobs::Job& log);
  void check_site();
  void check_place(const SimulatedJob& job, const jobs::Job& log, const power::SiteJobView& shown,
                   const std::string& domain);
  void check_calls();
  void check_tokens();
  void take_answer(SimulatedJob& job, SimulatedRank& rank);
  void subscribe(SimulatedJob& job);
  FollowedLog& log_of(const std::string& id);
  /// An event of the job's log, as committed until now.
  void require(const std::string& id, const std::string& what, const std::function<bool(const jobs::EventBody&)>& is);

  SeededDice dice_;
  Trace trace_;
  Figures figures_;
  std::uint64_t seed_, ids_ = 0;
  service::ServiceOptions options_;
  std::unique_ptr<InProcess> server_;
  double seconds_ = 0;                                   ///< since the beginning
  std::shared_ptr<int> run_ = std::make_shared<int>(0);  ///< of the server: an earlier one answers nothing
  double up_s_ = 0, well_s_ = 0, awake_s_ = 0;
  Trouble trouble_ = Trouble::none;
  double trouble_s_ = 0, trouble_until_s_ = 0;
  std::vector<std::shared_ptr<Call>> calls_;
  std::vector<TimedWait> timed_;
  std::vector<std::unique_ptr<SimulatedJob>> jobs_;
  std::map<std::string, FollowedLog> logs_;
  std::int64_t followed_writes_ = -1;  ///< of the database, when logs_ was read last
  std::size_t followed_jobs_ = 0;
  std::set<std::string> removal_;                    ///< ids of jobs whose removal was requested
  std::vector<std::unique_ptr<SimulatedJob>> gone_;  ///< removed
  std::map<std::string, std::string> job_of_key_;
  std::vector<std::function<void()>> later_;  ///< what follows from answers, outside of the server's calls
  int named_ = 0;
  std::string failure_;

  // The site.
  bool has_site_ = false, pacing_ = false, excused_ = false;
  bool generous_ = false;   ///< no limit is near, and no meter has said anything since
  bool site_sure_ = false;  ///< site_text_ was acknowledged, and nothing was requested since
  std::string site_text_;
  std::map<std::string, Watts> counted_;
  std::vector<double> straggles_s_;
  std::set<std::string> reserved_;  ///< acknowledged and not released
};

}  // namespace perseus::testing
