#include "server/live_jobs.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::server {
namespace {

constexpr double store_retry_s = 1;  // after the store failed

/// The job's ranks have started anew: iterations count from 0.
void forget_iterations(LiveJob& live) {
  live.progress.reset();
  live.followed = {};
  live.schedules.clear();
}

void answer(const Command& command, const Status& status) {
  if (command.done) command.done(status);
}

}  // namespace

Error later_version(const std::string& job) {
  return {ErrorCode::unavailable,
          fmt::format("job {} was changed by a later version of Perseus, which this server does not know: ask a server "
                      "of that version",
                      job)};
}

LiveJobs::LiveJobs(Store& store, const Clock& clock, Hooks hooks)
    : store_(store), clock_(clock), hooks_(std::move(hooks)) {}

Status LiveJobs::open() {
  auto rows = store_.jobs();
  if (!rows) return rows.error();
  for (JobIndexRow& row : *rows) {
    if (row.next_wake_s && !row.damaged) wakes_.emplace(*row.next_wake_s, row.job);
    index_.emplace(row.job, std::move(row));
  }
  return Ok{};
}

// ---- Reading

Result<std::vector<SequencedEvent>> LiveJobs::read(const std::string& id, std::int64_t after) {
  const auto stored = store_.read(id, after);
  if (!stored) return stored.error();
  std::vector<SequencedEvent> events;
  events.reserve(stored->size());
  for (const StoredEvent& item : *stored) { events.push_back({item.sequence, event_in_log(item.body)}); }
  return events;
}

LiveJob* LiveJobs::in_memory(const std::string& id) {
  const auto found = live_.find(id);
  return found == live_.end() ? nullptr : found->second.get();
}

Result<LiveJob*> LiveJobs::find(const std::string& id) {
  if (LiveJob* live = in_memory(id); live != nullptr) {
    if (live->stale_ && !live->appending_) {
      if (Status read_again = reload(*live); !read_again) return read_again.error();
    }
    return live;
  }
  // Another server may have made it a moment ago: it is looked for even if it is not in the index.
  auto fresh = std::make_unique<LiveJob>();
  fresh->job.id = id;
  if (Status read_it = reload(*fresh); !read_it) {
    if (index_.find(id) != index_.end() && read_it.error().code == ErrorCode::internal) index_[id].damaged = true;
    return read_it.error();
  }
  if (fresh->job.state == JobState::none && fresh->job.unknown_events > 0) return later_version(id);
  if (fresh->job.state == JobState::none) {
    index_.erase(id);
    return Error{ErrorCode::not_found, fmt::format("no job {}", id)};
  }
  LiveJob* live = live_.emplace(id, std::move(fresh)).first->second.get();
  index_.try_emplace(id, row_of(*live, clock_.now_s()));
  hooks_.committed(*live, {});
  touch(*live);
  return live;
}

/// Memory becomes what the store says. What it says beyond what was durable before is news.
Status LiveJobs::reload(LiveJob& live) {
  auto events = read(live.job.id, 0);
  if (!events) return events.error();
  Job job;
  job.id = live.job.id;
  for (const SequencedEvent& event : *events) {
    if (Status folded = apply(job, event.event); !folded) return folded;
  }
  const std::int64_t before = live.committed;
  const bool starts_anew = job.restarts != live.job.restarts;
  live.job = std::move(job);
  if (before == 0 || starts_anew) {
    forget_iterations(live);
    if (live.job.kept) live.followed.take(*live.job.kept, live.job.spec.degrees.world_size());
  }
  live.committed = live.job.sequence;
  live.stale_ = false;
  live.settled = false;
  live.schedules.clear();
  std::erase_if(*events, [&](const SequencedEvent& event) { return event.sequence <= before; });
  for (const SequencedEvent& event : *events) {
    const auto* const kept = std::get_if<ReportsKept>(&event.event.body);
    if (before > 0 && !starts_anew && kept != nullptr) {
      live.followed.take(*kept, live.job.spec.degrees.world_size());
    }
  }
  if (before > 0) {
    became_durable(live, *events);
  } else {
    live.committed_plan = live.job.version;
    set_wake(live, clock_.now_s());
  }
  return Ok{};
}

