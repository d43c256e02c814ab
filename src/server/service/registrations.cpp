#include "server/service/registrations.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "server/jobs/identity.h"
#include "server/jobs/pipeline_input.h"
#include "server/live/learned_profile.h"
#include "server/live/registration_checks.h"

namespace perseus::service {

namespace {

std::string fact_of(const std::map<std::string, std::string>& facts, std::string_view name) {
  const auto found = facts.find(std::string(name));
  return found == facts.end() ? std::string() : found->second;
}

/// The same for the same key of the same token, so two requests cannot make two jobs of it.
std::string id_of_key(const jobs::RegisterJob& request) {
  return "j_" + jobs::content_key(
                    fmt::format("job\n{}\n{}", fact_of(request.facts, live::kOwnerFact), request.idempotency_key));
}

Status check_same_request(const jobs::Job& job, const jobs::RegisterJob& request) {
  if (fact_of(job.spec.facts, live::kRequestFact) == request.fingerprint) return Ok{};
  return Error{ErrorCode::invalid_input,
               fmt::format("Idempotency-Key: '{}' registered job {} from another body; allowed: "
                           "the same body, or another key",
                           request.idempotency_key, job.id)};
}

}  // namespace

void Registrations::registered_before(const jobs::RegisterJob& request, work::Done<jobs::RegisterJobAnswer> done) {
  const std::string id = id_of_key(request);
  jobs_.execute(id, {[request](const jobs::Job& job, double) -> Result<live::Decision> {
                       if (Status same = check_same_request(job, request); !same) return same.error();
                       return live::Decision{};
                     },
                     [this, id, done = std::move(done)](const Status& status) {
                       if (!status) return done(status.error());
                       done(registered(id));
                     }});
}

void Registrations::register_job(jobs::RegisterJob request, work::Done<jobs::RegisterJobAnswer> done) {
  done = counted_as_owned(request, std::move(done));
  if (request.idempotency_key.empty()) {
    std::string prefix = request.id_prefix.empty() ? "j_" : request.id_prefix + "+";
    return make_job(prefix + options_.host->random_id(), std::move(request), std::move(done));
  }
  registered_before(request, [this, request, done](const Result<jobs::RegisterJobAnswer>& before) {
    if (before || before.error().code != ErrorCode::not_found) return done(before);
    make_job(id_of_key(request), request, done);
  });
}

jobs::RegisterJobAnswer Registrations::registered(const std::string& id) {
  const live::LiveJob* const live = jobs_.in_memory(id);
  return {id, std::string(name_of(live == nullptr ? jobs::JobState::registered : live->job.state))};
}

void Registrations::make_job(const std::string& id, jobs::RegisterJob request,
                             work::Done<jobs::RegisterJobAnswer> done) {
  auto registered = live::decide_job(request, options_.max_ranks);
  if (!registered) return done(registered.error());
  if (Status prefix = check_text("id_prefix", request.id_prefix, 200); !prefix) return done(prefix.error());
  if (!request.idempotency_key.empty()) registered->facts.emplace(live::kRequestFact, request.fingerprint);
  const auto create = [this, registered = *registered, request, id, done](Result<live::Decision> profiles) {
    if (!profiles) return done(profiles.error());
    profiles->events.insert(profiles->events.begin(), registered);
    create_job(id, request, *std::move(profiles), done);
  };
  const auto read = [request, latency_s = options_.switch_latency_s,
                     most_computations = options_.max_computations](store::Store& from) -> Result<plans::JobProfiles> {
    if (request.shape) {
      if (Status fits = jobs::check_shape(*request.shape, most_computations); !fits) return fits.error();
    }
    return plans::JobProfiles::read(from, request, latency_s);
  };
  store_.read<plans::JobProfiles>(
      read, [this, create, done,
             limits = plans::input_limits(options_, request.degrees.pp)](Result<plans::JobProfiles> found) {
        if (!found) return done(found.error());
        if (found->given.empty() && !found->learned) return create(found->complete(limits));
        const auto complete = [profiles = *std::move(found), limits] { return profiles.complete(limits); };
        work::run_off_thread(executor_, complete, create);
      });
}

void Registrations::create_job(const std::string& id, const jobs::RegisterJob& request, live::Decision decision,
                               const work::Done<jobs::RegisterJobAnswer>& done) {
  const auto decide = [decision = std::move(decision), request](const jobs::Job& job,
                                                                double) -> Result<live::Decision> {
    if (job.state == jobs::JobState::none) return decision;
    // The same key arrived twice at once.
    if (Status same = check_same_request(job, request); !same) return same.error();
    return live::Decision{};
  };
  const auto created = [this, id, done](const Status& status) { status ? done(registered(id)) : done(status.error()); };
  if (jobs_.in_memory(id) != nullptr) return jobs_.execute(id, {decide, created});
  jobs_.create(id, {decide, created});
}

views::JobList::Owned Registrations::under_way(const std::string& token) const {
  const auto found = under_way_.find(token);
  return found == under_way_.end() ? views::JobList::Owned{} : found->second;
}

work::Done<jobs::RegisterJobAnswer> Registrations::counted_as_owned(const jobs::RegisterJob& request,
                                                                    work::Done<jobs::RegisterJobAnswer> done) {
  const auto owner = request.facts.find(std::string(live::kOwnerFact));
  if (owner == request.facts.end()) return done;
  const std::int64_t ranks = request.degrees.world_size();
  const auto count = [this, token = owner->second, ranks](int sign) {
    views::JobList::Owned& owned = under_way_[token];
    owned.jobs += sign;
    owned.ranks += sign * ranks;
    if (owned.jobs == 0) under_way_.erase(token);
  };
  count(1);
  return [count, done = std::move(done)](const Result<jobs::RegisterJobAnswer>& registered) {
    count(-1);
    done(registered);
  };
}

void Registrations::register_rank(jobs::RegisterRank request, work::Done<jobs::RegisterRankAnswer> done) {
  const std::string id = request.job;
  const int number = request.rank;
  const bool with_plan = request.with_plan;
  const auto is_new = std::make_shared<bool>(false);
  // The process calls now, however long its registration waits for the store.
  live::LiveJob* const live = jobs_.in_memory(id);
  const bool waits = live != nullptr && (store_.writes_late() || !live->is_durable());
  if (waits && decide_registration(live->job, request)) jobs_.rank_waited(*live, std::nullopt);
  access_.execute(id, {[this, is_new, request = std::move(request)](const jobs::Job& job, double) {
                         auto decision = decide_registration(job, request);
                         *is_new = decision && std::ranges::any_of(decision->events, [](const jobs::EventBody& body) {
                                     return std::holds_alternative<jobs::RankRegistered>(body);
                                   });
                         return decision;
                       },
                       [this, id, number, is_new, with_plan, done = std::move(done)](const Status& status) {
                         if (!status) return done(status.error());
                         rank_registered(id, number, *is_new, with_plan, done);
                       }});
}

Result<live::Decision> Registrations::decide_registration(const jobs::Job& given, const jobs::RegisterRank& request) {
  live::Decision decision;
  std::optional<jobs::Job> revived;
  if (given.state == jobs::JobState::expired) {
    decision.events.emplace_back(jobs::JobRevived{});
    revived.emplace(given).state = given.state_before_expiry;
  }
  const jobs::Job& job = revived ? *revived : given;
  const live::LiveJob* const live = jobs_.in_memory(job.id);
  const bool known = live != nullptr && live->has_rank(request.rank);
  auto rank = live::decide_rank(job, request, known ? silence_of(*live, request.rank) : std::nullopt);
  if (!rank) return rank.error();
  if (!*rank) return decision;
  decision.events.emplace_back(**std::move(rank));
  return decision;
}

void Registrations::rank_registered(const std::string& id, int rank, bool is_new, bool with_plan,
                                    const work::Done<jobs::RegisterRankAnswer>& done) {
  live::LiveJob* const now = jobs_.in_memory(id);
  if (now == nullptr || !now->has_rank(rank)) return done(jobs::RegisterRankAnswer{});
  if (is_new && jobs::waits_for_plans(now->job)) {
    now->calls.registered(rank, clock_.now_s());
    jobs_.set_wake(*now, clock_.now_s());
  } else {
    jobs_.rank_called(*now, rank);
  }
  const jobs::Job& job = now->job;
  jobs::RegisterRankAnswer registered{job.ranks_registered, job.spec.degrees.world_size(), job.ranks[rank]->epoch};
  if (!with_plan) return done(registered);
  waiting_.wait({.job = id, .rank = rank, .iteration = std::nullopt, .max_wait_s = 0, .epoch = registered.epoch},
                [registered, done](const Result<jobs::PlanAnswer>& answer) mutable {
                  if (answer && answer->schedule) registered.plan = *answer;
                  done(registered);
                });
}

std::optional<double> Registrations::silence_of(const live::LiveJob& live, int rank) const {
  if (live.calls.waits(rank)) return std::nullopt;
  const double silent_s =
      clock_.now_s() - std::max({opened_s_, live.job.created_s, live.calls.last_s(rank).value_or(0)});
  return silent_s >= options_.rank_lease_s ? std::optional(silent_s) : std::nullopt;
}

}  // namespace perseus::service
