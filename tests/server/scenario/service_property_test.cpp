// Random actions in random order, with crashes and retries: the server loses no acknowledged change, memory and log
// agree, and the deployed plans need the least energy among those allowed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "oracles/dice.h"
#include "server/jobs/event.h"
#include "server/jobs/job.h"
#include "tests/server/scenario/deployed_plan.h"
#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/stored_log.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;

/// The acknowledged state, as a client remembers it.
struct Acknowledged {
  std::set<int> ranks;
  std::set<std::string> notices;
  std::int64_t version = 0;  ///< the highest version that a rank received
  bool finished = false;
};

/// Random numbers from 0.
class Faces : public ShrinkingDice {
 public:
  int below(int faces) { return roll(0, faces - 1); }
};

class Story {
 public:
  Story() {
    const auto registered = target_.register_job([this] {
      jobs::RegisterJob request;
      request.degrees = {dice_.below(4) + 1, 2, dice_.below(2) + 1};
      request.profile = "short";
      if (dice_.below(3) == 0) request.profile_of[request.degrees.dp - 1] = "long";
      return request;
    }());
    RC_ASSERT(registered.ok());
    job_ = registered->job;
    degrees_ = folded(target_.database(), job_).spec.degrees;
  }

  void play(int steps) {
    for (; steps > 0; --steps) {
      one_step();
      check();
    }
  }

 private:
  static constexpr int kTimePasses = 8;

  int random_rank() { return dice_.below(degrees_.world_size() + 1); }

  jobs::RegisterRank rank_request(int rank) const {
    jobs::RegisterRank request;
    request.job = job_;
    request.rank = rank;
    request.dp_rank = rank / (degrees_.pp * degrees_.tp);
    request.pp_rank = rank / degrees_.tp % degrees_.pp;
    request.tp_rank = rank % degrees_.tp;
    request.clocks_mhz = {1410, 1050};
    request.accelerator = "gpu-" + std::to_string(rank);
    return request;
  }

  void one_step() {
    const int what = dice_.below(10);
    if (what != kTimePasses) asked_s_ = seconds_;
    switch (what) {
      case 0:
      case 1:
        return register_a_rank();
      case 2:
      case 3:
        return set_a_straggler();
      case 4:
        (void)target_.withdraw_straggler({job_, "s" + std::to_string(dice_.below(12))}).ok();
        return;
      case 5:
        return set_a_policy();
      case 6:
        (void)target_.clear_policy({job_, dice_.below(2) == 0 ? "pinned" : "max_slowdown"}).ok();
        return;
      case 7:
        return wait_for_a_plan();
      case kTimePasses:
        seconds_ += dice_.below(40);
        target_.go_to(seconds_);
        return check_silence();
      default:
        crash_or_finish();
    }
  }

  void register_a_rank() {
    jobs::RegisterRank request = rank_request(random_rank());
    if (dice_.below(6) == 0) request.pp_rank = dice_.below(3);
    const bool possible = !acknowledged_.finished;
    if (target_.register_rank(request)) {
      RC_ASSERT(possible);
      acknowledged_.ranks.insert(request.rank);
      called_s_[request.rank] = seconds_;
    }
  }

  void set_a_straggler() {
    jobs::SetStraggler request;
    request.job = job_;
    if (dice_.below(2) == 0) request.target.pipeline = dice_.below(degrees_.dp + 1);
    if (dice_.below(4) == 0) request.target.rank = random_rank();
    if (dice_.below(4) == 0) request.target.accelerator = "gpu-" + std::to_string(random_rank());
    request.delay = Seconds(dice_.below(3) == 0 ? 0 : 10 * dice_.below(5));
    request.degree = dice_.below(3) == 0 ? 1 : 0.9 + 0.1 * dice_.below(6);
    const int times = dice_.below(4) == 0 ? 2 : 1;  // a retry
    for (int i = 0; i < times; ++i) {
      const auto set = target_.set_straggler(request);
      if (set && !set->notices.at(0).id.empty()) acknowledged_.notices.insert(set->notices[0].id);
    }
  }