bool LiveJobs::catch_up(LiveJob& live) {
  if (live.appending_) return false;  // the append will conflict, if there is something
  const auto tail = store_.read(live.job.id, live.committed);
  if (!tail || tail->empty() || !reload(live)) return false;
  index_[live.job.id] = row_of(live, clock_.now_s());
  touch(live);
  return true;
}

void LiveJobs::on_foreign(const std::string& id, std::int64_t sequence) {
  if (sequence == 0) {
    if (const LiveJob* live = in_memory(id); live == nullptr || !live->appending_) live_.erase(id);
    index_.erase(id);
    return;
  }
  LiveJob* live = in_memory(id);
  if (live == nullptr) {
    index_.try_emplace(id, JobIndexRow{id, "", "", 0, 0, std::nullopt, 0, ""});
    const auto found = find(id);  // an error is met again when somebody asks
    if (found) index_[id] = row_of(**found, clock_.now_s());
    return;
  }
  if (sequence <= live->committed) return;
  live->stale_ = true;
  if (live->appending_) return;  // the append will conflict
  if (reload(*live)) {
    index_[id] = row_of(*live, clock_.now_s());
    touch(*live);
  }
}

// ---- Changing

bool LiveJob::is_pending(std::string_view blob) const {
  const auto brings_it = [&](const Entry& entry) {
    return std::ranges::find(entry.blobs, blob, &Blob::key) != entry.blobs.end();
  };
  return std::ranges::any_of(in_flight_, brings_it) || std::ranges::any_of(outbox_, brings_it);
}

void LiveJobs::execute(const std::string& id, Command command) {
  const auto live = find(id);
  if (!live) return answer(command, live.error());
  run(**live, std::move(command));
}

void LiveJobs::create(const std::string& id, Command command) {
  auto fresh = std::make_unique<LiveJob>();
  fresh->job.id = id;
  fresh->last_seen_s = clock_.now_s();
  LiveJob& live = *live_.emplace(id, std::move(fresh)).first->second;
  run(live, std::move(command));
  if (live.job.state == JobState::none) live_.erase(id);
}

void LiveJobs::run(LiveJob& live, Command command) {
  LiveJob::Entry entry{std::move(command), {}, {}, {}};
  Status decided = decide_into(live, entry);
  if (!decided && entry.events.empty() && !live.stale_ && catch_up(live)) decided = decide_into(live, entry);
  if (!decided) {
    if (live.stale_ && !live.appending_ && live.committed > 0) (void)reload(live).ok();
    answer(entry.command, decided);
    return;
  }
  const bool waits_for_nothing = entry.events.empty() && live.outbox_.empty() && !live.appending_;
  if (waits_for_nothing) {
    set_wake(live, clock_.now_s());
    answer(entry.command, Ok{});
    return;
  }
  if (entry.events.empty() && !entry.command.done) return;
  live.outbox_.push_back(std::move(entry));
  flush(live);
}

Status LiveJobs::decide_into(LiveJob& live, LiveJob::Entry& entry) {
  const double now_s = clock_.now_s();
  if (live.job.unknown_events > 0) return later_version(live.job.id);
  if (entry.command.decide) {
    auto decision = entry.command.decide(live.job, now_s);
    if (!decision) return decision.error();
    entry.blobs = std::move(decision->blobs);
    entry.holds = std::move(decision->holds);
    for (EventBody& body : decision->events) {
      if (Status folded = fold(live, entry, std::move(body), now_s); !folded) return folded;
    }
  }
  follow_up(live, entry, now_s);
  return Ok{};
}

void LiveJobs::follow_up(LiveJob& live, LiveJob::Entry& entry, double now_s) {
  while (auto body = hooks_.next_follow_up(live, now_s)) {
    if (!fold(live, entry, *std::move(body), now_s)) return;
  }
}

