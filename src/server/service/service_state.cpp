#include "server/service/service_state.h"

#include <fmt/format.h>

#include "base/median.h"
#include "base/utf8.h"
#include "io/formats/json_reader.h"
#include "server/jobs/job_savings.h"
#include "server/jobs/known_profile.h"
#include "server/jobs/pipeline_input.h"
#include "server/jobs/stage_schedule.h"
#include "server/jobs/stragglers.h"
#include "server/jobs/view_json.h"
#include "server/service/job_view.h"
#include "server/service/registration.h"

namespace perseus::service {
namespace {

constexpr std::int64_t kLeastCounted = 10;     // iterations; fewer are written together with the next ones
constexpr std::int64_t kMostUncounted = 1000;  // limit of iterations that a crash of the server may lose
constexpr std::size_t kRowsAtOnce = 128;       // rows of the list
constexpr double kSeenShare = 0.125;           // of the idle time: how often the log records that a job is not idle

}  // namespace

std::optional<jobs::EventBody> Service::State::next_follow_up(LiveJob& live, double now_s) {
  const jobs::Job& job = live.job;
  if (!job.live()) return std::nullopt;
  if (!live.waiters.empty()) live.last_seen_s = now_s;
  if (live.last_seen_s - job.active_s > kSeenShare * options.idle_expiry_s) return jobs::JobSeen{};
  if (now_s >= expiry_of(live)) return jobs::JobExpired{};
  if (const jobs::Notice* next = jobs::next_pending(job); next != nullptr && next->effective_s <= now_s) {
    return jobs::StragglerTookEffect{next->id};
  }
  if (jobs::awaits_profiling(job)) {
    // This is known before the other ranks register.
    if (auto impossible = jobs::profiling_impossible(job)) return *impossible;
    if (job.ranks_registered < job.spec.degrees.world_size()) return std::nullopt;
    return jobs::profiling_start(job);
  }
  if (jobs::is_profiled(job)) {
    if (auto impossible = jobs::profiling_impossible(job)) return *impossible;
    return std::nullopt;
  }
  if (live.uncounted_since_s && now_s >= *live.uncounted_since_s + kCountInterval_s) {
    if (const auto counts = counts_since(live, now_s); !counts.empty()) return counts.front();
    live.uncounted_since_s.reset();
  }
  if (live.settled) return std::nullopt;  // registering ranks cost nothing per pipeline
  jobs::CharacterizationStarted start;
  for (const std::string& key : jobs::characterizations_needed(job)) {
    if (!job.characterizing.contains(key)) start.inputs.push_back(key);
  }
  if (!start.inputs.empty()) return start;
  auto deployment = next_deployment(live, now_s);
  live.settled = !deployment;
  return deployment;
}

std::optional<jobs::EventBody> Service::State::next_deployment(LiveJob& live, double now_s) {
  const jobs::Job& job = live.job;
  if (!jobs::next_state(job.state, jobs::kind_of_type<jobs::PlanDeployed>())) return std::nullopt;
  auto plan = jobs::desired_deployment(job, live.frontiers, options.slowdown, now_s);
  if (!plan || !jobs::differs(*plan, job.plan)) return std::nullopt;
  if (const auto counts = counts_since(live, now_s); !counts.empty()) return counts.front();
  plan->version = job.version + 1;
  plan->from_iteration = live.next_common_iteration(now_s, options.margin_iterations);
  return *std::move(plan);
}

double Service::State::expiry_of(const LiveJob& live) const {
  // After a server start, ranks may take a while to reconnect, and the start time may be wrong.
  constexpr double patience_s = 3600;
  return std::max(std::max(live.job.active_s, live.last_seen_s) + options.idle_expiry_s,
                  opened_s + std::min(patience_s, options.idle_expiry_s));
}

std::optional<double> Service::State::next_wake_of(const LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  if (!job.live() || job.unknown_events > 0) return std::nullopt;
  double next = expiry_of(live);
  if (const jobs::Notice* notice = jobs::next_pending(job)) next = std::min(next, notice->effective_s);
  if (const auto change = jobs::next_policy_change(job.policies, now_s)) next = std::min(next, *change);
  if (live.retry_s) next = std::min(next, *live.retry_s);
  if (live.uncounted_since_s) next = std::min(next, *live.uncounted_since_s + kCountInterval_s);
  if (jobs::is_profiled(job)) {
    const double over_s = job.window_s + jobs::window_limit_s(job, options.profiling_window_s);
    if (!job.all_reported() && over_s > now_s) next = std::min(next, over_s);
    if (live.profiling && live.profiling->look_again_s) next = std::min(next, *live.profiling->look_again_s);
  }
  if (jobs::awaits_latencies(job, now_s, options.latency_wait_s))
    next = std::min(next, job.joined_s + options.latency_wait_s);
  // A server that starts on this data must continue the work.
  const bool at_work = !job.characterizing.empty() || jobs::is_profiled(job);
  if (at_work) next = std::min(next, now_s + options.lease_s);
  return next;
}

void Service::State::committed(LiveJob& live, const std::vector<SequencedEvent>& events) {
  bool new_plan = false;
  for (const SequencedEvent& event : events) {
    publish(live.job.id, event);
    if (live.profiling) live.profiling->take(live.job, event.sequence, event.event);
    if (const auto* count = std::get_if<jobs::IterationsCounted>(&event.event.body)) {
      live.followed.counted_to(count->last_iteration);
      live.uncounted_since_s.reset();
    }
    if (const auto* rank = std::get_if<jobs::RankRegistered>(&event.event.body); rank != nullptr && rank->epoch > 0) {
      end_waits_of_earlier(live, rank->rank);
    }
    if (std::holds_alternative<jobs::WindowHandedOut>(event.event.body)) new_plan = true;
    if (std::holds_alternative<jobs::PlanDeployed>(event.event.body)) {
      new_plan = true;
      ++plans_deployed;
    }
  }
  if (new_plan && live.detector) live.detector->forget_times();
  if (new_plan) live.energies.forget_before(live.job.version);
  if (new_plan || !live.job.live()) wake_waiters(live);
  want_frontiers(live);
  go_on_profiling(live);
  replan_for_latency(live);
  release_first_plan(live);
  // The next request for the list does not wait for thousands of rows.
  if (jobs->index().changed() >= kRowsAtOnce) update_list();
}

void Service::State::publish(const std::string& job, const SequencedEvent& event) {
  if (subscriptions.empty()) return;
  tell({job, event.sequence, std::string(jobs::kind_of(event.event)), event.event.at_s, text_of(event.event)});
}

void Service::State::tell(const jobs::JobEvent& event) {
  std::vector<std::shared_ptr<const std::function<void(const jobs::JobEvent&)>>>
      listeners;  // they may unsubscribe meanwhile
  for (auto& [id, subscription] : subscriptions) {
    const bool of_one = !subscription.job.empty();
    if (of_one && (subscription.job != event.job || event.sequence <= subscription.after)) continue;
    if (of_one) subscription.after = event.sequence;
    listeners.push_back(subscription.on);
  }
  for (const auto& on : listeners) (*on)(event);
}

void Service::State::removed(const store::JobIndexRow& gone) {
  tell({gone.job, gone.last_sequence + 1, std::string(jobs::kJobRemoved), clock.now_s(),
        "the job was removed with its log"});
}

void Service::State::one_after_the_other(const std::shared_ptr<const std::vector<std::string>>& ids, std::size_t first,
                                         std::function<void(const std::string&)> in_one) {
  constexpr std::size_t in_a_row = 64;
  const std::size_t end = std::min(first + in_a_row, ids->size());
  for (std::size_t i = first; i < end; ++i) in_one((*ids)[i]);
  if (end == ids->size()) return;
  away<Ok>([] { return Ok{}; }, [ids, end, in_one = std::move(in_one)](
                                    State& self, const Ok&) { self.one_after_the_other(ids, end, in_one); });
}

void Service::State::update_list() {
  for (const std::string& id : jobs->index().take_changed()) update_row(id);
}

void Service::State::update_row(const std::string& job) {
  const auto found = jobs->index().find(job);
  if (found == jobs->index().end()) return list.remove(job);
  const store::JobIndexRow& row = found->second;
  const LiveJob* const live = jobs->in_memory(job);
  const double now_s = clock.now_s();
  if (row.damaged) {
    list.put({valid_utf8(row.job), "", std::string(kDamagedState), 0, 0}, {}, now_s);
    return;
  }
  list.put({row.job, row.name, row.state, row.created_s, row.updated_s},
           live != nullptr ? summary_of(*live, now_s) : jobs::parse_summary(row.summary), now_s);
}

std::string planning_owner_of(const jobs::Job& job) {
  for (const char* const fact : {"team", "token"}) {
    const auto known = job.spec.facts.find(fact);
    if (known != job.spec.facts.end()) return fmt::format("{} {}", fact, known->second);
  }
  return "job " + job.id;
}

void Service::State::want_frontiers(LiveJob& live) {
  forget_frontiers(live);
  if (live.job.live()) want_frontiers_to_show(live);
}

void Service::State::forget_frontiers(LiveJob& live) {
  const jobs::Job& job = live.job;
  std::set<std::string> needed;
  for (const std::string& key : jobs::frontiers_needed(job)) needed.insert(key);
  if (job.live()) needed.insert(job.characterizing.begin(), job.characterizing.end());
  std::erase_if(live.wanted, [&](const std::string& key) {
    if (needed.contains(key)) return false;
    characterizations->forget(key, job.id);
    return true;
  });
}

void Service::State::want_frontiers_to_show(LiveJob& live) {
  std::vector<std::string> keys = jobs::frontiers_needed(live.job);
  if (live.job.live()) keys.insert(keys.end(), live.job.characterizing.begin(), live.job.characterizing.end());
  for (const std::string& key : keys) {
    // committed() is called again when the profile is durable.
    if (live.frontiers.contains(key) || live.is_pending("input/" + key) || !live.wanted.insert(key).second) continue;
    characterizations->want(key, {live.job.id, planning_owner_of(live.job)},
                            [weak = weak_from_this(), id = live.job.id, key](const auto& frontier) {
                              if (const auto self = weak.lock()) self->frontier_came(id, key, frontier);
                            });
  }
}

void Service::State::frontier_came(const std::string& id, const std::string& key,
                                   const Result<Characterizations::Frontier>& came) {
  LiveJob* live = jobs->in_memory(id);
  if (live == nullptr) return;
  const bool is_quick = came && (*came)->key != key;  // the full one will follow
  if (!is_quick) live->wanted.erase(key);
  if (!came && came.error().code == ErrorCode::unavailable) {
    live->retry_s = clock.now_s() + kRetryAfter_s;
    jobs->set_wake(*live, clock.now_s());
    return;
  }
  if (came) live->frontiers[(*came)->key] = *came;
  jobs->index().note(id);
  live->settled = false;
  // A write that the store rejects is repeated.
  const auto retry = [weak = weak_from_this(), id, key](const Status& done) {
    const auto self = weak.lock();
    LiveJob* const now = self ? self->jobs->in_memory(id) : nullptr;
    if (done || now == nullptr || done.error().code != ErrorCode::unavailable) return;
    if (now->job.characterizing.contains(key)) now->frontiers.erase(key);
    now->retry_s = self->clock.now_s() + kRetryAfter_s;
    self->jobs->set_wake(*now, self->clock.now_s());
  };
  jobs->execute(id, {[key, came, is_quick](const jobs::Job& job, double) -> Result<Decision> {
                       Decision decision;
                       const bool needed =
                           job.characterizing.contains(key) || (!came && job.characterized.contains(key));
                       if (!job.live() || !needed) return decision;
                       const bool has_quick = job.characterized.contains(jobs::quick_frontier_key(key));
                       if (is_quick && has_quick) return decision;
                       if (came) {
                         const auto& points = (*came)->frontier.points;
                         decision.events.emplace_back(jobs::Characterized{(*came)->key, static_cast<int>(points.size()),
                                                                          points.back().time.value(),
                                                                          points.front().time.value()});
                       } else if (has_quick) {
                         decision.events.emplace_back(jobs::RefinementEnded{key, came.error().message});
                       } else {
                         decision.events.emplace_back(jobs::CharacterizationFailed{key, came.error().message});
                       }
                       return decision;
                     },
                     retry});
  if (live = jobs->in_memory(id); live != nullptr) wake_waiters(*live);
}

void Service::State::ask(const std::string& id, JobCommand command) {
  asked(id, [this, id, command = std::move(command)](const Result<LiveJob*>& live) mutable {
    if (!live) return command.done(live.error());
    jobs->execute(id, std::move(command));
  });
}

bool Service::State::revive_if_expired(LiveJob& live) {
  if (live.job.state != jobs::JobState::expired) return false;
  jobs->execute(live.job.id, {[](const jobs::Job& job, double) {
                                Decision decision;
                                if (job.state == jobs::JobState::expired)
                                  decision.events.emplace_back(jobs::JobRevived{});
                                return Result<Decision>(std::move(decision));
                              },
                              {}});
  return true;
}

std::optional<double> Service::State::silence_of(const LiveJob& live, int rank) const {
  const bool waits = std::ranges::any_of(live.waiters, [&](const auto& entry) { return entry.second.rank == rank; });
  if (waits) return std::nullopt;
  const bool heard = static_cast<std::size_t>(rank) < live.heard_s.size();
  const double silent_s = clock.now_s() - std::max({opened_s, live.job.created_s, heard ? live.heard_s[rank] : 0});
  return silent_s >= options.rank_lease_s ? std::optional(silent_s) : std::nullopt;
}

void Service::State::end_waits_of_earlier(LiveJob& live, int rank) {
  std::vector<std::pair<Done<jobs::PlanAnswer>, Error>> over;
  for (auto waiter = live.waiters.begin(); waiter != live.waiters.end();) {
    const Waiter& waits = waiter->second;
    const Status held = waits.rank == rank ? check_holder(live.job, rank, waits.epoch) : Status(Ok{});
    if (held) {
      ++waiter;
      continue;
    }
    over.emplace_back(std::move(waiter->second.done), held.error());
    forget_wait(waiter->first, waits);
    waiter = live.waiters.erase(waiter);
  }
  for (const auto& [done, why] : over) done(why);
}

void Service::State::find_rank(const std::string& id, int rank, std::int64_t version, LiveJobs::Found then) {
  asked(id, [this, id, rank, version, then = std::move(then)](const Result<LiveJob*>& live) {
    if (!live || (*live)->knows(rank, version)) return then(live);
    const bool possible = rank >= 0 && rank < static_cast<int>((*live)->job.ranks.size());
    const auto told = [id, rank, then](const Result<LiveJob*>& now) {
      if (!now || (*now)->has_rank(rank)) return then(now);
      then(Error{ErrorCode::not_found, fmt::format("job {}: rank {} is not registered", id, rank)});
    };
    possible ? jobs->with_news(id, told) : told(live);
  });
}

void Service::State::look(const std::string& id, LiveJobs::Found then) {
  jobs->with(id, [this, id, then = std::move(then)](const Result<LiveJob*>& live) {
    LiveJob* const known = jobs->in_memory(id);
    if (live || known == nullptr || live.error().code == ErrorCode::not_found) return then(live);
    then(Result<LiveJob*>(known));
  });
}

std::shared_ptr<const jobs::StageSchedule> Service::State::schedule_for(LiveJob& live, const jobs::Rank& rank,
                                                                        std::int64_t shown_version) {
  const jobs::Job& job = live.job;
  if (job.version == 0 || job.version != shown_version) return nullptr;  // the plan is being committed
  if (job.version != live.committed_plan && !is_provisional(job.version)) return nullptr;
  if (live.schedules_version != shown_version) {
    live.schedules.clear();
    live.schedules_version = shown_version;
  }
  if (job.plan && job.plan->version == job.version) return plan_schedule(live, rank);
  const bool in_window = !job.windows.empty() &&
                         std::ranges::find(job.profiling->pipelines, rank.dp_rank) != job.profiling->pipelines.end();
  if (in_window && !live.profiling) return nullptr;  // the profiler is being read
  auto& schedule = live.schedules[{in_window ? -2 : -1, rank.pp_rank, rank.clock_set, rank.instruction_set}];
  if (!schedule && in_window) {
    schedule = jobs::make_window_schedule(job, rank, live.profiling->schedule());
  } else if (!schedule) {
    if (const auto shape = max_clock_shape(live, rank.dp_rank))
      schedule = jobs::make_maximum_clock_schedule(job, rank, *shape);
  }
  return schedule;
}

std::shared_ptr<const jobs::StageSchedule> Service::State::plan_schedule(LiveJob& live, const jobs::Rank& rank) {
  const jobs::Job& job = live.job;
  const jobs::PlanDeployed::Choice& choice = job.plan->of(rank.dp_rank);
  const jobs::CharacterizedPipeline* pipeline = nullptr;
  if (choice.point >= 0) {
    const auto found = live.frontiers.find(choice.input);
    if (found == live.frontiers.end()) return nullptr;  // the frontier is being read
    pipeline = found->second.get();
  }
  auto& schedule = live.schedules[{job.plan->choice_of[rank.dp_rank], rank.pp_rank, rank.clock_set,
                                   pipeline == nullptr ? rank.instruction_set : 0}];
  if (!schedule && pipeline != nullptr) {
    schedule = jobs::make_plan_schedule(job, rank, *pipeline);
  } else if (!schedule) {
    if (const auto shape = max_clock_shape(live, rank.dp_rank))
      schedule = jobs::make_maximum_clock_schedule(job, rank, *shape);
  }
  return schedule;
}

std::optional<const jobs::PipelineShape*> Service::State::max_clock_shape(LiveJob& live, int pipeline) {
  if (live.job.spec.shape) return &*live.job.spec.shape;
  if (live.max_clock_shape) return &*live.max_clock_shape;
  if (live.max_clock_shape_read == LiveJob::Reading::failed || live.job.input_of[pipeline].empty()) return nullptr;
  if (live.max_clock_shape_read == LiveJob::Reading::no) read_max_clock_shape(live, pipeline);
  return std::nullopt;
}

void Service::State::read_max_clock_shape(LiveJob& live, int pipeline) {
  live.max_clock_shape_read = LiveJob::Reading::under_way;
  store->read<std::optional<jobs::PipelineShape>>(
      [key = "input/" + live.job.input_of[pipeline]](store::Store& from) -> Result<std::optional<jobs::PipelineShape>> {
        const auto text = from.blob(key);
        if (!text) return text.error();
        if (!*text) return std::optional<jobs::PipelineShape>();
        const auto input = jobs::parse_input(**text, "input");
        return input ? std::optional(input->shape) : std::nullopt;
      },
      [weak = weak_from_this(), id = live.job.id](const Result<std::optional<jobs::PipelineShape>>& shape) {
        const auto self = weak.lock();
        LiveJob* const now = self ? self->jobs->in_memory(id) : nullptr;
        if (now == nullptr) return;
        now->max_clock_shape_read = LiveJob::Reading::failed;
        if (shape && *shape) now->max_clock_shape = **shape;
        self->wake_waiters(*now);
      });
}

bool Service::State::first_plan_waits(const LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  if (live.plan_handed_out) return false;
  if (jobs::awaits_latencies(job, now_s, options.latency_wait_s)) return true;
  return std::ranges::any_of(job.planned_with, [&](const auto& planned) {
    const auto& [input, with] = planned;
    const bool being_planned = !with.fixed && with.switch_latency_s && job.characterizing.contains(input) &&
                               !job.characterized.contains(jobs::quick_frontier_key(input));
    return being_planned || latency_to_replan(live, input);
  });
}

void Service::State::release_first_plan(LiveJob& live) {
  if (!live.plan_held_back || first_plan_waits(live, clock.now_s())) return;
  live.plan_held_back = false;
  wake_waiters(live);
}

std::optional<Result<jobs::PlanAnswer>> Service::State::plan_for(LiveJob& live, int rank, std::int64_t have_version) {
  if (live.job.unknown_events > 0) return later_version(live.job.id);
  const std::int64_t shown_version = live.shown_version();
  const AsShown as_shown(live, live.shown_job(rank));
  if (!live.job.live()) {
    return Error{ErrorCode::conflict, fmt::format("job {} is {}", live.job.id, name_of(live.job.state))};
  }
  // A shadow does not know a rank that registered after it was made.
  if (shown_version == have_version || !live.has_rank(rank)) return std::nullopt;
  auto schedule = schedule_for(live, *live.job.ranks[rank], shown_version);
  if (!schedule) return std::nullopt;
  if (schedule->kind == jobs::StageSchedule::Kind::plan) {
    live.plan_held_back = first_plan_waits(live, clock.now_s());
    if (live.plan_held_back) return std::nullopt;
    live.plan_handed_out = true;
  }
  if (schedule->kind == jobs::StageSchedule::Kind::profiling_window) {
    LiveJob::RankWindows& own = live.windows_of[rank];
    // Clients that do not report windows ask again after running one, to get the next one.
    const bool has_run = own.run == schedule->window || live.job.reported.contains(rank);
    if (have_version == 0 && has_run) return std::nullopt;
    own.handed = schedule->window;
  }
  return jobs::PlanAnswer{std::move(schedule), rank, live.job.ranks[rank]->dp_rank};
}

void Service::State::wake_waiters(LiveJob& live) {
  std::vector<std::pair<Done<jobs::PlanAnswer>, Result<jobs::PlanAnswer>>> answers;
  for (auto waiter = live.waiters.begin(); waiter != live.waiters.end();) {
    auto answer = plan_for(live, waiter->second.rank, waiter->second.have_version);
    if (!answer) {
      ++waiter;
      continue;
    }
    answers.emplace_back(std::move(waiter->second.done), *std::move(answer));
    forget_wait(waiter->first, waiter->second);
    waiter = live.waiters.erase(waiter);
  }
  for (auto& [done, answer] : answers) done(std::move(answer));
}

void Service::State::forget_wait(jobs::WaitId id, const Waiter& waiter) {
  job_of_wait.erase(id);
  if (waiter.deadline_s) wait_deadlines.erase({*waiter.deadline_s, id});
}

std::optional<Waiter> Service::State::take_wait(jobs::WaitId id) {
  const auto job = job_of_wait.find(id);
  if (job == job_of_wait.end()) return std::nullopt;
  LiveJob* live = jobs->in_memory(job->second);
  PERSEUS_CHECK(live != nullptr && live->waiters.contains(id), "a wait without its job");
  Waiter waiter = std::move(live->waiters.at(id));
  live->waiters.erase(id);
  forget_wait(id, waiter);
  return waiter;
}

void Service::State::end_wait(jobs::WaitId id) {
  auto waiter_of = job_of_wait.find(id);
  if (waiter_of == job_of_wait.end()) return;
  LiveJob* const live = jobs->in_memory(waiter_of->second);
  auto waiter = take_wait(id);
  jobs::PlanAnswer answer{nullptr, waiter->rank, 0};
  if (!waiter->asks_once) return waiter->done(answer);
  const jobs::Job& job = live->job;
  const jobs::Rank& rank = *job.ranks[waiter->rank];
  // Nothing: being read. Null: there is no input yet from which to derive the instructions.
  const bool has_input = !job.input_of[rank.dp_rank].empty();
  const auto shape =
      has_input ? max_clock_shape(*live, rank.dp_rank) : std::optional<const jobs::PipelineShape*>(nullptr);
  const bool lists_instructions = !job.instruction_sets[rank.instruction_set].empty();
  if (!shape || jobs::awaits_profiling(job) || jobs::is_profiled(job)) {
    waiter->deadline_s = clock.now_s() + (shape ? options.maximum_clock_after_s : kRetryAfter_s);
    wait_deadlines.emplace(*waiter->deadline_s, id);
    job_of_wait.emplace(id, job.id);
    live->waiters.emplace(id, *std::move(waiter));
    return;
  }
  if (*shape == nullptr && !lists_instructions) {
    return waiter->done(Error{
        ErrorCode::conflict,
        fmt::format("job {} has no {}, so it is not known how many clocks rank {} needs: name a stored profile in "
                    "job_metadata, or upload one to the job, and ask again",
                    job.id, has_input ? "profile that can be read" : "profile", waiter->rank)});
  }
  answer.schedule = jobs::make_maximum_clock_schedule(job, rank, *shape);
  answer.pipeline = rank.dp_rank;
  waiter->done(answer);
}

void Service::State::removed(LiveJob& live) {
  const Error gone{ErrorCode::not_found, fmt::format("job {} was removed", live.job.id)};
  std::vector<Done<jobs::PlanAnswer>> waiting;
  for (auto& [id, waiter] : live.waiters) {
    forget_wait(id, waiter);
    waiting.push_back(std::move(waiter.done));
  }
  live.waiters.clear();
  for (const auto& done : waiting) done(gone);
}

void Service::State::observe_times(LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  if (!job.spec.detect_stragglers || !job.plan || request.iteration_time.empty()) return;
  const int pipeline = job.ranks[request.rank]->dp_rank;
  const jobs::PlanDeployed::Choice& choice = job.plan->of(pipeline);
  const auto frontier = live.frontiers.find(choice.input);
  if (choice.point < 0 || frontier == live.frontiers.end()) return;
  const auto last = request.last_iteration;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  if (last && *last - count + 1 < job.plan->from_iteration) return;  // partly under the previous plan
  const Seconds planned = frontier->second->frontier.points[choice.point].time;
  if (!live.detector) {
    live.detector.emplace(job.num_pipelines());
    for (const jobs::Notice& notice : job.notices) {
      if (notice.in_force && notice.detected) live.detector->assume(notice.pipeline, notice.degree);
    }
  }
  const auto degree = live.detector->report(pipeline, upper_median(request.iteration_time) / planned);
  if (!degree) return;
  jobs::SetStraggler notice{job.id, {}, Seconds(0), *degree};
  notice.target.pipeline = pipeline;
  jobs->execute(job.id, {[notice](const jobs::Job& now, double now_s) -> Result<Decision> {
                           const auto decided = jobs::decide_straggler(now, notice, now_s, true);
                           if (!decided) return decided.error();
                           return Decision{decided->front().events, {}};
                         },
                         {}});
}

/// The plan version that the iterations of a report followed; 0: everything at the highest clock; nothing: not known.
static std::optional<std::int64_t> version_followed(const LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  if (request.plan_version) {
    const bool window = !job.plan || job.plan->version != *request.plan_version;
    // Reports without a window that name its version are of iterations after it.
    if (*request.plan_version == 0 || (window && *request.plan_version == job.version)) return 0;
    if (window) return std::nullopt;
    return job.plan->of(job.ranks[request.rank]->dp_rank).point < 0 ? 0 : *request.plan_version;
  }
  if (!job.plan || job.plan->version != job.version || !request.last_iteration) return std::nullopt;
  if (*request.last_iteration - count + 1 < job.plan->from_iteration) return std::nullopt;
  return job.plan->of(job.ranks[request.rank]->dp_rank).point < 0 ? 0 : job.plan->version;
}

void Service::State::note_followed(LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  if (!request.plan_version) live.reports_without_plan = true;
  if (!request.plan_version || count == 0) return;
  // Iterations after a profiling window may name its version: they follow no plan. A rank that sets no clocks follows
  // none.
  const jobs::PlanDeployed* const known = jobs::plan_of_version(job, *request.plan_version);
  const bool controlled = !job.uncontrolled.contains(request.rank);
  const std::int64_t version = known == nullptr || !controlled ? 0 : known->version;
  const bool asked = controlled && job.plan && job.plan->of(job.ranks[request.rank]->dp_rank).point >= 0;
  const bool straggles = std::ranges::any_of(job.notices, &jobs::Notice::in_force);
  live.followed.report({request.rank, job.spec.degrees.world_size(), asked || version != 0, version,
                        *request.last_iteration, count, request.iteration_energy, straggles});
  const double now_s = clock.now_s();
  if (!live.uncounted_since_s && !live.followed.whole().empty()) {
    live.uncounted_since_s = now_s;
    jobs->set_wake(live, now_s);
  }
  if (job.kept) return;
  jobs->execute(job.id, {[](const jobs::Job& now, double) -> Result<Decision> {
                           Decision decision;
                           if (now.live() && !now.kept) decision.events.emplace_back(jobs::ReportsKept{});
                           return decision;
                         },
                         {}});
}

void Service::State::keep_reports(LiveJob& live, Done<Ok> done) {
  jobs->execute(live.job.id,
                {[self = this](const jobs::Job& job, double now_s) -> Result<Decision> {
                   Decision decision;
                   LiveJob* const now = self->jobs->in_memory(job.id);
                   if (now == nullptr || !job.live() || !now->followed.known()) return decision;
                   std::int64_t counted_to = job.counted_to;
                   for (const jobs::IterationsCounted& count : counts_since(*now, now_s)) {
                     counted_to = count.last_iteration;
                     decision.events.emplace_back(count);
                   }
                   jobs::ReportsKept kept = now->followed.kept(counted_to);
                   if (kept != job.kept) decision.events.emplace_back(std::move(kept));
                   return decision;
                 },
                 [done = std::move(done)](const Status& status) { status ? done(Ok{}) : done(status.error()); }});
}

void Service::State::keep_count(LiveJob& live, const jobs::ReportIterations& request) {
  const auto count = [self = this, last = *request.last_iteration,
                      reported = static_cast<std::int64_t>(request.iteration_time.size())](
                         const jobs::Job& job, double now_s) -> std::vector<jobs::IterationsCounted> {
    const LiveJob* const now = self->jobs->in_memory(job.id);
    if (now == nullptr || !job.live() || !job.plan) return {};
    if (now->reports_name_plans()) {
      // Counts that are not written are lost with this server: no other server has these reports.
      const auto enough = static_cast<std::size_t>(std::clamp(job.total.iterations / 8, kLeastCounted, kMostUncounted));
      if (now->followed.whole().size() < enough) return {};  // in memory, including counts being written
      auto counts = counts_since(*now, now_s);
      std::int64_t iterations = 0;
      for (const jobs::IterationsCounted& one : counts) iterations += one.iterations;
      return iterations < static_cast<std::int64_t>(enough) ? std::vector<jobs::IterationsCounted>{}
                                                            : std::move(counts);
    }
    if (now->plan_held_back) return {};
    if (job.counted_to == 0) {
      const auto first = jobs::first_count(job, now->frontiers, last, reported);
      return first ? std::vector{*first} : std::vector<jobs::IterationsCounted>{};
    }
    if (last - job.counted_to < std::max(kLeastCounted, job.total.iterations)) return {};
    return counts_since(*now, now_s);
  };
  if (count(live.job, clock.now_s()).empty()) return;
  jobs->execute(live.job.id, {[count](const jobs::Job& now, double now_s) -> Result<Decision> {
                                Decision decision;
                                for (const jobs::IterationsCounted& one : count(now, now_s)) {
                                  decision.events.emplace_back(one);
                                }
                                return decision;
                              },
                              {}});
}

void Service::State::observe_energies(LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  if (request.iteration_energy.empty()) return;
  const auto version = version_followed(live, request);
  if (!version) return;
  // The first iterations of a training warm up, and iterations with a straggler are not comparable.
  constexpr std::int64_t warm_up = 2;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  const bool warm = request.last_iteration && *request.last_iteration - count + 1 < warm_up;
  if (warm || std::ranges::any_of(job.notices, &jobs::Notice::in_force)) return;
  std::vector<Joules> energies = request.iteration_energy;
  std::vector<Seconds> times = request.iteration_time;
  // The first iterations after a plan still run at its clocks, on this rank or on another.
  if (*version == 0 && request.last_iteration) {
    const std::int64_t first = *request.last_iteration - count + 1;
    const auto unsettled = std::clamp<std::int64_t>(live.followed.settled_from() - first, 0, count);
    times.erase(times.begin(), times.begin() + unsettled);
    energies.erase(energies.begin(),
                   energies.begin() + std::min(unsettled, static_cast<std::int64_t>(energies.size())));
    if (times.empty()) return;
  }
  live.energies.report(*version, request.rank, energies, times);
  const auto measured = live.energies.take(*version, job.spec.degrees.world_size());
  if (!measured) return;
  jobs->execute(job.id, {[measured = *measured](const jobs::Job& now, double) -> Result<Decision> {
                           Decision decision;
                           // A restarted server has seen fewer iterations than its predecessor.
                           const auto& known = measured.version == 0 ? now.measured_highest : now.measured_plan;
                           const bool fewer =
                               known && known->version == measured.version && known->iterations > measured.iterations;
                           const bool of_now =
                               measured.version == 0 || (now.plan && now.plan->version == measured.version);
                           if (now.live() && of_now && !fewer) decision.events.emplace_back(measured);
                           return decision;
                         },
                         {}});
}

}  // namespace perseus::service