  void set_a_policy() {
    if (dice_.below(2) == 0) {
      (void)target_.set_policy({job_, jobs::Pin{std::nullopt, dice_.below(40)}}).ok();
    } else {
      const double now_s = target_.now_s();
      (void)target_
          .set_policy(
              {job_, jobs::MaxSlowdown{1.0 + 0.1 * dice_.below(4), 5, {{now_s - 5, 9}, {now_s + 25, 1}}, "EUR"}})
          .ok();
    }
  }

  void wait_for_a_plan() {
    jobs::WaitForPlan request{job_, random_rank(), dice_.below(2) == 0 ? 0 : acknowledged_.version, 7, std::nullopt};
    const int wait = target_.wait_for_plan(request);
    if (acknowledged_.ranks.contains(request.rank)) called_s_[request.rank] = seconds_;
    waits_[wait] = request.rank;
    if (const auto answer = target_.answer_of(wait); answer && *answer && (*answer)->schedule) {
      RC_ASSERT((*answer)->schedule->version >= acknowledged_.version);
      acknowledged_.version = (*answer)->schedule->version;
    }
  }

  void crash_or_finish() {
    const int what = dice_.below(8);
    if (what == 0) {
      if (target_.finish_job(job_)) acknowledged_.finished = true;
    } else if (what == 1) {
      target_.break_store(true);
      jobs::SetStraggler request{job_, {}, Seconds(0), 2 + 0.01 * ++broken_};  // not a retry of a known request
      request.target.pipeline = 0;
      RC_ASSERT(!target_.set_straggler(request).ok());
      target_.break_store(false);
      target_.go_to(seconds_ += 3);
    } else {
      // Crashes in the middle of a request, whose client gets no answer.
      jobs::SetStraggler request{job_, {}, Seconds(dice_.below(2) * 20), 1 + 0.1 * dice_.below(3)};
      request.target.pipeline = dice_.below(degrees_.dp);
      target_.service().stragglers.set(request, [](const Result<jobs::StragglerSet>&) {});
      target_.step(dice_.below(3));
      target_.restart();
      waits_.clear();
    }
  }

  /// After some time has passed: who does not call is silent, and who does is not.
  void check_silence() {
    constexpr double least_s = 30, most_s = 60;
    const std::size_t answered =
        std::erase_if(waits_, [&](const auto& wait) { return target_.answer_of(wait.first).has_value(); });
    if (answered > 0) asked_s_ = seconds_;
    const jobs::Job job = folded(target_.database(), job_);
    if (!job.live() || job.ranks_registered == 0) return;
    double called_s = 0;
    for (const auto& [rank, at_s] : called_s_) called_s = std::max(called_s, at_s);
    if (job.silent) RC_ASSERT(waits_.empty() && seconds_ - called_s >= least_s);
    if (waits_.empty() && seconds_ - asked_s_ >= most_s) RC_ASSERT(job.silent.has_value());
    for (const auto& silent : job.silent_ranks) {
      RC_ASSERT(seconds_ - called_s_[silent.first] >= most_s);
      for (const auto& wait : waits_) RC_ASSERT(wait.second != silent.first);
    }
  }

