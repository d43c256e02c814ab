#include "server/plans/waiting_ranks.h"

#include <fmt/format.h>

#include <vector>

#include "server/live/registration_checks.h"
#include "server/policies/stage_schedule.h"

namespace perseus::plans {

namespace {

/// Under a budget, answers renew the lease of the rank's plan.
std::optional<double> renewal_of(const live::LiveJob& live) {
  constexpr double share = 1.0 / 3;
  const auto& plan = live.job.plan;
  return plan && plan->budget ? std::optional(share * plan->budget->lease_s) : std::nullopt;
}

/// Another server may have taken over and given the rank's watts to others: nothing may renew the lease of its plan.
Error not_sure() {
  return {ErrorCode::unavailable, "the database does not say whether this server still has the right to write"};
}

}  // namespace

bool WaitingRanks::may_answer(const live::LiveJob& live) const {
  return !renewal_of(live) || options_.host->may_renew();
}

jobs::WaitId WaitingRanks::wait(jobs::WaitForPlan request, work::Done<jobs::PlanAnswer> done) {
  const jobs::WaitId id = next_++;
  // Known jobs are answered without a read.
  if (live::LiveJob* const live = access_.known(request.job, request.rank, request.have_version)) {
    return begin(*live, request, id, std::move(done));
  }
  to_begin_.emplace(id, std::move(done));
  const std::string job = request.job;
  const int rank = request.rank;
  const std::int64_t version = request.have_version;
  access_.find_rank(job, rank, version, [this, id, request = std::move(request)](const Result<live::LiveJob*>& found) {
    auto begun = to_begin_.extract(id);
    if (!begun) return;  // the wait was canceled
    if (!found) return begun.mapped()(found.error());
    begin(**found, request, id, std::move(begun.mapped()));
  });
  return to_begin_.contains(id) || job_of_.contains(id) ? id : 0;
}

jobs::WaitId WaitingRanks::begin(live::LiveJob& live, const jobs::WaitForPlan& request, jobs::WaitId id,
                                 work::Done<jobs::PlanAnswer> done) {
  const double now_s = clock_.now_s();
  if (request.iteration && (*request.iteration < 0 || *request.iteration > std::int64_t{1} << 52)) {
    done(Error{ErrorCode::usage, fmt::format("iteration: {}; allowed: 0 to 2^52", *request.iteration)});
    return 0;
  }
  if (Status held = live::check_holder(live.job, request.rank, request.epoch); !held) return done(held.error()), 0;
  jobs_.rank_called(live, request.rank);
  const bool counts = live.job.ranks[request.rank]->restarts == live.job.restarts;
  if (request.iteration && counts) {
    live.reports.note_progress(live.job, live.frontiers.all(), request.rank, *request.iteration,
                               std::max<std::int64_t>(0, *request.iteration - 1), now_s);
    if (live.reports.has_put_off(live.job)) jobs_.plan_anew(live, now_s);
  }
  held_.note(live, request.rank, request.have_version);
  if (access_.revive_if_expired(live)) return done(live::job_is_revived(request.job)), 0;
  if (!may_answer(live)) return done(not_sure()), 0;
  if (auto answer = plans_.plan_for(live, request.rank, request.have_version)) return done(*std::move(answer)), 0;
  if (stopping_) return done(Error{ErrorCode::unavailable, "the server is stopping: try again"}), 0;
  if (request.max_wait_s && !(*request.max_wait_s > 0)) {
    return done(jobs::PlanAnswer{nullptr, request.rank, 0, renewal_of(live).has_value()}), 0;
  }
  live::Waiter waiter{request.rank,    request.have_version, std::nullopt,
                      std::move(done), request.asks_once,    request.epoch};
  auto most_s = request.asks_once ? std::optional(options_.maximum_clock_after_s) : request.max_wait_s;
  if (const auto renew_s = renewal_of(live)) most_s = std::min(most_s.value_or(*renew_s), *renew_s);
  if (most_s) waiter.deadline_s = now_s + *most_s;
  park(live, id, std::move(waiter));
  return id;
}

void WaitingRanks::park(live::LiveJob& live, jobs::WaitId id, live::Waiter waiter) {
  if (waiter.deadline_s) deadlines_.emplace(*waiter.deadline_s, id);
  set_alarm();
  job_of_.emplace(id, &live);
  live.calls.waiters.emplace(id, std::move(waiter));
}

bool WaitingRanks::cancel(jobs::WaitId wait) {
  if (to_begin_.erase(wait) > 0) return true;  // not known: its job is being read
  const auto job = job_of_.find(wait);
  const bool renews = job != job_of_.end() && renewal_of(*job->second).has_value();
  take(wait);
  return renews;
}

void WaitingRanks::closed(jobs::WaitId wait) {
  const auto job = job_of_.find(wait);
  if (job == job_of_.end()) return void(cancel(wait));
  const std::string id = job->second->job.id;
  const auto waiter = take(wait);
  ended(id, waiter->rank, waiter->epoch);
}

void WaitingRanks::ended(const std::string& job, int rank, std::int64_t epoch) {
  live::LiveJob* const live = jobs_.in_memory(job);
  if (live == nullptr || !live->has_rank(rank) || !live::check_holder(live->job, rank, epoch)) return;
  live->calls.closed(rank);
  jobs_.set_wake(*live, clock_.now_s());
}

void WaitingRanks::answer(live::LiveJob& live) {
  std::vector<std::pair<work::Done<jobs::PlanAnswer>, Result<jobs::PlanAnswer>>> answers;
  for (auto waiter = live.calls.waiters.begin(); waiter != live.calls.waiters.end();) {
    auto answer = plans_.plan_for(live, waiter->second.rank, waiter->second.have_version);
    if (!answer) {
      ++waiter;
      continue;
    }
    jobs_.rank_waited(live, waiter->second.rank);
    answers.emplace_back(std::move(waiter->second.done),
                         may_answer(live) ? *std::move(answer) : Result<jobs::PlanAnswer>(not_sure()));
    forget(waiter->first, waiter->second);
    waiter = live.calls.waiters.erase(waiter);
  }
  for (auto& [done, answer] : answers) done(std::move(answer));
}

void WaitingRanks::end_earlier(live::LiveJob& live, int rank) {
  if (live.job.ranks[rank]->restarts == 0) return;  // its first process
  std::vector<std::pair<work::Done<jobs::PlanAnswer>, Error>> over;
  for (auto waiter = live.calls.waiters.begin(); waiter != live.calls.waiters.end();) {
    const live::Waiter& waits = waiter->second;
    const Status held = waits.rank == rank ? live::check_holder(live.job, rank, waits.epoch) : Status(Ok{});
    if (held) {
      ++waiter;
      continue;
    }
    over.emplace_back(std::move(waiter->second.done), held.error());
    jobs_.rank_waited(live, rank);
    forget(waiter->first, waits);
    waiter = live.calls.waiters.erase(waiter);
  }
  for (const auto& [done, why] : over) done(why);
}

void WaitingRanks::job_removed(live::LiveJob& live) {
  const Error gone{ErrorCode::not_found, fmt::format("job {} was removed", live.job.id)};
  std::vector<work::Done<jobs::PlanAnswer>> waiting;
  for (auto& [id, waiter] : live.calls.waiters) {
    forget(id, waiter);
    waiting.push_back(std::move(waiter.done));
  }
  live.calls.waiters.clear();
  for (const auto& done : waiting) done(gone);
}

void WaitingRanks::stop() {
  stopping_ = true;
  const Error stopping{ErrorCode::unavailable, "the server is stopping: try again"};
  for (auto& [id, done] : std::exchange(to_begin_, {})) done(stopping);
  std::vector<jobs::WaitId> waits;
  for (const auto& [id, job] : job_of_) waits.push_back(id);
  for (const jobs::WaitId id : waits) {
    if (auto waiter = take(id)) waiter->done(stopping);
  }
}

std::optional<live::Waiter> WaitingRanks::take(jobs::WaitId id) {
  const auto job = job_of_.find(id);
  if (job == job_of_.end()) return std::nullopt;
  live::LiveJob& live = *job->second;
  auto waits = live.calls.waiters.extract(id);
  PERSEUS_CHECK(!waits.empty(), "a wait without its job");
  live::Waiter waiter = std::move(waits.mapped());
  jobs_.rank_waited(live, waiter.rank);
  forget(id, waiter);
  return waiter;
}

void WaitingRanks::forget(jobs::WaitId id, const live::Waiter& waiter) {
  job_of_.erase(id);
  if (waiter.deadline_s) deadlines_.erase({*waiter.deadline_s, id});
  set_alarm();
}

void WaitingRanks::end(jobs::WaitId id) {
  const auto waiter_of = job_of_.find(id);
  if (waiter_of == job_of_.end()) return;
  live::LiveJob& live = *waiter_of->second;
  auto waiter = take(id);
  if (!waiter->asks_once) {
    if (!may_answer(live)) return waiter->done(not_sure());
    return waiter->done(jobs::PlanAnswer{nullptr, waiter->rank, 0, renewal_of(live).has_value()});
  }
  end_at_highest_clock(live, id, *std::move(waiter));
}

void WaitingRanks::end_at_highest_clock(live::LiveJob& live, jobs::WaitId id, live::Waiter waiter) {
  const jobs::Job& job = live.job;
  const jobs::Rank& rank = *job.ranks[waiter.rank];
  // Nothing: being read. Null: there is no input yet from which to derive the instructions.
  const bool has_input = !job.input_of[rank.dp_rank].empty();
  const auto shape =
      has_input ? plans_.max_clock_shape(live, rank.dp_rank) : std::optional<const jobs::PipelineShape*>(nullptr);
  const bool lists_instructions = !job.instruction_sets[rank.instruction_set].empty();
  if (!shape || profiles::awaits_profiling(job) || profiles::is_profiled(job)) {
    waiter.deadline_s = clock_.now_s() + (shape ? options_.maximum_clock_after_s : live::kRetryAfter_s);
    return park(live, id, std::move(waiter));
  }
  if (*shape == nullptr && !lists_instructions) {
    return waiter.done(
        Error{ErrorCode::conflict,
              fmt::format("job {} has no {}, so the number of clocks of rank {} is unknown: name a stored profile in "
                          "job_metadata, or upload one to the job, and try again",
                          job.id, has_input ? "profile that can be read" : "profile", waiter.rank)});
  }
  if (!std::exchange(live.calls.logged_highest_clock, true)) {
    options_.host->log(
        fmt::format("job {}: rank {} got the highest clock, since there was no plan after {:g} s; its client "
                    "does not request a plan again, so it keeps this clock until training restarts",
                    job.id, waiter.rank, options_.maximum_clock_after_s));
  }
  waiter.done(jobs::PlanAnswer{policies::make_maximum_clock_schedule(job, rank, *shape), waiter.rank, rank.dp_rank});
}

void WaitingRanks::end_late(double now_s) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_s) {
    const jobs::WaitId id = deadlines_.begin()->second;
    end(id);
  }
}

void WaitingRanks::set_alarm() {
  alarm_.set(deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first));
}

}  // namespace perseus::plans