Status LiveJobs::fold(LiveJob& live, LiveJob::Entry& entry, EventBody body, double now_s) {
  Event event{now_s, std::move(body)};
  const int restarts = live.job.restarts;
  Status folded = apply(live.job, event);
  if (live.job.restarts != restarts) forget_iterations(live);
  if (!folded) {
    // A decision that the state machine refuses is a bug of ours: what was folded of it must not stay.
    entry.events.clear();
    live.stale_ = true;
    return folded;
  }
  const bool no_matter =
      std::holds_alternative<RankRegistered>(event.body) || std::holds_alternative<RankMeasured>(event.body) ||
      std::holds_alternative<ResultReported>(event.body) || std::holds_alternative<JobSeen>(event.body) ||
      std::holds_alternative<IterationsCounted>(event.body) || std::holds_alternative<ReportsKept>(event.body);
  if (!no_matter) live.settled = false;
  entry.events.push_back({live.job.sequence, std::move(event)});
  return Ok{};
}

void LiveJobs::flush(LiveJob& live) {
  if (live.appending_ || live.outbox_.empty()) return;
  live.in_flight_ = std::move(live.outbox_);
  live.outbox_.clear();
  Append append;
  append.job = live.job.id;
  append.expected_sequence = live.committed;
  for (LiveJob::Entry& entry : live.in_flight_) {
    for (const SequencedEvent& event : entry.events) append.bodies.push_back(format_event(event.event));
    std::ranges::copy(entry.blobs, std::back_inserter(append.blobs));
    std::ranges::copy(entry.holds, std::back_inserter(append.holds));
    for (const Blob& blob : entry.blobs) {
      append.holds.push_back(blob.key);
      if (blob.key.starts_with("input/")) append.holds.push_back("frontier/" + blob.key.substr(6));
    }
  }
  live.appending_ = true;
  if (append.bodies.empty()) return appended(live.job.id, Appended::committed);
  append.index = row_of(live, clock_.now_s());
  store_.append(std::move(append), [weak = weak_from_this(), id = live.job.id](Result<Appended> result) {
    if (const auto self = weak.lock()) self->appended(id, std::move(result));
  });
}

void LiveJobs::appended(const std::string& id, Result<Appended> result) {
  LiveJob* live = in_memory(id);
  if (live == nullptr) return;
  live->appending_ = false;
  std::vector<LiveJob::Entry> entries = std::move(live->in_flight_);
  live->in_flight_.clear();
  if (!result || *result == Appended::conflict) {
    for (LiveJob::Entry& entry : live->outbox_) entries.push_back(std::move(entry));
    live->outbox_.clear();
    live->stale_ = true;
    return result ? again(*live, std::move(entries)) : fail(*live, std::move(entries), result.error());
  }
  std::vector<SequencedEvent> events;
  for (LiveJob::Entry& entry : entries) std::ranges::move(entry.events, std::back_inserter(events));
  if (!events.empty()) {
    live->committed = events.back().sequence;
    JobIndexRow& row = index_[id];
    row = row_of(*live, clock_.now_s());
    row.last_sequence = live->committed;
  }
  became_durable(*live, events);
  for (const LiveJob::Entry& entry : entries) answer(entry.command, Ok{});
  if (live->stale_ && !live->appending_) {  // what came meanwhile was decided on a job that is not the store's
    std::vector<LiveJob::Entry> rest = std::move(live->outbox_);
    live->outbox_.clear();
    return again(*live, std::move(rest));
  }
  flush(*live);
}

/// Another server was first: what it did is read, and the same requests decide again.
void LiveJobs::again(LiveJob& live, std::vector<LiveJob::Entry> entries) {
  if (Status read_again = reload(live); !read_again) return fail(live, std::move(entries), read_again.error());
  if (live.job.state == JobState::none) {
    const std::string id = live.job.id;
    index_.erase(id);
    return fail(live, std::move(entries), {ErrorCode::not_found, fmt::format("no job {}", id)});
  }
  for (LiveJob::Entry& entry : entries) {
    if (entry.command.decide || entry.command.done) run(live, std::move(entry.command));
  }
  touch(live);
}