  void check() {
    const TestDatabase& database = target_.database();
    const jobs::Job job = folded(database, job_);
    const auto view = target_.job(job_);
    RC_ASSERT(view.ok());
    RC_ASSERT(view->sequence == job.sequence);
    RC_ASSERT(view->header.state == jobs::shown_state(job));
    RC_ASSERT(view->ranks_registered == job.ranks_registered);
    RC_ASSERT(view->stragglers.size() == job.notices.size());
    RC_ASSERT(view->policies.size() == job.policies.size());
    RC_ASSERT((view->plan ? view->plan->version : 0) == (job.plan ? job.plan->version : 0));
    RC_ASSERT(database.job(job_).state == jobs::shown_state(job));

    for (const int rank : acknowledged_.ranks) RC_ASSERT(job.ranks[rank].has_value());
    RC_ASSERT(job.version >= acknowledged_.version);
    if (acknowledged_.finished) RC_ASSERT(job.state == jobs::JobState::finished);
    std::set<std::string> noticed;
    for (const store::StoredEvent& item : database.log(job_)) {
      const auto event = jobs::parse_event(item.body, "log");
      if (const auto* notice = std::get_if<jobs::StragglerNoticed>(&event->body)) noticed.insert(notice->id);
    }
    for (const std::string& id : acknowledged_.notices) RC_ASSERT(noticed.contains(id));
    const Status plan = check_deployed_plan(database, job, target_.now_s());
    if (!plan) RC_FAIL(plan.error().message);
  }

  Faces dice_;
  InProcess target_{{}, database_with({{"short", 3}, {"long", 4}})};
  std::string job_;
  jobs::Degrees degrees_;
  Acknowledged acknowledged_;
  double seconds_ = 0, asked_s_ = 0;  ///< the last request, or the restart
  std::map<int, double> called_s_;    ///< by rank: its last call
  std::map<int, int> waits_;          ///< ranks that wait, by their wait
  int broken_ = 0;
};

RC_GTEST_PROP(Service, LosesNothingAndDeploysTheLookUpOfTheEffectiveDeadline, ()) { Story().play(40); }

TEST(StateMachine, OnlyLiveJobsChange) {
  for (std::size_t kind = 0; kind < jobs::kNumEventKinds; ++kind) {
    EXPECT_FALSE(jobs::next_state(jobs::JobState::finished, kind)) << jobs::kind_name(kind);
    const bool revives = kind == jobs::kind_of_type<jobs::JobRevived>();
    EXPECT_EQ(jobs::next_state(jobs::JobState::expired, kind).has_value(), revives) << jobs::kind_name(kind);
    EXPECT_EQ(jobs::next_state(jobs::JobState::none, kind).has_value(),
              kind == jobs::kind_of_type<jobs::JobRegistered>())
        << jobs::kind_name(kind);
  }
}

TEST(StateMachine, ARefusedEventChangesNothing) {
  jobs::Job job;
  job.id = "j";
  ASSERT_TRUE(jobs::apply(job, {1, jobs::JobRegistered{"", {2, 2, 1}, false, false, std::nullopt, {}, false}}).ok());
  ASSERT_TRUE(jobs::apply(job, {2, jobs::RankRegistered{0, 0, 0, 0, {}, "", "", {}, {}, {}}}).ok());
  ASSERT_TRUE(jobs::apply(job, {2, jobs::JobSilent{1}}).ok());
  const jobs::Job before = job;
  const std::vector<jobs::EventBody> refused{
      jobs::JobRegistered{},
      jobs::RankRegistered{0, 0, 0, 0, {}, "", "", {}, {}, {}},
      jobs::RankRegistered{1, 0, 0, 0, {}, "", "", {}, {}, {}},
      jobs::RankRegistered{9, 0, 0, 0, {}, "", "", {}, {}, {}},
      jobs::StragglerTookEffect{"s1"},
      jobs::StragglerWithdrawn{"s1"},
      jobs::PolicyCleared{"pinned"},
      jobs::Characterized{"key", 1, 1, 1},
      jobs::PlanDeployed{},
      jobs::ProfileKnown{"key", "", {2}, "", 0, ""},
      jobs::WindowHandedOut{},
  };
  for (const jobs::EventBody& body : refused) {
    EXPECT_FALSE(jobs::apply(job, {3, body}).ok()) << jobs::kind_name(body.index());
    EXPECT_EQ(job, before) << jobs::kind_name(body.index());
  }
}

}  // namespace
}  // namespace perseus::testing
