// Jobs under online profiling with arbitrary actions of clients, time and crashes: the server loses no acknowledged
// result, memory and log agree, and no rank stays in a window for ever.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracles/dice.h"
#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/stored_log.h"
#include "tests/server/scenario/training.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;

constexpr int story_microbatches = 2;
constexpr double longest_window_s = 600;

class OnlineStory {
 public:
  OnlineStory() {
    jobs::RegisterJob request;
    request.degrees = degrees_;
    request.profile_online = true;
    request.plain_profiling = dice_.one_in(4);
    request.shape.emplace();
    request.shape->microbatches = story_microbatches;
    const auto registered = target_.register_job(request);
    RC_ASSERT(registered.ok());
    job_ = registered->job;
    SimulationOptions simulation;
    simulation.energy_breakdown = !dice_.one_in(4);
    training_.emplace(target_, job_, degrees_, story_microbatches, simulation, 1, InventedGpu{.clocks = 5});
    RC_ASSERT(training_->register_ranks().ok());
  }

  void play(int steps) {
    for (; steps > 0; --steps) {
      one_step();
      check();
    }
    // In every case: a rank that continues training has a plan in the end, or runs at maximum clock.
    if (!training_->run_until_plan(250)) target_.go_to(seconds_ += 3 * longest_window_s);
    const jobs::JobState state = folded(target_.database(), job_).state;
    RC_ASSERT(state == jobs::JobState::deployed || state == jobs::JobState::failed);
    RC_ASSERT(training_->run_until_plan(1).ok());
  }

 private:
  int random_rank() { return dice_.roll(0, degrees_.world_size() - 1); }

  void one_step() {
    switch (dice_.roll(0, 7)) {
      case 0:
      case 1: {
        std::set<int> silent;
        if (dice_.one_in(2)) silent.insert(random_rank());
        RC_ASSERT(training_->run_window(silent).ok());
        break;
      }
      case 2:  // a repetition, a result of a completed window, or one before the window is handed out
        if (auto report = training_->report_of(random_rank())) {
          if (dice_.one_in(3)) report->window = dice_.roll(-1, 6);
          (void)target_.report_iterations(*report).ok();
        }
        break;
      case 3:  // the server rejects a result that does not fit, and it changes nothing
        if (auto report = training_->report_of(random_rank())) {
          const std::size_t before = followed(target_.database(), job_).events.size();
          report->time_s.begin()->second.front().pop_back();
          (void)target_.report_iterations(*report).ok();
          const std::vector<jobs::Event> events = followed(target_.database(), job_).events;
          // Meanwhile it may notice that ranks are silent, or no longer.
          for (std::size_t i = before; i < events.size(); ++i) {
            RC_ASSERT(std::holds_alternative<jobs::JobSilent>(events[i].body) ||
                      std::holds_alternative<jobs::JobHeard>(events[i].body));
          }
        }
        break;
      case 4:
        target_.go_to(seconds_ += dice_.one_in(4) ? longest_window_s : dice_.roll(0, 40));
        break;
      case 5:  // crash in the middle of a report, or while finding a window
        if (auto report = training_->report_of(random_rank())) {
          target_.service().reports.report(*report, [](const Result<jobs::ReportedIterations>&) {});
        }
        target_.step(dice_.roll(0, 6));
        target_.restart();
        break;
      case 6:
        target_.break_store(true);
        (void)training_->run_window();
        target_.break_store(false);
        target_.go_to(seconds_ += 3);
        break;
      default: {
        jobs::SetStraggler request{job_, {}, Seconds(0), 1 + 0.1 * dice_.roll(0, 3)};
        request.target.pipeline = 0;
        RC_ASSERT(target_.set_straggler(request).ok());
      }
    }
  }

  void check() {
    (void)target_.job(job_).ok();  // a server that has just started reads the job here, and continues its profiling
    const jobs::Job job = folded(target_.database(), job_);
    const auto view = target_.job(job_);
    RC_ASSERT(view.ok());
    RC_ASSERT(view->sequence == job.sequence);
    RC_ASSERT(view->header.state == jobs::shown_state(job));
    if (view->profiling) RC_ASSERT(view->profiling->windows == job.profiled.windows);
    if (job.state != jobs::JobState::profiling) return;
    RC_ASSERT(!job.windows.empty());  // a window has always been decided
    RC_ASSERT(target_.now_s() < job.window_s + longest_window_s);
    RC_ASSERT(!job.all_reported());
  }

  ShrinkingDice dice_;
  InProcess target_;
  jobs::Degrees degrees_{dice_.roll(1, 2), 2, dice_.roll(1, 2)};
  std::string job_;
  std::optional<Training> training_;
  double seconds_ = 0;
};

RC_GTEST_PROP(ProfilingStory, LosesNoResultAndLeavesNoRankInAWindow, ()) { OnlineStory().play(20); }

}  // namespace
}  // namespace perseus::testing
