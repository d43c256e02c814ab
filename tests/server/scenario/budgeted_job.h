// Ranks of a two-stage job that keep power budgets, and what their clocks draw by the profile: independent of the
// server's own sums.
//
// Input:   answers of the server, which arrive late, twice or never; small.csv.
// Output:  mean power of an iteration with the clocks of now. ClockLimit of the client decides about the clocks; the

//          of the client is imitated: a plan is followed once its answer has arrived, its period from the next
//          iteration.
// Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oracles/dice.h"
#include "server/jobs/requests.h"
#include "tests/server/scenario/in_process.h"
#include "training/clock_control/clock_limit.h"

namespace perseus::testing {

/// One iteration of 1F1B on two stages, with a clock per computation in execution order.
struct TwoStageClocks {
  int microbatches = 0;
  std::array<std::vector<int>, 2> mhz;
  double period_s = 0;  ///< an iteration takes so long at least
};
/// Mean power of both GPUs, by the times and energies of small.csv.
Watts mean_power(const TwoStageClocks& clocks);
/// Everything at that clock.
Watts mean_power_at(int microbatches, int mhz);
inline constexpr double kBlocking_w = 70;  ///< of small_profile()
inline constexpr std::array kSmallClocks{1410, 1290, 1170, 1050, 930, 810};

class BudgetedRank {
 public:
  /// `rank`: of the pipeline rank / 2, its stage rank % 2.
  BudgetedRank(std::string job, int rank, int microbatches, std::string host = {});

  /// Registers this rank's process anew: it forgets its plan.
  void start(
      InProcess& server, bool keeps_budgets, bool paces = false,
      work::Done<jobs::RegisterRankAnswer> done = [](const auto&) {});
  /// Its process ends: the host's kernel closes its connection, or the host is cut off.
  void end(InProcess& server, bool closes);
  /// The server has gone: the connection on which it waited is closed.
  void disconnected(double now_s);
  /// Asks, and takes what has arrived.
  void act(InProcess& server, Dice& dice);
  /// No message leaves or arrives until then.
  void cut_off(double until_s) { cut_off_until_s_ = until_s; }
  /// It keeps its connection until it is answered, for days.
  void be_patient() { patience_s_ = 1e9; }
  [[nodiscard]] bool is_cut_off(double now_s) const { return now_s < cut_off_until_s_; }
  [[nodiscard]] std::vector<int> clocks(double now_s) const;
  /// The least time from the begin of an iteration to that of the next one; 0: it does not wait.
  [[nodiscard]] double period_s(double now_s) const;
  /// Of the plan that it follows; 0: none, or one whose lease has ended.
  [[nodiscard]] std::int64_t version(double now_s) const { return is_expired(now_s) ? 0 : version_; }
  [[nodiscard]] std::optional<int> waits() const { return wait_; }
  /// When it asked for the answer that it waits for, and the version that it named.
  [[nodiscard]] double asked_s() const { return asked_s_; }
  [[nodiscard]] std::int64_t named_version() const { return version_; }
  [[nodiscard]] std::int64_t epoch() const { return epoch_; }
  /// For messages of failures.
  [[nodiscard]] std::string text(double now_s) const;

 private:
  [[nodiscard]] bool is_expired(double now_s) const;
  void arrives(const jobs::PlanAnswer& answer, double now_s);
  void obey(const jobs::PowerBudget& budget, double now_s);

  std::string job_, host_;
  int rank_ = 0, microbatches_ = 0;
  std::int64_t epoch_ = 0, version_ = 0;
  bool keeps_budgets_ = true;
  std::vector<int> plan_;  ///< empty: the driver chooses
  std::optional<double> lease_s_;
  bool paces_ = false;
  double period_s_ = 0;
  double earlier_period_s_ = 0, paces_from_s_ = 0;  ///< the iteration under way had begun with the period before
  std::vector<jobs::LaterBudget> ahead_;
  std::unique_ptr<clock_control::ClockLimit> limit_ = std::make_unique<clock_control::ClockLimit>();
  double cut_off_until_s_ = 0, ask_s_ = 0, asked_s_ = 0, patience_s_ = 25;
  std::optional<int> wait_;
  std::vector<int> open_;            ///< its connections on which it waits, or waited
  std::optional<double> arrives_s_;  ///< of the answer to `wait_`
  bool lost_ = false;
};

}  // namespace perseus::testing
