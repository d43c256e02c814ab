// Whatever ranks report and whenever the server stops: an orderly stop changes no figure, and the server credits no
// iteration that not all ranks ran under one plan.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "oracles/dice.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;

constexpr double highest_j = 500, under_plan_j = 437.5;  // of a rank; exact in sums
constexpr std::int64_t baseline = 4;                     // iterations at the highest clock
constexpr int most_lead = 6;                             // iterations that a rank is ahead of the slowest one
constexpr double count_interval_s = 300;
constexpr int plans_known = 5;  // the one in force and those before it, see earlier_plans

/// A job whose ranks all run the same plan, except that sometimes a rank misses the plan, lacks the energy of an
/// iteration, or reports an iteration so late that the server no longer knows its plan.
class ReportedTraining {
 public:
  explicit ReportedTraining(ShrinkingDice& dice) : dice_(dice) {
    jobs::RegisterJob job;
    job.degrees = {1, 2, dice_.roll(1, 2)};
    job.profile = "small";
    ranks_ = job.degrees.world_size();
    const auto registered = server_.register_job(job);
    RC_ASSERT(registered.ok());
    job_ = registered->job;
    const bool epochs = dice_.roll(0, 1) == 1;
    for (int rank = 0; rank < ranks_; ++rank) {
      jobs::RegisterRank request = rank_of(job_, job.degrees, rank);
      request.clocks_mhz = {1410, 1050};
      request.switch_latency = Seconds(0);
      request.epoch = epochs ? 1 : 0;
      RC_ASSERT(server_.register_rank(request).ok());
    }
    reported_.resize(ranks_);
    for (int rank = 0; rank < ranks_; ++rank) report(rank, baseline);
  }

  void one_step(bool kills) {
    const int what = dice_.roll(0, 19);
    if (what < 13) {
      const int rank = dice_.roll(0, ranks_ - 1);
      const std::int64_t room = *std::ranges::min_element(reported_) + most_lead - reported_[rank];
      if (room > 0) report(rank, dice_.roll(1, static_cast<int>(room)));
    } else if (what == 13) {
      const int rank = dice_.roll(0, ranks_ - 1);
      if (!last_.contains(rank)) return;
      RC_ASSERT(server_.report_iterations(last_.at(rank)).ok());  // a retry: the answer was lost
    } else if (what == 14) {
      RC_ASSERT(server_.set_policy({job_, jobs::Pin{std::nullopt, dice_.roll(0, 5)}}).ok());
    } else if (what < 17) {
      seconds_ += dice_.roll(1, 2 * static_cast<int>(count_interval_s));
      server_.go_to(seconds_);
    } else if (kills && what == 17) {
      const std::int64_t before = counted();
      server_.restart();
      const std::int64_t lost = before - counted();
      RC_ASSERT(lost >= 0);
      RC_ASSERT(lost < std::max<std::int64_t>(10, before / 8) + most_lead);
      // The server also loses the iterations that only some ranks had reported.
      allowed_missing_ += lost + most_lead;
    } else {
      const auto before = server_.job(job_);
      server_.stop_and_start();
      const auto after = server_.job(job_);
      RC_ASSERT(after->total->iterations == before->total->iterations);
      RC_ASSERT(after->total->saved.value() == before->total->saved.value());
    }
  }

  void check() {
    const auto view = server_.job(job_);
    RC_ASSERT(view.ok() && view->total.has_value());
    RC_ASSERT(view->total->measured || view->total->iterations == 0);
    RC_ASSERT(view->total->saved.value() ==
              static_cast<double>(view->total->iterations * ranks_) * (highest_j - under_plan_j));
    RC_ASSERT(view->total->iterations <= truth());
    RC_ASSERT(view->total->iterations >= truth() - allowed_missing_);
  }
  void finish() {
    RC_ASSERT(server_.finish_job(job_).ok());
    check();
  }

 private:
  std::int64_t counted() { return server_.job(job_)->total->iterations; }

  /// Iterations that all ranks ran under one plan known to the server, each with its energy.
  [[nodiscard]] std::int64_t truth() const {
    const std::int64_t whole = *std::ranges::min_element(reported_);
    return std::ranges::count_if(good_, [&](const auto& one) { return one.first <= whole && one.second; });
  }

  void report(int rank, std::int64_t count) {
    for (; count > 0; --count) {
      jobs::ReportIterations request;
      request.job = job_;
      request.rank = rank;
      const std::int64_t iteration = ++reported_[rank];
      request.last_iteration = iteration;
      request.iteration_time = {Seconds(1)};
      request.iteration_energy = {Joules(highest_j)};
      request.plan_version = 0;
      if (iteration > baseline) {
        const std::int64_t in_force = server_.job(job_)->plan->version;
        const std::int64_t version = version_of_.try_emplace(iteration, in_force).first->second;
        const bool misses = dice_.roll(0, 15) == 0, unmeasured = dice_.roll(0, 15) == 0;
        good_.try_emplace(iteration, true).first->second &= !misses && !unmeasured && in_force - version < plans_known;
        request.plan_version = misses ? 0 : version;
        request.iteration_energy = {Joules(misses || unmeasured ? -1 : under_plan_j)};
      }
      last_[rank] = request;
      RC_ASSERT(server_.report_iterations(request).ok());
    }
  }

  ShrinkingDice& dice_;
  InProcess server_{{}, database_with({{"small", 3}})};
  std::string job_;
  int ranks_ = 0;
  std::vector<std::int64_t> reported_;  ///< by rank: the last iteration
  std::map<int, jobs::ReportIterations> last_;
  std::map<std::int64_t, std::int64_t> version_of_;  ///< by iteration
  std::map<std::int64_t, bool> good_;                ///< by iteration
  std::int64_t allowed_missing_ = 0;
  double seconds_ = 0;
};

void train(bool kills) {
  ShrinkingDice dice;
  ReportedTraining training(dice);
  for (int step = 0; step < 80; ++step) {
    training.one_step(kills);
    training.check();
  }
  training.finish();
}

RC_GTEST_PROP(Counts, AreTheTruthAcrossOrderlyRestarts, ()) { train(false); }

RC_GTEST_PROP(Counts, NeverExceedTheTruthWhereverTheServerIsKilled, ()) { train(true); }

}  // namespace
}  // namespace perseus::testing
