#include "server/service/job_operations.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/utf8.h"
#include "server/jobs/job_shapes.h"
#include "server/jobs/pipeline_input.h"
#include "server/live/registration_checks.h"
#include "server/policies/policy_target.h"

namespace perseus::service {

void JobOperations::set_policy(jobs::SetPolicy request, work::Done<jobs::PolicyChanged> done) {
  if (Status checked = policies::check_policy(request.policy); !checked) return done(checked.error());
  if (const auto* slowdown = std::get_if<jobs::MaxSlowdown>(&request.policy)) {
    if (Status unit = check_text("unit", slowdown->unit, 64); !unit) return done(unit.error());
  }
  const std::string id = request.job;
  const std::string kind(jobs::kind_of(request.policy));
  const auto decide = [policy = std::move(request.policy),
                       by = std::move(request.by)](const jobs::Job& job) -> Result<std::vector<jobs::EventBody>> {
    const auto found = job.policies.find(std::string(jobs::kind_of(policy)));
    if (found != job.policies.end() && found->second == policy) return std::vector<jobs::EventBody>{};
    return std::vector<jobs::EventBody>{jobs::PolicySet{policy, by}};
  };
  const auto changed = [this, id, kind, done = std::move(done)](const Result<Ok>& set) {
    if (!set) return done(set.error());
    const live::LiveJob* const now = jobs_.in_memory(id);
    if (now == nullptr) return done(jobs::PolicyChanged{});
    done(jobs::PolicyChanged{policies::policy_not_kept(now->job, now->frontiers.all(), kind, clock_.now_s())});
  };
  access_.execute(id, live::command_for_live_job(decide, changed));
}

void JobOperations::clear_policy(jobs::ClearPolicy request, work::Done<Ok> done) {
  const auto decide = [kind = request.kind,
                       by = request.by](const jobs::Job& job) -> Result<std::vector<jobs::EventBody>> {
    if (job.policies.contains(kind)) return std::vector<jobs::EventBody>{jobs::PolicyCleared{kind, by}};
    return Error{ErrorCode::not_found, fmt::format("job {} has no policy '{}'", job.id, valid_utf8(kind))};
  };
  access_.execute(request.job, live::command_for_live_job(decide, std::move(done)));
}

void JobOperations::set_tier(jobs::SetTier request, work::Done<Ok> done) {
  if (const jobs::SiteDocument* const site = site_.documents().current()) {
    if (Status known = jobs::check_domain(*site, request.tier.domain); !known) return done(known.error());
  }
  if (Status checked = live::check_tier(request.tier); !checked) return done(checked.error());
  const auto decide = [asked = std::move(request.tier), reset = request.reset,
                       by = std::move(request.by)](const jobs::Job& job) -> Result<std::vector<jobs::EventBody>> {
    jobs::Tier tier = reset ? jobs::Tier{} : job.operator_tier;
    if (!asked.domain.empty()) tier.domain = asked.domain;
    if (asked.least_rate) tier.least_rate = asked.least_rate;
    if (asked.priority) tier.priority = asked.priority;
    if (job.operator_tier == tier) return std::vector<jobs::EventBody>{};
    return std::vector<jobs::EventBody>{jobs::TierSet{tier, by}};
  };
  access_.execute(request.job, live::command_for_live_job(decide, std::move(done)));
}

void JobOperations::drop_plan(jobs::DropPlan request, work::Done<Ok> done) {
  if (Status named = check_text("reason", request.reason, 1024); !named) return done(named.error());
  for (const Seconds time : {request.measured, request.promised}) {
    if (time >= Seconds(0) && time.value() <= 1e9) continue;
    return done(Error{ErrorCode::usage, fmt::format("time: {} s; allowed: 0 to 1e9", time.value())});
  }
  const std::string id = request.job;
  const int rank = request.rank;
  const std::int64_t epoch = request.epoch;
  const auto dropped = std::make_shared<bool>(false);
  const auto decide = [request = std::move(request), dropped](const jobs::Job& job, double) -> Result<live::Decision> {
    live::Decision decision;
    // A late report on a plan that was replaced meanwhile, or the same report of another rank.
    const bool in_force = job.live() && job.plan && job.plan->version == request.version;
    if (!in_force) return decision;
    const auto plan = jobs::plan_for(*job.plan, request.microbatches);
    if (!plan) return decision;
    const jobs::PlanDeployed::Choice& choice = plan->of(job.ranks[request.rank]->dp_rank);
    if (choice.point < 0 || job.dropped.contains(std::string(jobs::input_of_frontier(choice.input)))) return decision;
    decision.events.emplace_back(jobs::PlanDropped{request.rank, request.version, request.reason,
                                                   request.measured.value(), request.promised.value(),
                                                   request.microbatches});
    *dropped = true;
    return decision;
  };
  const auto answered = [this, id, dropped, done](const Status& status) {
    const live::LiveJob* const now = jobs_.in_memory(id);
    if (status && *dropped && now != nullptr) return profiles_.forget_learned_by(now->job, done);
    status ? done(Ok{}) : done(status.error());
  };
  access_.with_rank(id, rank, 0, [this, id, rank, epoch, decide, answered](const Result<live::LiveJob*>& live) {
    if (!live) return answered(live.error());
    if (Status held = live::check_holder((*live)->job, rank, epoch); !held) return answered(held);
    jobs_.execute(id, {decide, answered});
  });
}

void JobOperations::see_shape(jobs::SeeShape request, work::Done<Ok> done) {
  if (Status named = check_text("varies", request.varies, 1024); !named) return done(named.error());
  jobs::PipelineShape shape;
  shape.microbatches = request.microbatches;
  shape.action_table = request.action_table;
  const int most = jobs::InputLimits().max_computations;  // complete() checks the server's own limit
  if (request.microbatches < 1 || request.microbatches > most) {
    return done(Error{ErrorCode::usage, fmt::format("microbatches: {}; allowed: 1 to {}", request.microbatches, most)});
  }
  if (Status checked = jobs::check_shape(shape, most); !checked) return done(checked.error());
  const std::string id = request.job;
  const int rank = request.rank;
  const std::int64_t epoch = request.epoch;
  const auto decide = [request = std::move(request)](const jobs::Job& job, double) -> Result<live::Decision> {
    live::Decision decision;
    if (!job.live()) return live::job_is_over(job);
    if (jobs::is_news(job, request)) {
      decision.events.emplace_back(
          jobs::ShapeSeen{request.rank, request.microbatches, request.prevails, request.varies, request.action_table});
    }
    return decision;
  };
  access_.with_rank(id, rank, 0, [this, id, rank, epoch, decide, done](const Result<live::LiveJob*>& live) {
    if (!live) return done(live.error());
    if (Status held = live::check_holder((*live)->job, rank, epoch); !held) return done(held.error());
    jobs_.execute(id, {decide, done});
  });
}

void JobOperations::finish(const std::string& job, work::Done<Ok> done, const std::string& by) {
  access_.execute(job, {[by](const jobs::Job& now, double) -> Result<live::Decision> {
                          live::Decision decision;
                          if (now.state == jobs::JobState::finished) return decision;
                          if (!now.live()) return live::job_is_over(now);
                          decision.events.emplace_back(jobs::JobFinished{by});
                          return decision;
                        },
                        done});
}

void JobOperations::remove(const std::string& job, work::Done<Ok> removed, const std::string& by) {
  recent_.expect_removal(job, by);
  const work::Done<Ok> done = [this, job, removed = std::move(removed)](const Result<Ok>& outcome) {
    recent_.forget_removal(job);
    removed(outcome);
  };
  jobs_.with(job, [this, job, done](const Result<live::LiveJob*>& live) {
    const bool damaged = !live && live.error().code == ErrorCode::internal;
    if (!live && !damaged) return done(live.error());
    if (live && (*live)->job.unknown_events > 0) return done(live::later_version(job));
    if (live && (*live)->job.live()) {
      const jobs::Job& now = (*live)->job;
      return done(Error{ErrorCode::conflict, fmt::format("job {} is {}: finish it first", now.id, name_of(now.state))});
    }
    jobs_.remove(job, done);
  });
}

}  // namespace perseus::service
