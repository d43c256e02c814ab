#include "server/service/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "io/formats/json_reader.h"
#include "server/jobs/identity.h"
#include "server/jobs/pipeline_input.h"
#include "server/jobs/stragglers.h"
#include "server/jobs/view_json.h"
#include "server/service/job_view.h"
#include "server/service/learned_profile.h"
#include "server/service/registration.h"
#include "server/service/service_state.h"

namespace perseus::service {

namespace {

Keep keep_of(const ServiceOptions& options) {
  return {options.keep_finished_s, options.keep_finished_bytes, options.keep_unused_s};
}

}  // namespace

Service::Service(std::shared_ptr<State> state) : state_(std::move(state)) {}

Service::~Service() { state_->end_waits(); }

Result<std::unique_ptr<Service>> Service::open(ServiceOptions options, store::Store& store, const Clock& clock,
                                               Executor& executor) {
  if (!options.random_id) options.random_id = jobs::random_hex_id;
  if (options.owner.empty()) options.owner = options.random_id();
  auto state = std::make_shared<State>(std::move(options), store, clock, executor);
  LiveJobs::Hooks hooks;
  // The state owns the jobs, so it outlives these callbacks.
  State* self = state.get();
  hooks.next_follow_up = [self](LiveJob& live, double now_s) { return self->next_follow_up(live, now_s); };
  hooks.committed = [self](LiveJob& live, const auto& events) { self->committed(live, events); };
  hooks.summary = [](const LiveJob& live, double now_s) { return jobs::format_summary(summary_of(live, now_s)); };
  hooks.next_wake = [self](const LiveJob& live, double now_s) { return self->next_wake_of(live, now_s); };
  hooks.writing = [self](const LiveJob& live, std::int64_t bytes) {
    const auto owner = live.job.spec.facts.find(std::string(kOwnerFact));
    if (owner != live.job.spec.facts.end()) self->stored_bytes->add(owner->second, bytes);
  };
  hooks.removed = [self](LiveJob& live) { self->removed(live); };
  hooks.shown = [self](LiveJob& live) { self->wake_waiters(live); };
  state->jobs = std::make_shared<LiveJobs>(*state->store, clock, std::move(hooks));
  state->jobs->earlier_wake = state->store->earlier_wake = [self] {
    if (self->earlier_wake) self->earlier_wake();
  };
  if (Status opened = state->jobs->open(store); !opened) return opened.error();
  state->upkeep = std::make_shared<Upkeep>(keep_of(state->options), *state->store, clock,
                                           [self](const std::string& id, std::function<void(const Status&)> done) {
                                             self->jobs->remove(id, std::move(done));
                                           });
  state->upkeep->earlier_wake = state->jobs->earlier_wake;
  state->stored_bytes = std::make_shared<StoredBytes>(*state->store, StoredBytes::count(store), clock.now_s());
  state->jobs->index().on_erased = [self](const store::JobIndexRow& gone) { self->removed(gone); };
  state->jobs->index().on_changed = [self](const std::string&) {
    if (self->list_changed) self->list_changed();
  };
  const std::weak_ptr<LiveJobs> jobs = state->jobs;
  store.on_foreign({[jobs](const std::string& job, std::int64_t sequence) {
                      if (const auto live = jobs.lock()) live->on_foreign(job, sequence);
                    },
                    state->options.tokens_changed});
  return std::unique_ptr<Service>(new Service(std::move(state)));
}

namespace {

std::string fact_of(const std::map<std::string, std::string>& facts, std::string_view name) {
  const auto found = facts.find(std::string(name));
  return found == facts.end() ? std::string() : found->second;
}

/// The id is the same for the same key of the same token, so two servers cannot make two jobs of it.
std::string id_of_key(const jobs::RegisterJob& request) {
  return "j_" +
         jobs::content_key(fmt::format("job\n{}\n{}", fact_of(request.facts, kOwnerFact), request.idempotency_key));
}

Status check_same_request(const jobs::Job& job, const jobs::RegisterJob& request) {
  const bool former = !job.spec.facts.contains(std::string(kRequestFact));
  if (fact_of(job.spec.facts, former ? kFormerRequestFact : kRequestFact) == request.fingerprint) return Ok{};
  return Error{ErrorCode::invalid_input,
               fmt::format("Idempotency-Key: '{}' has made job {} from another body; allowed: "
                           "the same body, or another key",
                           request.idempotency_key, job.id)};
}

}  // namespace

void Service::registered_before(const jobs::RegisterJob& request, Done<jobs::RegisteredJob> done) {
  const std::string id = id_of_key(request);
  state_->jobs->execute(id, {[request](const jobs::Job& job, double) -> Result<Decision> {
                               if (Status same = check_same_request(job, request); !same) return same.error();
                               return Decision{};
                             },
                             [self = state_.get(), id, done = std::move(done)](const Status& status) {
                               if (!status) return done(status.error());
                               done(self->registered(id));
                             }});
}

void Service::register_job(jobs::RegisterJob request, Done<jobs::RegisteredJob> done) {
  done = state_->counted_as_owned(request, std::move(done));
  if (request.idempotency_key.empty()) {
    std::string prefix = request.id_prefix.empty() ? "j_" : request.id_prefix + "+";
    return state_->make_job(prefix + state_->options.random_id(), std::move(request), std::move(done));
  }
  registered_before(request, [weak = std::weak_ptr(state_), request, done](const Result<jobs::RegisteredJob>& before) {
    const auto self = weak.lock();
    if (!self) return;
    if (before || before.error().code != ErrorCode::not_found) return done(before);
    self->make_job(id_of_key(request), request, done);
  });
}

jobs::RegisteredJob Service::State::registered(const std::string& id) {
  const LiveJob* const live = jobs->in_memory(id);
  return {id, std::string(name_of(live == nullptr ? jobs::JobState::registered : live->job.state))};
}

void Service::State::make_job(const std::string& id, jobs::RegisterJob request, Done<jobs::RegisteredJob> done) {
  auto registered = decide_job(request, options.max_ranks);
  if (!registered) return done(registered.error());
  if (Status prefix = check_text("id_prefix", request.id_prefix, 200); !prefix) return done(prefix.error());
  if (!request.idempotency_key.empty()) registered->facts.emplace(kRequestFact, request.fingerprint);
  const int pp = request.degrees.pp;
  const auto create = [registered = *registered, request, id, done](State& state, Result<Decision> known) {
    if (!known) return done(known.error());
    known->events.insert(known->events.begin(), registered);
    const auto decide = [decision = *std::move(known), request](const jobs::Job& job, double) -> Result<Decision> {
      if (job.state == jobs::JobState::none) return decision;
      // The same key arrived twice at once, here or at another server.
      if (Status same = check_same_request(job, request); !same) return same.error();
      return Decision{};
    };
    const auto told = [self = &state, id, done](const Status& status) {
      if (!status) return done(status.error());
      done(self->registered(id));
    };
    if (state.jobs->in_memory(id) != nullptr) return state.jobs->execute(id, {decide, told});
    state.jobs->create(id, {decide, told});
  };
  const auto read = [request = std::move(request), latency_s = options.switch_latency_s,
                     most_computations = options.max_computations](store::Store& from) -> Result<JobProfiles> {
    if (request.shape) {
      if (Status fits = jobs::check_shape(*request.shape, most_computations); !fits) return fits.error();
    }
    return JobProfiles::read(from, request, latency_s);
  };
  store->read<JobProfiles>(read, [weak = weak_from_this(), pp, create, done](Result<JobProfiles> found) {
    const auto self = weak.lock();
    if (!self) return;
    if (!found) return done(found.error());
    self->complete_profiles(*std::move(found), pp, create);
  });
}

namespace {

/// True for the first process of a restarted job.
bool begins_anew(const jobs::Job& job, const jobs::EventBody& event) {
  const auto* const registered = std::get_if<jobs::RankRegistered>(&event);
  return registered != nullptr && job.ranks[registered->rank] && job.ranks[registered->rank]->restarts == job.restarts;
}

/// For a rank that asks again, including one whose client has given up on a job that is over.
Error revived_job(const std::string& job) {
  return {ErrorCode::unavailable, fmt::format("job {} had expired and is revived: ask again", job)};
}

}  // namespace

void Service::register_rank(jobs::RegisterRank request, Done<jobs::RegisteredRank> done) {
  State* self = state_.get();
  const std::string id = request.job;
  const int number = request.rank;
  const bool with_plan = request.with_plan;
  self->ask(
      id,
      {[self, request = std::move(request)](const jobs::Job& given, double now_s) -> Result<Decision> {
         Decision decision;
         std::optional<jobs::Job> revived;
         if (given.state == jobs::JobState::expired) {
           decision.events.emplace_back(jobs::JobRevived{});
           revived.emplace(given).state = given.state_before_expiry;
         }
         const jobs::Job& job = revived ? *revived : given;
         const LiveJob* const live = self->jobs->in_memory(job.id);
         const bool known = live != nullptr && live->has_rank(request.rank);
         auto rank = decide_rank(job, request, known ? self->silence_of(*live, request.rank) : std::nullopt);
         if (!rank) return rank.error();
         if (!*rank) return decision;
         // Iteration numbers restart: those before are counted first.
         const LiveJob* current = begins_anew(job, **rank) ? self->jobs->in_memory(job.id) : nullptr;
         if (current != nullptr) {
           for (const jobs::IterationsCounted& count : counts_since(*current, now_s)) {
             decision.events.emplace_back(count);
           }
         }
         decision.events.emplace_back(**std::move(rank));
         return decision;
       },
       [this, self, id, number, with_plan, done](const Status& status) {
         if (!status) return done(status.error());
         LiveJob* const now = self->jobs->in_memory(id);
         if (now == nullptr || !now->has_rank(number)) return done(jobs::RegisteredRank{});
         now->hears(number, self->clock.now_s());
         const jobs::Job& job = now->job;
         jobs::RegisteredRank registered{job.ranks_registered, job.spec.degrees.world_size(), job.ranks[number]->epoch};
         if (!with_plan) return done(registered);
         wait_for_plan(
             {.job = id, .rank = number, .iteration = std::nullopt, .max_wait_s = 0, .epoch = registered.epoch},
             [registered, done](const Result<jobs::PlanAnswer>& answer) mutable {
               if (answer && answer->schedule) registered.plan = *answer;
               done(registered);
             });
       }});
}

namespace {

/// Drops a list of energies of the wrong length; names the values that the energy meter leaves out.
std::vector<std::string> check_energies(jobs::ReportIterations& request) {
  std::vector<Joules>& energies = request.iteration_energy;
  const std::size_t iterations = request.iteration_time.size();
  if (!energies.empty() && energies.size() != iterations) {
    const std::size_t found = energies.size();
    energies.clear();
    return {
        fmt::format("iteration_energy_j: {} values; allowed: {}, as many as iteration_time_s has", found, iterations)};
  }
  std::vector<std::string> rejected;
  for (std::size_t i = 0; i < energies.size(); ++i) {
    if (energies[i] > Joules(0) && std::isfinite(energies[i].value())) continue;
    rejected.push_back(fmt::format("iteration_energy_j[{}]: {} J; allowed: more than 0", i, energies[i].value()));
  }
  return rejected;
}

}  // namespace

void Service::report_iterations(jobs::ReportIterations request, Done<jobs::ReportedIterations> done) {
  if (state_->draining) return done(Error{ErrorCode::unavailable, "the server is stopping: report again"});
  const std::string id = request.job;
  const int rank = request.rank;
  const std::int64_t version = request.plan_version.value_or(0);
  state_->with_rank(id, rank, version,
                    [self = state_.get(), request = std::move(request),
                     done = std::move(done)](const Result<LiveJob*>& live) mutable {
                      if (!live) return done(live.error());
                      self->report(**live, std::move(request), std::move(done));
                    });
}

void Service::State::report(LiveJob& live, jobs::ReportIterations request, Done<jobs::ReportedIterations> done) {
  const jobs::Job& job = live.job;
  if (Status held = check_holder(job, request.rank, request.epoch); !held) return done(held.error());
  live.hears(request.rank, clock.now_s());
  if (revive_if_expired(live)) return done(revived_job(job.id));
  if (!job.live()) return done(Error{ErrorCode::conflict, fmt::format("job {} is {}", job.id, name_of(job.state))});
  for (const Seconds time : request.iteration_time) {
    if (time > Seconds(0) && std::isfinite(time.value())) continue;
    return done(Error{ErrorCode::usage, fmt::format("iteration time: {} s; allowed: more than 0", time.value())});
  }
  if (request.last_iteration && (*request.last_iteration < 0 || *request.last_iteration > std::int64_t{1} << 52)) {
    return done(Error{ErrorCode::usage, fmt::format("iteration: {}; allowed: 0 to 2^52", *request.last_iteration)});
  }
  const bool counts = job.ranks[request.rank]->restarts == job.restarts;
  std::vector<std::string> rejected;
  if (request.last_iteration && counts &&
      !live.note_progress(request.rank, *request.last_iteration, *request.last_iteration, clock.now_s())) {
    rejected.push_back(fmt::format("last_iteration: {}; no other rank is that far", *request.last_iteration));
    request.last_iteration.reset();
  }
  if (const auto window = window_of(live, request)) {
    return report_window(live, *window, std::move(request), std::move(done));
  }
  if (request.last_iteration && counts) {
    note_followed(live, request);
    keep_count(live, request);
  }
  std::ranges::move(check_energies(request), std::back_inserter(rejected));
  observe_times(live, request);
  observe_energies(live, request);
  done(jobs::ReportedIterations{std::move(rejected)});
}

void Service::drop_plan(jobs::DropPlan request, Done<Ok> done) {
  if (Status named = check_text("reason", request.reason, 1024); !named) return done(named.error());
  for (const Seconds time : {request.measured, request.promised}) {
    if (time >= Seconds(0) && time.value() <= 1e9) continue;
    return done(Error{ErrorCode::usage, fmt::format("time: {} s; allowed: 0 to 1e9", time.value())});
  }
  const std::string id = request.job;
  const int rank = request.rank;
  const std::int64_t epoch = request.epoch;
  const auto dropped = std::make_shared<bool>(false);
  const auto decide = [request = std::move(request), dropped](const jobs::Job& job, double) -> Result<Decision> {
    Decision decision;
    // A late report on a plan that was replaced meanwhile, or the same report of another rank.
    const bool in_force = job.live() && job.plan && job.plan->version == request.version;
    if (!in_force) return decision;
    const jobs::PlanDeployed::Choice& choice = job.plan->of(job.ranks[request.rank]->dp_rank);
    if (choice.point < 0 || job.dropped.contains(std::string(jobs::input_of_frontier(choice.input)))) return decision;
    decision.events.emplace_back(jobs::PlanDropped{request.rank, request.version, request.reason,
                                                   request.measured.value(), request.promised.value()});
    *dropped = true;
    return decision;
  };
  const auto told = [state = state_.get(), id, dropped, done](const Status& status) {
    const LiveJob* const now = state->jobs->in_memory(id);
    if (status && *dropped && now != nullptr) return state->forget_learned(now->job, done);
    status ? done(Ok{}) : done(status.error());
  };
  state_->with_rank(id, rank, 0, [self = state_.get(), id, rank, epoch, decide, told](const Result<LiveJob*>& live) {
    if (!live) return told(live.error());
    if (Status held = check_holder((*live)->job, rank, epoch); !held) return told(held);
    self->jobs->execute(id, {decide, told});
  });
}

void Service::finish_job(const std::string& job, Done<Ok> done) {
  State* self = state_.get();
  self->ask(job, {[self](const jobs::Job& now, double now_s) -> Result<Decision> {
                    Decision decision;
                    if (now.state == jobs::JobState::finished) return decision;
                    if (!now.live()) {
                      return Error{ErrorCode::conflict, fmt::format("job {} is {}", now.id, name_of(now.state))};
                    }
                    if (const LiveJob* current = self->jobs->in_memory(now.id)) {
                      for (const jobs::IterationsCounted& count : counts_since(*current, now_s)) {
                        decision.events.emplace_back(count);
                      }
                    }
                    decision.events.emplace_back(jobs::JobFinished{});
                    return decision;
                  },
                  [done](const Status& status) { status ? done(Ok{}) : done(status.error()); }});
}

void Service::remove_job(const std::string& job, Done<Ok> done) {
  state_->jobs->with(job, [self = state_.get(), job, done = std::move(done)](const Result<LiveJob*>& live) {
    const bool damaged = !live && live.error().code == ErrorCode::internal;
    if (!live && !damaged) return done(live.error());
    if (live && (*live)->job.unknown_events > 0) return done(later_version(job));
    if (live && (*live)->job.live()) {
      const jobs::Job& now = (*live)->job;
      return done(Error{ErrorCode::conflict, fmt::format("job {} is {}: finish it first", now.id, name_of(now.state))});
    }
    self->jobs->remove(job, [done](const Status& removed) { removed ? done(Ok{}) : done(removed.error()); });
  });
}

jobs::WaitId Service::wait_for_plan(jobs::WaitForPlan request, Done<jobs::PlanAnswer> done) {
  State* const self = state_.get();
  const jobs::WaitId id = self->next_wait++;
  // Known jobs are answered without a read.
  LiveJob* const live = self->jobs->in_memory(request.job);
  if (live != nullptr && live->knows(request.rank, request.have_version)) {
    live->last_seen_s = self->clock.now_s();
    return self->wait(*live, request, id, std::move(done));
  }
  self->waits_to_begin.emplace(id, std::move(done));
  const std::string job = request.job;
  const int rank = request.rank;
  const std::int64_t version = request.have_version;
  self->find_rank(job, rank, version, [self, id, request = std::move(request)](const Result<LiveJob*>& found) {
    auto begun = self->waits_to_begin.extract(id);
    if (!begun) return;  // the wait was canceled
    if (!found) return begun.mapped()(found.error());
    self->wait(**found, request, id, std::move(begun.mapped()));
  });
  return self->waits_to_begin.contains(id) || self->job_of_wait.contains(id) ? id : 0;
}

jobs::WaitId Service::State::wait(LiveJob& live, const jobs::WaitForPlan& request, jobs::WaitId id,
                                  Done<jobs::PlanAnswer> done) {
  const double now_s = clock.now_s();
  if (request.iteration && (*request.iteration < 0 || *request.iteration > std::int64_t{1} << 52)) {
    done(Error{ErrorCode::usage, fmt::format("iteration: {}; allowed: 0 to 2^52", *request.iteration)});
    return 0;
  }
  if (Status held = check_holder(live.job, request.rank, request.epoch); !held) return done(held.error()), 0;
  live.hears(request.rank, now_s);
  const bool counts = live.job.ranks[request.rank]->restarts == live.job.restarts;
  if (request.iteration && counts) {
    live.note_progress(request.rank, *request.iteration, std::max<std::int64_t>(0, *request.iteration - 1), now_s);
  }
  if (revive_if_expired(live)) return done(revived_job(request.job)), 0;
  if (auto answer = plan_for(live, request.rank, request.have_version)) return done(*std::move(answer)), 0;
  if (draining) return done(Error{ErrorCode::unavailable, "the server is stopping: ask again"}), 0;
  if (request.max_wait_s && !(*request.max_wait_s > 0)) return done(jobs::PlanAnswer{nullptr, request.rank, 0}), 0;
  Waiter waiter{request.rank, request.have_version, std::nullopt, std::move(done), request.asks_once, request.epoch};
  const auto most_s = request.asks_once ? std::optional(options.maximum_clock_after_s) : request.max_wait_s;
  if (most_s) {
    waiter.deadline_s = now_s + *most_s;
    const bool earlier = wait_deadlines.empty() || *waiter.deadline_s < wait_deadlines.begin()->first;
    wait_deadlines.emplace(*waiter.deadline_s, id);
    if (earlier && earlier_wake) earlier_wake();
  }
  job_of_wait.emplace(id, request.job);
  live.waiters.emplace(id, std::move(waiter));
  return id;
}

void Service::cancel_wait(jobs::WaitId wait) {
  state_->waits_to_begin.erase(wait);
  state_->take_wait(wait);
}

void Service::set_straggler(jobs::SetStraggler request, Done<jobs::StragglerSet> done) {
  State* self = state_.get();
  if (request.job.empty()) {
    if (request.target.accelerator.empty()) {
      return done(Error{ErrorCode::usage, "without a job, a straggler is named by its accelerator"});
    }
    return self->with_accelerator(request.target.accelerator, [this, request, done = std::move(done)](
                                                                  const Result<std::vector<std::string>>& jobs) {
      jobs ? set_straggler_of(*jobs, request, done) : done(jobs.error());
    });
  }
  auto set = std::make_shared<jobs::StragglerSet>();
  const std::string id = request.job;
  self->ask(id, {[request = std::move(request), set](const jobs::Job& job, double now_s) -> Result<Decision> {
                   const auto decided = jobs::decide_straggler(job, request, now_s);
                   if (!decided) return decided.error();
                   Decision decision;
                   set->notices.clear();
                   for (const jobs::NoticeDecision& one : *decided) {
                     set->notices.push_back(one.notice);
                     std::ranges::copy(one.events, std::back_inserter(decision.events));
                   }
                   return decision;
                 },
                 [set, done](const Status& status) { status ? done(*set) : done(status.error()); }});
}

void Service::set_straggler_of(const std::vector<std::string>& jobs, const jobs::SetStraggler& request,
                               const Done<jobs::StragglerSet>& done) {
  if (jobs.empty()) {
    return done(Error{ErrorCode::not_found, fmt::format("no live job has accelerator {}", request.target.accelerator)});
  }
  // Collects the answers one after another into one. A job that has ended since the lookup has no straggler.
  struct Answers {
    jobs::StragglerSet set;
    std::size_t missing = 0;
    std::optional<Error> failed, ended;
  };
  auto all = std::make_shared<Answers>();
  all->missing = jobs.size();
  const auto in_one = [this, all, done, request](const std::string& id) {
    jobs::SetStraggler one = request;
    one.job = id;
    set_straggler(std::move(one), [this, all, done](Result<jobs::StragglerSet> set) {
      if (set) {
        std::ranges::move(set->notices, std::back_inserter(all->set.notices));
      } else {
        (set.error().code == ErrorCode::conflict ? all->ended : all->failed) = set.error();
      }
      if (--all->missing > 0) return;
      if (!all->failed && !(all->ended && all->set.notices.empty())) return done(all->set);
      // Applies to all jobs or to none.
      for (const jobs::StragglerSet::Notice& notice : all->set.notices) {
        withdraw_straggler({notice.job, notice.id}, [](const Result<Ok>&) {});
      }
      done(all->failed ? *all->failed : *all->ended);
    });
  };
  state_->one_after_the_other(std::make_shared<const std::vector<std::string>>(jobs), 0, in_one);
}

void Service::State::with_accelerator(const std::string& accelerator, Done<std::vector<std::string>> done) {
  std::vector<std::string> live_jobs;
  for (const auto& [id, row] : jobs->index()) {
    if (row.state != name_of(jobs::JobState::finished) && row.state != name_of(jobs::JobState::expired))
      live_jobs.push_back(id);
  }
  struct Search {
    std::vector<std::string> with_it;
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
    jobs->with(id, [id, accelerator, search, one_less](const Result<LiveJob*>& live) {
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

namespace {

template <class Decide>
JobCommand simple_command(Decide decide, Done<Ok> done) {
  return {[decide = std::move(decide)](const jobs::Job& job, double) -> Result<Decision> {
            if (!job.live()) {
              return Error{ErrorCode::conflict, fmt::format("job {} is {}", job.id, name_of(job.state))};
            }
            Result<std::vector<jobs::EventBody>> events = decide(job);
            if (!events) return events.error();
            return Decision{*std::move(events), {}};
          },
          [done = std::move(done)](const Status& status) { status ? done(Ok{}) : done(status.error()); }};
}

}  // namespace

void Service::withdraw_straggler(jobs::WithdrawStraggler request, Done<Ok> done) {
  const std::string id = request.job;
  state_->ask(id, simple_command([request = std::move(request)](
                                     const jobs::Job& job) { return jobs::decide_withdrawal(job, request); },
                                 std::move(done)));
}

void Service::set_policy(jobs::SetPolicy request, Done<Ok> done) {
  if (Status checked = jobs::check_policy(request.policy); !checked) return done(checked.error());
  if (const auto* slowdown = std::get_if<jobs::MaxSlowdown>(&request.policy)) {
    if (Status unit = check_text("unit", slowdown->unit, 64); !unit) return done(unit.error());
  }
  const std::string id = request.job;
  const auto decide = [policy =
                           std::move(request.policy)](const jobs::Job& job) -> Result<std::vector<jobs::EventBody>> {
    const auto found = job.policies.find(std::string(jobs::kind_of(policy)));
    if (found != job.policies.end() && found->second == policy) return std::vector<jobs::EventBody>{};
    return std::vector<jobs::EventBody>{jobs::PolicySet{policy}};
  };
  state_->ask(id, simple_command(decide, std::move(done)));
}

void Service::clear_policy(jobs::ClearPolicy request, Done<Ok> done) {
  const auto decide = [kind = request.kind](const jobs::Job& job) -> Result<std::vector<jobs::EventBody>> {
    if (job.policies.contains(kind)) return std::vector<jobs::EventBody>{jobs::PolicyCleared{kind}};
    return Error{ErrorCode::not_found, fmt::format("job {} has no policy '{}'", job.id, valid_utf8(kind))};
  };
  state_->ask(request.job, simple_command(decide, std::move(done)));
}

// ---- Reads

const JobList& Service::job_list() {
  state_->update_list();
  return state_->list;
}

void Service::refresh_row(const std::string& job) { state_->update_row(job); }

std::optional<std::string> Service::owner_of(const std::string& job) {
  const JobList::Row* row = state_->list.find(job);
  if (row == nullptr && state_->jobs->index().has_changed(job)) {
    state_->update_row(job);
    row = state_->list.find(job);
  }
  return row == nullptr ? std::nullopt : row->owner;
}

void Service::keep_job_changes(bool keep) {
  state_->update_list();
  state_->list.keep_changes(keep);
}

std::vector<JobList::Change> Service::take_job_changes() {
  state_->update_list();
  return state_->list.take_changes();
}

void Service::on_list_changed(std::function<void()> changed) { state_->list_changed = std::move(changed); }

void Service::job(const std::string& job, Done<jobs::JobView> done) {
  const auto make = [self = state_.get()](LiveJob& live) -> Result<jobs::JobView> {
    self->want_frontiers_to_show(live);  // after a restart, for the next request
    return view_of(live, self->clock.now_s());
  };
  state_->show<jobs::JobView>(job, make, std::move(done));
}

namespace {

using Frontier = std::shared_ptr<const jobs::CharacterizedPipeline>;

Result<Frontier> frontier_of(const LiveJob& live, int pipeline, const Characterizations& characterizations) {
  const jobs::Job& job = live.job;
  if (pipeline < 0 || pipeline >= job.num_pipelines()) {
    return Error{ErrorCode::not_found,
                 fmt::format("job {}: no pipeline {}; it has 0 to {}", job.id, pipeline, job.num_pipelines() - 1)};
  }
  const std::string& input = jobs::ruling_frontier(job, pipeline);
  if (const auto frontier = live.frontiers.find(input); frontier != live.frontiers.end()) return frontier->second;
  if (auto known = characterizations.known(input)) return known;
  return Error{ErrorCode::not_found, fmt::format("job {}: pipeline {} has no frontier yet", job.id, pipeline)};
}

Result<jobs::TimelineView> timeline_of(const jobs::Job& job, int pipeline, const Frontier& frontier) {
  const bool planned = job.plan && job.plan->of(pipeline).point >= 0 && job.plan->of(pipeline).input == frontier->key;
  if (planned) return jobs::TimelineView{frontier, job.plan->of(pipeline).point, job.plan->version};
  return Error{ErrorCode::not_found, fmt::format("job {}: pipeline {} has no plan yet", job.id, pipeline)};
}

}  // namespace

void Service::frontier(const std::string& job, int pipeline, Done<Frontier> done) {
  const auto make = [self = state_.get(), pipeline](const LiveJob& live) {
    return frontier_of(live, pipeline, *self->characterizations);
  };
  state_->show<Frontier>(job, make, std::move(done));
}

void Service::timeline(const std::string& job, int pipeline, Done<jobs::TimelineView> done) {
  const auto make = [self = state_.get(), pipeline](const LiveJob& live) {
    const auto frontier = frontier_of(live, pipeline, *self->characterizations);
    return frontier ? timeline_of(live.job, pipeline, *frontier) : Result<jobs::TimelineView>(frontier.error());
  };
  state_->show<jobs::TimelineView>(job, make, std::move(done));
}

StoreHealth Service::store_health() {
  state_->store->probe();
  return state_->store->health();
}

std::shared_ptr<StoreAccess> Service::store_access() const { return state_->store; }

JobList::Owned Service::owned_by(const std::string& token) {
  JobList::Owned owned = job_list().owned_by(token);
  if (const auto under_way = state_->registering.find(token); under_way != state_->registering.end()) {
    owned.jobs += under_way->second.jobs;
    owned.ranks += under_way->second.ranks;
  }
  return owned;
}

Done<jobs::RegisteredJob> Service::State::counted_as_owned(const jobs::RegisterJob& request,
                                                           Done<jobs::RegisteredJob> done) {
  const auto owner = request.facts.find(std::string(kOwnerFact));
  if (owner == request.facts.end()) return done;
  const std::int64_t ranks = request.degrees.world_size();
  const auto count = [self = this, token = owner->second, ranks](int sign) {
    JobList::Owned& owned = self->registering[token];
    owned.jobs += sign;
    owned.ranks += sign * ranks;
    if (owned.jobs == 0) self->registering.erase(token);
  };
  count(1);
  return [weak = weak_from_this(), count, done = std::move(done)](const Result<jobs::RegisteredJob>& registered) {
    if (const auto self = weak.lock()) count(-1);
    done(registered);
  };
}

std::int64_t Service::stored_bytes_of(const std::string& token) const { return state_->stored_bytes->of(token); }

ServiceCounts Service::counts() const {
  ServiceCounts counts;
  counts.jobs_in_memory = static_cast<std::int64_t>(state_->jobs->live().size());
  counts.waiting_ranks = static_cast<std::int64_t>(state_->job_of_wait.size());
  counts.subscriptions = static_cast<std::int64_t>(state_->subscriptions.size());
  counts.plans_deployed = state_->plans_deployed;
  counts.characterizations = state_->characterizations->computed();
  counts.characterizations_failed = state_->characterizations->failed();
  counts.characterizing = state_->characterizations->running();
  const Characterizations& planning = *state_->characterizations;
  for (const auto& [kind, name] : {std::pair{PlanningQueue::Kind::first, std::string_view("first")},
                                   {PlanningQueue::Kind::refinement, std::string_view("refinement")}}) {
    counts.planning.push_back({name, planning.waiting(kind), planning.under_way(kind)});
  }
  counts.plannings_stopped = state_->characterizations->stopped();
  counts.planner_s = state_->characterizations->planner_s();
  state_->update_list();
  const auto& states = state_->list.states();
  const auto count_state = [&](std::string_view name) {
    const auto found = states.find(name);
    counts.jobs_by_state.emplace_back(name, found == states.end() ? 0 : found->second);
  };
  for (const std::string_view state : listed_states()) count_state(state);
  counts.ranks = state_->list.live_ranks();
  counts.commits = state_->store->commits();
  counts.database_bytes = state_->store->size_bytes();
  for (const auto& [id, live] : state_->jobs->live()) {
    counts.stragglers_in_force += std::ranges::count(live->job.notices, true, &jobs::Notice::in_force);
  }
  return counts;
}

// ---- Subscriptions

void Service::subscribe(const std::string& job, std::int64_t after, std::function<void(const jobs::JobEvent&)> on,
                        Done<jobs::SubscriptionId> done) {
  state_->jobs->with(
      job, [self = state_.get(), job, after, on = std::move(on), done = std::move(done)](const Result<LiveJob*>& live) {
        if (!live) return done(live.error());
        const std::int64_t committed = (*live)->committed;
        const std::int64_t from = after < 0 || after > committed ? committed : after;
        const jobs::SubscriptionId id = self->next_subscription++;
        constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  // past events come first
        self->subscriptions.emplace(
            id, State::Subscription{job, from < committed ? never : committed,
                                    std::make_shared<const std::function<void(const jobs::JobEvent&)>>(on)});
        ++(*live)->subscribers;
        done(id);
        if (from < committed) self->tell_past(id, from);
      });
}

void Service::State::tell_past(jobs::SubscriptionId id, std::int64_t after) {
  const auto found = subscriptions.find(id);
  if (found == subscriptions.end()) return;
  const std::string& job = found->second.job;
  // Bytes that may wait for a stream's reader before the stream is cut (HttpServerOptions::stream_bytes).
  constexpr std::size_t most_bytes = std::size_t{2} << 20U, bytes_beside_text = 200;
  struct Part {
    std::vector<jobs::JobEvent> events;
    bool is_last = true;
  };
  store->read<Part>(
      [job, after](store::Store& from) -> Result<Part> {
        const auto stored = from.read(job, after);
        if (!stored) return stored.error();
        Part part;
        std::size_t bytes = 0;
        for (const store::StoredEvent& item : *stored) {
          if (bytes > most_bytes) {
            part.is_last = false;
            break;
          }
          const jobs::Event event = jobs::event_in_log(item.body);
          part.events.push_back({job, item.sequence, std::string(jobs::kind_of(event)), event.at_s, text_of(event)});
          bytes += part.events.back().text.size() + bytes_beside_text;
        }
        return part;
      },
      [weak = weak_from_this(), id, after](const Result<Part>& past) {
        const auto self = weak.lock();
        if (!self) return;
        // A reader gets nothing rather than a sequence with gaps; meanwhile the store is read again.
        if (!past) return self->retry_past(id, after);
        std::int64_t last = after;
        for (const jobs::JobEvent& event : past->events) {
          const auto subscription = self->subscriptions.find(id);
          if (subscription == self->subscriptions.end()) return;
          last = event.sequence;
          const auto on = subscription->second.on;
          (*on)(event);
        }
        const auto subscription = self->subscriptions.find(id);
        if (subscription == self->subscriptions.end()) return;
        if (!past->is_last) {
          const auto on = subscription->second.on;
          return (*on)({subscription->second.job, last, std::string(jobs::kPartOver), 0, ""});
        }
        const LiveJob* const live = self->jobs->in_memory(subscription->second.job);
        if (live != nullptr && live->committed > last) return self->tell_past(id, last);
        subscription->second.after = last;
      });
}

jobs::SubscriptionId Service::subscribe_all(std::function<void(const jobs::JobEvent&)> on) {
  const jobs::SubscriptionId id = state_->next_subscription++;
  state_->subscriptions.emplace(
      id,
      State::Subscription{"", 0, std::make_shared<const std::function<void(const jobs::JobEvent&)>>(std::move(on))});
  return id;
}

void Service::unsubscribe(jobs::SubscriptionId subscription) {
  const auto found = state_->subscriptions.find(subscription);
  if (found == state_->subscriptions.end()) return;
  if (LiveJob* live = state_->jobs->in_memory(found->second.job)) --live->subscribers;
  state_->subscriptions.erase(found);
}

// ---- Time

void Service::tick() {
  const double now_s = state_->clock.now_s();
  while (!state_->wait_deadlines.empty() && state_->wait_deadlines.begin()->first <= now_s) {
    const jobs::WaitId id = state_->wait_deadlines.begin()->second;
    state_->end_wait(id);
  }
  state_->store->tick(now_s);
  state_->characterizations->tick(now_s);
  state_->tell_late_past(now_s);
  for (const std::string& id : state_->jobs->take_due(now_s)) state_->wake(id);
  state_->jobs->forget_finished(static_cast<std::size_t>(state_->options.finished_jobs_in_memory));
  state_->upkeep->tick(now_s);
  state_->stored_bytes->tick(now_s);
}

void Service::State::wake(const std::string& id) {
  LiveJob* const known = jobs->in_memory(id);
  // Ranks are notified in time, even if the store does not accept the event.
  if (known != nullptr && known->is_adrift()) jobs->touch_shadow(*known);
  jobs->with(id, [this, id](const Result<LiveJob*>& live) {
    const double now_s = clock.now_s();
    if (!live) {
      const bool again = live.error().code != ErrorCode::not_found && live.error().code != ErrorCode::internal;
      if (again) jobs->wake_again(id, now_s + kRetryAfter_s);
      return;
    }
    (*live)->retry_s.reset();
    want_frontiers(**live);
    go_on_profiling(**live);
    replan_for_latency(**live);
    jobs->touch(**live);
    LiveJob* const still = jobs->in_memory(id);
    if (still == nullptr) return;
    release_first_plan(*still);
    if (!still->is_adrift()) jobs->set_wake(*still, now_s);
  });
}

std::optional<double> Service::next_wake() const {
  std::optional<double> next = state_->jobs->next_wake();
  const auto earlier = [&](std::optional<double> other) {
    if (other && (!next || *other < *next)) next = other;
  };
  earlier(state_->store->next_wake());
  earlier(state_->characterizations->next_wake());
  if (!state_->late_past.empty()) earlier(state_->late_past.begin()->first);
  if (!state_->wait_deadlines.empty()) earlier(state_->wait_deadlines.begin()->first);
  earlier(state_->upkeep->next_wake());
  return next;
}

void Service::on_earlier_wake(std::function<void()> changed) { state_->earlier_wake = std::move(changed); }

void Service::set_limits(const ServiceOptions& options) {
  ServiceOptions& now = state_->options;
  now.idle_expiry_s = options.idle_expiry_s;
  now.keep_finished_s = options.keep_finished_s;
  now.keep_finished_bytes = options.keep_finished_bytes;
  now.keep_unused_s = options.keep_unused_s;
  now.max_ranks = options.max_ranks;
  now.slowdown = options.slowdown;  // applies from each job's next plan on
  now.planning_budget_s = options.planning_budget_s;
  now.planner_s_per_owner = options.planner_s_per_owner;
  now.profiling_tolerance_pct = options.profiling_tolerance_pct;
  now.profiling_iterations = options.profiling_iterations;
  now.profiling_slowdown_pct = options.profiling_slowdown_pct;
  now.profiling_worst_slowdown_pct = options.profiling_worst_slowdown_pct;
  state_->characterizations->set_limits(now);
  state_->upkeep->set_keep(keep_of(now));
  const double now_s = state_->clock.now_s();
  for (const auto& [id, live] : state_->jobs->live()) state_->jobs->set_wake(*live, now_s);
}

void Service::drain(double store_answers_s, Done<Ok> kept) {
  state_->store->set_limit(store_answers_s);
  state_->end_waits();
  std::vector<std::string> jobs;
  for (const auto& [id, live] : state_->jobs->live()) {
    jobs.push_back(id);
    if (live->profiling) live->profiling->search.request_stop();
  }
  auto missing = std::make_shared<std::size_t>(jobs.size() + 2);
  auto failed = std::make_shared<std::optional<Error>>();
  const auto one_less = [missing, failed, kept = std::move(kept)](const Result<Ok>& done) {
    if (!done) *failed = done.error();
    if (--*missing > 0 || !kept) return;
    *failed ? kept(**failed) : kept(Ok{});
  };
  for (const std::string& id : jobs) {
    if (LiveJob* live = state_->jobs->in_memory(id)) {
      state_->keep_reports(*live, one_less);
    } else {
      one_less(Ok{});
    }
  }
  state_->characterizations->stop([one_less] { one_less(Ok{}); });
  one_less(Ok{});
}

void Service::State::end_waits() {
  draining = true;
  const Error stopping{ErrorCode::unavailable, "the server is stopping: ask again"};
  for (auto& [id, done] : std::exchange(waits_to_begin, {})) done(stopping);
  std::vector<jobs::WaitId> waits;
  for (const auto& [id, job] : job_of_wait) waits.push_back(id);
  for (const jobs::WaitId id : waits) {
    if (auto waiter = take_wait(id)) waiter->done(stopping);
  }
}

void Service::State::retry_past(jobs::SubscriptionId id, std::int64_t after) {
  late_past.emplace(clock.now_s() + kRetryAfter_s, std::pair(id, after));
  if (earlier_wake) earlier_wake();
}

void Service::State::tell_late_past(double now_s) {
  while (!late_past.empty() && late_past.begin()->first <= now_s) {
    const auto [id, after] = late_past.extract(late_past.begin()).mapped();
    tell_past(id, after);
  }
}

}  // namespace perseus::service