void LiveJobs::fail(LiveJob& live, std::vector<LiveJob::Entry> entries, const Error& error) {
  const std::string id = live.job.id;
  if (live.committed == 0) {
    live_.erase(id);  // it never was
  } else {
    live.stale_ = true;
    const double retry_s = clock_.now_s() + store_retry_s;
    if (live.wake_s) wakes_.erase({*live.wake_s, id});
    live.wake_s = retry_s;
    wakes_.emplace(retry_s, id);
    if (earlier_wake) earlier_wake();
  }
  for (const LiveJob::Entry& entry : entries) answer(entry.command, error);
}

void LiveJobs::became_durable(LiveJob& live, const std::vector<SequencedEvent>& events) {
  for (const SequencedEvent& event : events) {
    if (const auto* plan = std::get_if<PlanDeployed>(&event.event.body)) live.committed_plan = plan->version;
    if (const auto* window = std::get_if<WindowHandedOut>(&event.event.body)) live.committed_plan = window->version;
  }
  set_wake(live, clock_.now_s());
  hooks_.committed(live, events);
}

// ---- Time and the index

JobIndexRow LiveJobs::row_of(const LiveJob& live, double now_s) const {
  const Job& job = live.job;
  return {job.id,        std::string(name_of(job.state)), job.spec.name, job.created_s,
          job.updated_s, hooks_.next_wake(live, now_s),   job.sequence,  hooks_.summary(live, now_s)};
}

void LiveJobs::set_wake(LiveJob& live, double now_s) {
  const auto next = hooks_.next_wake(live, now_s);
  if (next == live.wake_s && (!next || wakes_.contains({*next, live.job.id}))) return;
  const auto before = next_wake();
  if (live.wake_s) wakes_.erase({*live.wake_s, live.job.id});
  if (const auto row = index_.find(live.job.id); row != index_.end() && row->second.next_wake_s) {
    wakes_.erase({*row->second.next_wake_s, live.job.id});
  }
  live.wake_s = next;
  if (next) wakes_.emplace(*next, live.job.id);
  if (next && (!before || *next < *before) && earlier_wake) earlier_wake();
}

std::vector<std::string> LiveJobs::take_due(double now_s) {
  std::vector<std::string> due;
  while (!wakes_.empty() && wakes_.begin()->first <= now_s) {
    due.push_back(wakes_.begin()->second);
    wakes_.erase(wakes_.begin());
  }
  return due;
}

std::optional<double> LiveJobs::next_wake() const {
  if (wakes_.empty()) return std::nullopt;
  return wakes_.begin()->first;
}

void LiveJobs::forget_finished(std::size_t keep) {
  std::vector<std::pair<double, std::string>> over;
  for (const auto& [id, live] : live_) {
    const bool busy = live->appending_ || !live->outbox_.empty() || !live->waiters.empty() || live->subscribers > 0;
    if (!live->job.live() && !busy) over.emplace_back(live->last_seen_s, id);
  }
  if (over.size() <= keep) return;
  std::ranges::sort(over);
  over.resize(over.size() - keep);
  for (const auto& [seen_s, id] : over) live_.erase(id);
}

void LiveJobs::remove(const std::string& id, std::function<void(const Status&)> done) {
  const LiveJob* const live = in_memory(id);
  if (live != nullptr && (live->appending_ || !live->outbox_.empty())) {
    return done(Error{ErrorCode::unavailable, "job " + id + " is being written: ask again"});
  }
  store_.remove_job(id, [weak = weak_from_this(), id, done = std::move(done)](const Result<Ok>& removed) {
    const auto self = weak.lock();
    if (!self) return;
    if (removed) {
      self->live_.erase(id);
      self->index_.erase(id);
    }
    done(removed);
  });
}

}  // namespace perseus::server
