#include "server/plans/job_frontiers.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "server/jobs/job_shapes.h"
#include "server/jobs/pipeline_input.h"

namespace perseus::plans {

std::string planning_owner_of(const jobs::Job& job) {
  for (const char* const fact : {"team", "token"}) {
    const auto known = job.spec.facts.find(fact);
    if (known != job.spec.facts.end()) return fmt::format("{} {}", fact, known->second);
  }
  return "job " + job.id;
}

void JobFrontiers::want(live::LiveJob& live) {
  forget_unneeded(live);
  if (live.job.live()) want_to_show(live);
}

void JobFrontiers::forget_unneeded(live::LiveJob& live) {
  const jobs::Job& job = live.job;
  std::set<std::string> needed;
  for (const std::string& key : policies::frontiers_needed(job)) needed.insert(key);
  if (job.live()) needed.insert(job.characterizing.begin(), job.characterizing.end());
  for (const std::string& key : live.frontiers.withdraw_except(needed)) characterizations_.forget(key, job.id);
}

void JobFrontiers::want_to_show(live::LiveJob& live) {
  std::vector<std::string> keys = policies::frontiers_needed(live.job);
  if (live.job.live()) keys.insert(keys.end(), live.job.characterizing.begin(), live.job.characterizing.end());
  for (const std::string& key : keys) {
    // want() is called again when the profile is durable.
    if (live.is_pending("input/" + key) || !live.frontiers.request(key)) continue;
    characterizations_.want(key, {live.job.id, planning_owner_of(live.job)},
                            [this, id = live.job.id, key](const auto& frontier) { came(id, key, frontier); });
  }
}

void JobFrontiers::when_read(const std::string& id, std::function<void()> then) {
  const live::LiveJob* const live = jobs_.in_memory(id);
  const std::vector<std::string> keys =
      live == nullptr ? std::vector<std::string>{} : policies::frontiers_needed(live->job);
  const auto missing = std::make_shared<std::size_t>(keys.size() + 1);
  const auto one_less = [missing, then = std::move(then)] {
    if (--*missing == 0) then();
  };
  for (const std::string& key : keys) characterizations_.when_read(key, one_less);
  one_less();
}

namespace {

Result<live::Decision> decide_frontier(const jobs::Job& job, const std::string& key,
                                       const Result<Characterizations::Frontier>& frontier) {
  live::Decision decision;
  const bool needed = job.characterizing.contains(key) || (!frontier && job.characterized.contains(key));
  if (!job.live() || !needed) return decision;
  const bool has_quick = job.characterized.contains(jobs::quick_frontier_key(key));
  if (frontier && (*frontier)->key != key && has_quick) return decision;
  if (frontier) {
    const auto& points = (*frontier)->frontier.points;
    decision.events.emplace_back(jobs::Characterized{(*frontier)->key, static_cast<int>(points.size()),
                                                     points.back().time.value(), points.front().time.value()});
  } else if (const auto shape = jobs::completed_for(job, key)) {
    decision.events.emplace_back(
        jobs::ShapeCompleted{shape->shape.microbatches, shape->of, "", frontier.error().message});
  } else if (has_quick) {
    decision.events.emplace_back(jobs::RefinementEnded{key, frontier.error().message});
  } else {
    decision.events.emplace_back(jobs::CharacterizationFailed{key, frontier.error().message});
  }
  return decision;
}

}  // namespace

void JobFrontiers::job_removed(live::LiveJob& live) {
  for (const std::string& key : live.frontiers.withdraw_except({})) characterizations_.forget(key, live.job.id);
}

void JobFrontiers::retry(live::LiveJob& live) {
  live.retry_s = clock_.now_s() + live::kRetryAfter_s;
  jobs_.set_wake(live, clock_.now_s());
}

void JobFrontiers::came(const std::string& id, const std::string& key,
                        const Result<Characterizations::Frontier>& frontier) {
  live::LiveJob* live = jobs_.in_memory(id);
  if (live == nullptr) return;
  const bool is_quick = frontier && (*frontier)->key != key;  // the full one will follow
  if (!is_quick) live->frontiers.answered(key);
  if (!frontier && frontier.error().code == ErrorCode::unavailable) { return retry(*live); }
  if (frontier) live->frontiers.add(*frontier);
  jobs_.index().note(id);
  jobs_.touch(*live);  // what the frontier makes possible is decided before ranks see it, also during an append
  // A write that the store rejects is repeated.
  const auto written = [this, id, key](const Status& done) {
    live::LiveJob* const now = jobs_.in_memory(id);
    if (done || now == nullptr || done.error().code != ErrorCode::unavailable) return;
    if (now->job.characterizing.contains(key)) now->frontiers.drop(key);
    retry(*now);
  };
  jobs_.execute(
      id, {[key, frontier](const jobs::Job& job, double) { return decide_frontier(job, key, frontier); }, written});
  if (live = jobs_.in_memory(id); live != nullptr) jobs_.shown(*live);
}

}  // namespace perseus::plans
