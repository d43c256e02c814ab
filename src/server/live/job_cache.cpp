#include "server/live/job_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "server/live/job_view.h"

namespace perseus::live {
namespace {

/// Whether ranks that wait still do so, the next server on the data finds out after so long.
constexpr double kWaitsAgain_s = 60;

void answer(const JobCommand& command, const Status& status) {
  if (command.done) command.done(status);
}

Error no_job(const std::string& id) { return {ErrorCode::not_found, fmt::format("no job {}", id)}; }

/// Something else was decided on what must be undone.
Error read_again(const std::string& id) {
  return {ErrorCode::unavailable, fmt::format("job {}: it is being read again: try again", id)};
}

}  // namespace

JobCache::JobCache(work::StoreAccess& store, const Clock& clock, work::Due& due, JobHooks& hooks)
    : store_(store), clock_(clock), hooks_(hooks), index_(hooks), wakes_(hooks_, index_, due) {}

Status JobCache::open(store::Store& store) {
  auto rows = store.jobs();
  if (!rows) return rows.error();
  for (store::JobIndexRow& row : *rows) {
    if (row.next_wake_s && !row.damaged) wakes_.put(*row.next_wake_s, row.job);
    const std::string id = row.job;
    index_.emplace(id, std::move(row));
  }
  return Ok{};
}

LiveJob* JobCache::in_memory(const std::string& id) {
  const auto found = live_.find(id);
  return found == live_.end() ? nullptr : found->second.get();
}

LiveJob* JobCache::current(const std::string& id) {
  LiveJob* const live = in_memory(id);
  // While an append is in progress, memory is ahead of the store; a failed one makes it stale.
  return live != nullptr && live->stale_ && !live->outbox_.is_appending() ? nullptr : live;
}

void JobCache::load(const std::string& id, Found then) {
  std::vector<Found>& waiting = loading_[id];
  waiting.push_back(std::move(then));
  if (waiting.size() == 1) read(id);
}

void JobCache::read(const std::string& id) {
  const LiveJob* const live = in_memory(id);
  const std::int64_t durable = live == nullptr ? 0 : live->committed;
  const bool none_is_news = live == nullptr && !unanswered_.contains(id);
  const std::int64_t after = none_is_news ? std::numeric_limits<std::int64_t>::max() : durable;
  store_.read<JobLog>([id, after](store::Store& store) { return read_log(store, id, after); },
                      [this, id, durable](Result<JobLog> log) { was_read(id, durable, std::move(log)); });
}

void JobCache::was_read(const std::string& id, std::int64_t durable, Result<JobLog> read_now) {
  auto found = take(id, durable, std::move(read_now));
  if (!found) return read(id);
  std::vector<Found> waiting = std::move(loading_[id]);
  loading_.erase(id);
  for (Found& then : waiting) {
    if (*found) found = Result<LiveJob*>(in_memory(id));  // the previous callback may have removed it
    if (*found && **found == nullptr) found = Result<LiveJob*>(no_job(id));
    then(*found);
  }
}

std::optional<Result<LiveJob*>> JobCache::take(const std::string& id, std::int64_t durable, Result<JobLog> read) {
  LiveJob* const live = in_memory(id);
  if (!read) {
    if (live != nullptr && live->stale_ && !live->outbox_.is_appending()) go_on_as_shown(*live);
    const bool damaged = read.error().code == ErrorCode::internal;
    if (damaged && index_.find(id) != index_.end()) index_[id].damaged = true;
    return Result<LiveJob*>(read.error());
  }
  if (live != nullptr && live->outbox_.is_appending()) return Result<LiveJob*>(live);
  const bool was_unanswered = unanswered_.erase(id) > 0;
  if (read->job.state == jobs::JobState::none && read->job.unknown_events > 0)
    return Result<LiveJob*>(later_version(id));
  if (read->job.state == jobs::JobState::none) {
    // The job was created while the store was read.
    if (live != nullptr && live->committed > 0 && !live->stale_) return Result<LiveJob*>(live);
    index_.erase(id);
    forget(id);
    return Result<LiveJob*>(no_job(id));
  }
  // Otherwise the log was changed behind the server, and what it is now holds.
  const bool precedes_last_append =
      live != nullptr && durable < live->committed && read->job.sequence < live->committed;
  if (precedes_last_append) {
    if (live->stale_) return std::nullopt;
    return Result<LiveJob*>(live);
  }
  return take_newer(id, *std::move(read), was_unanswered);
}

Result<LiveJob*> JobCache::take_newer(const std::string& id, JobLog read, bool was_unanswered) {
  LiveJob* live = in_memory(id);
  if (live == nullptr) {
    auto fresh = std::make_unique<LiveJob>();
    fresh->job.id = id;
    live = live_.emplace(id, std::move(fresh)).first->second.get();
    if (!was_unanswered) read.events.clear();
  }
  const bool is_new = live->committed == 0;
  const std::vector<SequencedEvent> news = is_new ? read.events : std::vector<SequencedEvent>();
  const bool was_late = live->shown.is_late();
  install(*live, std::move(read));
  if (is_new) hooks_.committed(*live, news);
  live = in_memory(id);
  if (live == nullptr) return no_job(id);
  index_[id] = row_of(*live, clock_.now_s());
  touch(*live);
  live = in_memory(id);
  if (live != nullptr && was_late) hooks_.shown(*live);
  return in_memory(id);
}

/// Replaces memory by the stored job. Events beyond the previously durable ones are news.
void JobCache::install(LiveJob& live, JobLog read) {
  const std::int64_t before = live.committed;
  const bool starts_anew = read.job.restarts != live.job.restarts;
  auto before_restart = std::exchange(live.before_restart_, std::nullopt);
  const bool is_refused = before_restart && read.job.restarts < live.job.restarts;
  live.job = std::move(read.job);
  if (is_refused) {
    live.reports = *std::move(before_restart);
  } else if (before == 0 || starts_anew) {
    live.forget_iterations();
    if (live.job.kept) live.reports.followed.take(*live.job.kept, live.job.spec.degrees.world_size());
  }
  live.committed = live.job.sequence;
  ++live.times_read;
  live.calls.quiet_since_s = 0;  // a look may have counted ranks as silent that are not
  live.stale_ = false;
  live.shown.end();
  live.settled = false;
  live.schedules.clear();
  std::erase_if(read.events, [&](const SequencedEvent& event) { return event.sequence <= before; });
  if (before > 0) {
    became_durable(live, read.events);
  } else {
    live.shown.committed_plan = live.job.version;
    set_wake(live, clock_.now_s());
  }
}

void JobCache::forget(const std::string& id) {
  const auto found = live_.extract(id);
  if (!found) return;
  LiveJob& live = *found.mapped();
  wakes_.forget(live);
  hooks_.removed(live);
  for (const JobCommand& command : live.outbox_.give_up()) answer(command, no_job(id));
}

// ---- Changing

void JobCache::execute(const std::string& id, JobCommand command) {
  with(id, [this, command = std::move(command)](const Result<LiveJob*>& live) mutable {
    if (!live) return answer(command, live.error());
    run(**live, std::move(command));
  });
}

void JobCache::create(const std::string& id, JobCommand command) {
  if (store_.writes_late()) return answer(command, work::StoreAccess::not_answered());
  auto fresh = std::make_unique<LiveJob>();
  fresh->job.id = id;
  fresh->last_seen_s = clock_.now_s();
  LiveJob& live = *live_.emplace(id, std::move(fresh)).first->second;
  run(live, std::move(command));
  if (live.job.state == jobs::JobState::none) forget(id);
}

void JobCache::touch(LiveJob& live) {
  live.settled = false;
  run(live, {});
}

void JobCache::go_on_as_shown(LiveJob& live) {
  const double now_s = clock_.now_s();
  const std::int64_t version = live.shown.version();
  std::optional<double> next_s;
  {
    const AsShown as_shown(live, &live.shown.go_on(live.job));
    live.settled = false;
    const double quiet_since_s = live.calls.quiet_since_s;
    while (auto body = hooks_.next_follow_up(live, now_s)) {
      if (!jobs::apply(live.job, jobs::Event{now_s, *std::move(body)})) break;
    }
    live.settled = false;
    live.calls.quiet_since_s = std::min(live.calls.quiet_since_s, quiet_since_s);  // the job itself has not looked
    live.shown.number(live.job, now_s);
    next_s = hooks_.due_s(live, now_s);
  }
  const bool sooner = next_s && *next_s > now_s && *next_s < now_s + kRetryAfter_s;
  wakes_.set_to(live, sooner ? *next_s : now_s + kRetryAfter_s);
  if (live.shown.version() != version) hooks_.shown(live);
}

void JobCache::run(LiveJob& live, JobCommand command) {
  // A write that would only queue up is rejected before it changes anything.
  if (command.shown_once_durable() && store_.writes_late()) return answer(command, work::StoreAccess::not_answered());
  JobOutbox::Undecided asked{std::move(command)};
  if (asked.command.done && live.outbox_.is_appending()) return live.outbox_.put_off(std::move(asked));
  const std::optional<Answer> decided = decide(live, std::move(asked));
  flush(live);
  if (decided) answer(decided->command, decided->status);
}

std::optional<JobCache::Answer> JobCache::decide(LiveJob& live, JobOutbox::Undecided asked) {
  JobOutbox::Entry entry{std::move(asked.command), {}, {}, {}};
  const bool was_stale = live.stale_;
  const Status decided = decide_into(live, entry);
  const bool all_durable = live.outbox_.all_durable();
  if (!decided) {
    const bool must_undo = live.stale_ && !was_stale;  // its folded events
    if (must_undo && !live.outbox_.is_appending() && live.committed > 0) load(live.job.id, [](const auto&) {});
    const bool is_final = asked.is_refused || all_durable;
    if (must_undo || is_final || !entry.command.done) return Answer{std::move(entry.command), decided};
    live.outbox_.put_off({std::move(entry.command), true});
    return std::nullopt;
  }
  if (entry.events.empty() && all_durable) set_wake(live, clock_.now_s());
  if (entry.events.empty() && (all_durable || !entry.command.done)) return Answer{std::move(entry.command), Ok{}};
  live.outbox_.add(std::move(entry));
  return std::nullopt;
}

/// Decides the commands that waited for an append. A refusal may rest on what is not durable: the command is decided
/// again after the next append.
std::vector<JobCache::Answer> JobCache::decide_waiting(LiveJob& live) {
  std::vector<Answer> answers;
  for (JobOutbox::Undecided& asked : live.outbox_.take_undecided()) {
    if (live.stale_) {
      answers.push_back({std::move(asked.command), read_again(live.job.id)});
    } else if (auto decided = decide(live, std::move(asked))) {
      answers.push_back(*std::move(decided));
    }
  }
  return answers;
}

Status JobCache::decide_into(LiveJob& live, JobOutbox::Entry& entry) {
  const double now_s = clock_.now_s();
  if (live.job.unknown_events > 0) return later_version(live.job.id);
  if (entry.command.decide) {
    auto decision = entry.command.decide(live.job, now_s);
    if (!decision) return decision.error();
    entry.blobs = std::move(decision->blobs);
    entry.holds = std::move(decision->holds);
    const bool matters = !std::ranges::all_of(decision->events, leaves_plans_unchanged);
    if (matters && entry.command.shown_once_durable() && live.committed > 0) live.shown.keep(live.job);
    for (jobs::EventBody& body : decision->events) {
      if (Status folded = fold(live, entry, std::move(body), now_s); !folded) return folded;
    }
  }
  while (auto body = hooks_.next_follow_up(live, now_s)) {
    if (Status folded = fold(live, entry, *std::move(body), now_s); !folded) return folded;
  }
  return Ok{};
}

Status JobCache::fold(LiveJob& live, JobOutbox::Entry& entry, jobs::EventBody body, double now_s) {
  for (const jobs::IterationsCounted& count : counts_before(live, body)) {
    if (Status counted = fold(live, entry, count, now_s); !counted) return counted;
  }
  jobs::Event event{now_s, std::move(body)};
  const int restarts = live.job.restarts;
  Status folded = jobs::apply(live.job, event);
  if (live.job.restarts != restarts) {
    if (!live.before_restart_) live.before_restart_ = live.reports;
    live.forget_iterations();
  }
  if (!folded) {
    // A decision that the state machine rejects is a bug: its folded events must be undone.
    entry.events.clear();
    live.stale_ = true;
    return folded;
  }
  if (!leaves_plans_unchanged(event.body)) live.settled = false;
  // Watts that fall hold at once, whatever else of the job waits for the store.
  const bool falls = std::holds_alternative<jobs::PowerGranted>(event.body) && !entry.command.shown_once_durable();
  if (falls) live.shown.fold(event);
  entry.events.push_back({live.job.sequence, std::move(event)});
  return Ok{};
}

void JobCache::flush(LiveJob& live) {
  if (live.outbox_.is_appending() || live.outbox_.empty()) return;
  store::Append append = live.outbox_.begin_append(live.job.id, live.committed);
  append.index = row_of(live, clock_.now_s());
  std::size_t bytes = 0;
  for (const std::string& body : append.bodies) bytes += body.size();
  for (const store::Blob& blob : append.blobs) bytes += blob.bytes.size();
  hooks_.writing(live, static_cast<std::int64_t>(bytes));
  const auto timer = [this, id = live.job.id](void (JobCache::*what)(const std::string&)) {
    return [this, id, what] { (this->*what)(id); };
  };
  store_.append(
      std::move(append), [this, id = live.job.id](Result<store::Appended> result) { appended(id, std::move(result)); },
      timer(&JobCache::append_is_slow), timer(&JobCache::append_is_late));
}

void JobCache::append_is_slow(const std::string& id) {
  if (LiveJob* const live = in_memory(id); live != nullptr && live->outbox_.is_appending()) go_on_as_shown(*live);
}

/// Clients learn that the outcome is unknown. The folded events stay, since they may still be written.
void JobCache::append_is_late(const std::string& id) {
  LiveJob* const live = in_memory(id);
  if (live == nullptr || !live->outbox_.is_appending()) return;
  const std::vector<JobCommand> unknown = live->outbox_.take_commands();
  for (const JobCommand& command : unknown) answer(command, work::StoreAccess::not_answered());
}

void JobCache::appended(const std::string& id, Result<store::Appended> result) {
  LiveJob* live = in_memory(id);
  if (live == nullptr) return;
  if (!result || *result == store::Appended::conflict) {
    std::vector<JobCommand> commands = live->outbox_.give_up();
    live->outbox_.end_append();
    return result ? was_changed(*live, std::move(commands)) : fail(*live, commands, result.error());
  }
  std::vector<JobOutbox::Entry> entries = live->outbox_.end_append();
  std::vector<SequencedEvent> events;
  for (JobOutbox::Entry& entry : entries) std::ranges::move(entry.events, std::back_inserter(events));
  live->committed = events.back().sequence;
  store::JobIndexRow& row = index_[id];
  row = row_of(*live, clock_.now_s());
  row.last_sequence = live->committed;
  live->before_restart_.reset();
  const bool was_late = live->shown.end();
  hooks_.written(events);
  if (was_late) {  // what ranks have seen of time is decided before they see the job again
    live->settled = false;
    decide(*live, {});
  }
  const std::vector<Answer> decided = decide_waiting(*live);
  became_durable(*live, events);
  for (const JobOutbox::Entry& entry : entries) answer(entry.command, Ok{});
  for (const Answer& one : decided) answer(one.command, one.status);
  live = in_memory(id);
  if (live == nullptr) return;
  if (live->stale_ && !live->outbox_.is_appending()) {  // later commands were decided on what must be undone
    return fail(*live, live->outbox_.give_up(), read_again(id));
  }
  flush(*live);
  if (was_late) hooks_.shown(*live);
}

/// Somebody has changed the database behind the server: the job is what it is there, or gone.
void JobCache::was_changed(LiveJob& live, std::vector<JobCommand> commands) {
  live.stale_ = true;
  load(live.job.id, [id = live.job.id, commands = std::move(commands)](const Result<LiveJob*>& found) {
    const Error changed{ErrorCode::unavailable,
                        fmt::format("job {}: its log is not the one that this server knew: try again", id)};
    for (const JobCommand& command : commands) answer(command, found ? changed : found.error());
  });
}

void JobCache::fail(LiveJob& live, const std::vector<JobCommand>& commands, const Error& error) {
  if (live.committed == 0) {
    const std::string id = live.job.id;
    forget(id);  // the job was not created, or the answer was lost: it is looked for again
    unanswered_.insert(id);
    wake_again(id, clock_.now_s());
  } else {
    live.stale_ = true;
    go_on_as_shown(live);
  }
  for (const JobCommand& command : commands) answer(command, error);
}

void JobCache::became_durable(LiveJob& live, const std::vector<SequencedEvent>& events) {
  for (const SequencedEvent& event : events) {
    if (const auto* plan = std::get_if<jobs::PlanDeployed>(&event.event.body))
      live.shown.committed_plan = plan->version;
    if (const auto* window = std::get_if<jobs::WindowHandedOut>(&event.event.body))
      live.shown.committed_plan = window->version;
  }
  set_wake(live, clock_.now_s());
  hooks_.committed(live, events);
}

store::JobIndexRow JobCache::row_of(const LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  auto wake_s = hooks_.due_s(live, now_s);
  if (wake_s && !live.calls.waiters.empty()) wake_s = std::min(*wake_s, now_s + kWaitsAgain_s);
  return {job.id,        std::string(jobs::shown_state(job)),
          job.spec.name, job.created_s,
          job.updated_s, wake_s,
          job.sequence,  hooks_.summary(live)};
}

void JobCache::forget_finished(std::size_t keep) {
  std::vector<std::pair<double, std::string>> over;
  for (const auto& [id, live] : live_) {
    const bool busy = !live->outbox_.all_durable() || !live->calls.waiters.empty() || live->subscribers > 0;
    if (!live->job.live() && !busy) over.emplace_back(live->last_seen_s, id);
  }
  if (over.size() <= keep) return;
  std::ranges::sort(over);
  over.resize(over.size() - keep);
  for (const auto& [seen_s, id] : over) live_.erase(id);  // its wake, if any, reads it again
}

void JobCache::remove(const std::string& id, work::Done<Ok> done) {
  const LiveJob* const live = in_memory(id);
  if (live != nullptr && !live->outbox_.all_durable()) {
    return done(Error{ErrorCode::unavailable, "job " + id + " is being written: try again"});
  }
  store_.write(&store::Store::remove_job, id, [this, id, done = std::move(done)](const Result<Ok>& removed) {
    if (removed) {
      forget(id);
      index_.erase(id);
    }
    done(removed);
  });
}

Result<JobLog> read_log(store::Store& store, const std::string& id, std::int64_t after) {
  const auto stored = store.read(id, 0);
  if (!stored) return stored.error();
  JobLog read;
  read.job.id = id;
  for (const store::StoredEvent& item : *stored) {
    jobs::Event event = jobs::event_in_log(item.body);
    if (Status folded = jobs::apply(read.job, event); !folded) return folded.error();
    if (item.sequence > after) read.events.push_back({item.sequence, std::move(event)});
  }
  return read;
}

}  // namespace perseus::live
