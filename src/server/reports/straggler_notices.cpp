#include "server/reports/straggler_notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/median.h"
#include "server/jobs/job_shapes.h"
#include "server/policies/stragglers.h"

namespace perseus::reports {

void StragglerNotices::set(jobs::SetStraggler request, work::Done<jobs::StragglerSet> done) {
  if (!request.job.empty()) return set_in_job(std::move(request), std::move(done));
  const std::string accelerator = request.target.accelerator;
  if (accelerator.empty()) {
    return done(
        Error{ErrorCode::usage, "accelerator is missing: a straggler without a job is named by its accelerator"});
  }
  with_accelerator(accelerator, [this, request = std::move(request), done = std::move(done)](const Result<Ids>& ids) {
    ids ? set_in_jobs(*ids, request, done) : done(ids.error());
  });
}

void StragglerNotices::set_in_job(jobs::SetStraggler request, work::Done<jobs::StragglerSet> done) {
  auto set = std::make_shared<jobs::StragglerSet>();
  const std::string id = request.job;
  access_.execute(
      id, {[request = std::move(request), set, now_s = clock_.now_s()](const jobs::Job& job,
                                                                       double) -> Result<live::Decision> {
             const auto decided = policies::decide_straggler(job, request, now_s);
             if (!decided) return decided.error();
             live::Decision decision;
             set->notices.clear();
             for (const policies::NoticeDecision& one : *decided) {
               set->notices.push_back(one.notice);
               std::ranges::copy(one.events, std::back_inserter(decision.events));
             }
             return decision;
           },
           [set, done = std::move(done)](const Status& status) { status ? done(*set) : done(status.error()); }});
}

void StragglerNotices::set_in_jobs(const Ids& ids, const jobs::SetStraggler& request,
                                   const work::Done<jobs::StragglerSet>& done) {
  if (ids.empty()) {
    return done(Error{ErrorCode::not_found, fmt::format("no live job has accelerator {}", request.target.accelerator)});
  }
  // Collects the answers one after another into one. A job that has ended since the lookup has no straggler.
  struct Answers {
    jobs::StragglerSet set;
    std::size_t missing = 0;
    std::optional<Error> failed, ended;
  };
  auto all = std::make_shared<Answers>();
  all->missing = ids.size();
  const auto in_one = [this, all, done, request](const std::string& id) {
    jobs::SetStraggler one = request;
    one.job = id;
    set_in_job(std::move(one), [this, all, done, by = request.by](Result<jobs::StragglerSet> set) {
      if (set) {
        std::ranges::move(set->notices, std::back_inserter(all->set.notices));
      } else {
        (set.error().code == ErrorCode::conflict ? all->ended : all->failed) = set.error();
      }
      if (--all->missing > 0) return;
      if (!all->failed && !(all->ended && all->set.notices.empty())) return done(all->set);
      // Applies to all jobs or to none.
      for (const jobs::StragglerSet::Outcome& notice : all->set.notices) {
        withdraw({notice.job, notice.id, by}, [](const Result<Ok>&) {});
      }
      done(all->failed ? *all->failed : *all->ended);
    });
  };
  one_after_the_other(std::make_shared<const Ids>(ids), 0, in_one);
}

void StragglerNotices::with_accelerator(const std::string& accelerator, work::Done<Ids> done) {
  Ids live_jobs;
  for (const auto& [id, row] : jobs_.index()) {
    if (row.state != name_of(jobs::JobState::finished) && row.state != name_of(jobs::JobState::expired))
      live_jobs.push_back(id);
  }
  struct Search {
    Ids with_it;
    std::optional<Error> failed;
    std::size_t missing = 0;
  };
  auto search = std::make_shared<Search>();
  search->missing = live_jobs.size() + 1;
  const auto one_less = [search, done = std::move(done)] {
    if (--search->missing > 0) return;
    search->failed ? done(*search->failed) : done(std::move(search->with_it));
  };
  for (const std::string& id : live_jobs) {
    jobs_.with(id, [id, accelerator, search, one_less](const Result<live::LiveJob*>& live) {
      // A damaged job does not stop the others.
      const bool skipped =
          !live && (live.error().code == ErrorCode::not_found || live.error().code == ErrorCode::internal);
      if (!live && !skipped) search->failed = live.error();
      if (live && (*live)->job.live() && (*live)->job.ranks_of_accelerator.contains(accelerator)) {
        search->with_it.push_back(id);
      }
      one_less();
    });
  }
  one_less();
}

void StragglerNotices::one_after_the_other(const std::shared_ptr<const Ids>& ids, std::size_t first,
                                           std::function<void(const std::string&)> in_one) {
  constexpr std::size_t in_a_row = 64;
  const std::size_t end = std::min(first + in_a_row, ids->size());
  for (std::size_t i = first; i < end; ++i) in_one((*ids)[i]);
  if (end == ids->size()) return;
  work::run_off_thread(
      executor_, [] { return Ok{}; },
      [this, ids, end, in_one = std::move(in_one)](const Ok&) { one_after_the_other(ids, end, in_one); });
}

void StragglerNotices::withdraw(jobs::WithdrawStraggler request, work::Done<Ok> done) {
  const std::string id = request.job;
  access_.execute(
      id, live::command_for_live_job([request = std::move(request)](
                                         const jobs::Job& job) { return policies::decide_withdrawal(job, request); },
                                     std::move(done)));
}

void StragglerNotices::detect(live::LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  if (!job.spec.detect_stragglers || !job.plan || request.iteration_time.empty()) return;
  // Ranks of a paced job that began apart stay apart, and wait for each other within an iteration.
  if (job.plan->budget && job.plan->budget->paced_iteration_s > 0) return;
  const int pipeline = job.ranks[request.rank]->dp_rank;
  const auto last = request.last_iteration;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  if (last && *last - count + 1 < job.plan->from_iteration) return;  // partly under the previous plan
  std::vector<double> over_planned;
  for (std::size_t i = 0; i < request.iteration_time.size(); ++i) {
    const auto plan = jobs::plan_for(*job.plan, request.microbatches[i]);
    if (!plan || plan->of(pipeline).point < 0) continue;
    const auto frontier = live.frontiers.find(plan->of(pipeline).input);
    if (frontier == nullptr) return;
    over_planned.push_back(request.iteration_time[i] / frontier->frontier.points[plan->of(pipeline).point].time);
  }
  if (over_planned.empty()) return;
  if (!live.detector) {
    live.detector.emplace(job.num_pipelines());
    for (const jobs::Notice& notice : job.notices) {
      if (notice.in_force && notice.detected) live.detector->assume(notice.pipeline, notice.degree);
    }
  }
  const auto by = last ? std::optional(policies::ReportedBy{request.rank, *last}) : std::nullopt;
  const auto degree = live.detector->report(pipeline, upper_median(over_planned), by);
  if (!degree) return;
  jobs::SetStraggler notice{job.id, {}, Seconds(0), *degree};
  notice.target.pipeline = pipeline;
  jobs_.execute(job.id, {[notice](const jobs::Job& now, double now_s) -> Result<live::Decision> {
                           const auto decided = policies::decide_straggler(now, notice, now_s, true);
                           if (!decided) return decided.error();
                           return live::Decision{decided->front().events, {}};
                         },
                         {}});
}

}  // namespace perseus::reports
