// The total of a job grows only with reports: whatever plans, stragglers and restarts come, no change takes back what
// was counted, and time alone counts nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "oracles/dice.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using namespace jobs;

/// A job of two pipelines whose ranks measure no energy. They report iterations by number; some or all of them
/// begin to name the plan that they followed in the middle of the training.
class EstimatedTraining {
 public:
  explicit EstimatedTraining(ShrinkingDice& dice) : dice_(dice) {
    RC_ASSERT(server_.put_profile(small_profile("small", 3)).ok());
    jobs::RegisterJob job;
    job.degrees = {2, 2, 1};
    job.profile = "small";
    const auto registered = server_.register_job(job);
    RC_ASSERT(registered.ok());
    job_ = registered->job;
    for (int rank = 0; rank < kRanks; ++rank) {
      jobs::RegisterRank request = rank_of(job_, job.degrees, rank);
      request.clocks_mhz = {1410, 1050};
      request.switch_latency = Seconds(0);
      RC_ASSERT(server_.register_rank(request).ok());
    }
  }

  void one_step() {
    switch (dice_.roll(0, 9)) {
      case 0: {
        jobs::SetStraggler straggler{job_, {}, Seconds(dice_.roll(0, 1) * 100), 1 + 0.1 * dice_.roll(0, 5)};
        straggler.target.pipeline = dice_.roll(0, 1);
        RC_ASSERT(server_.set_straggler(straggler).ok());
        break;
      }
      case 1:
        RC_ASSERT(server_.set_policy({job_, jobs::Pin{std::nullopt, dice_.roll(0, 5)}}).ok());
        break;
      case 2:
        seconds_ += dice_.roll(1, 1000);
        server_.go_to(seconds_);
        break;
      case 3:
        server_.stop_and_start();
        break;
      case 4:
        naming_ = std::max(naming_, dice_.roll(0, kRanks));
        break;
      default:
        iteration_ += dice_.roll(1, 20);
        for (int rank = 0; rank < kRanks; ++rank) report(rank);
        reports_ = true;
    }
  }

  void check() {
    const auto view = server_.job(job_);
    RC_ASSERT(view.ok());
    if (!reports_) RC_ASSERT(!view->total && view->no_total == "no reports of iterations");
    if (!view->total) {
      RC_ASSERT(iterations_ == 0);
      return;
    }
    RC_ASSERT(view->total->iterations >= iterations_);
    RC_ASSERT(view->total->iterations <= iteration_);
    RC_ASSERT(view->total->saved.value() >= saved_j_ - 1e-6);
    const bool reported = reported_ != iteration_;
    if (!reported) RC_ASSERT(view->total->iterations == iterations_ && view->total->saved.value() < saved_j_ + 1e-6);
    iterations_ = view->total->iterations;
    saved_j_ = view->total->saved.value();
    reported_ = iteration_;
  }

 private:
  static constexpr int kRanks = 4;

  void report(int rank) {
    jobs::ReportIterations request;
    request.job = job_;
    request.rank = rank;
    request.last_iteration = iteration_;
    request.iteration_time.assign(iteration_ - reported_, Seconds(1));
    if (rank < naming_) request.plan_version = server_.job(job_)->plan->version;
    RC_ASSERT(server_.report_iterations(request).ok());
  }

  ShrinkingDice& dice_;
  InProcess server_;
  std::string job_;
  std::int64_t iteration_ = 0, reported_ = 0, iterations_ = 0;
  double saved_j_ = 0, seconds_ = 0;
  int naming_ = 0;  ///< ranks below this one name the plan that they followed
  bool reports_ = false;
};

RC_GTEST_PROP(Totals, NeverGoBackAndNeverGrowWithoutReports, ()) {
  ShrinkingDice dice;
  EstimatedTraining training(dice);
  for (int step = 0; step < 40; ++step) {
    training.one_step();
    training.check();
  }
}

}  // namespace
}  // namespace perseus::testing
