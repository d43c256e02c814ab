#include "server/store/memory_store.h"

#include <algorithm>
#include <utility>

namespace perseus::store {

MemoryStore::MemoryStore(Post post, std::shared_ptr<MemoryDatabase> database)
    : post_(std::move(post)), database_(std::move(database)) {}

template <class T, class Work>
void MemoryStore::write(Done<T> done, Work work) {
  post_(
      [alive = std::weak_ptr(alive_), database = database_, done = std::move(done), work = std::move(work)]() mutable {
        const auto& failure = database->failure ? database->failure : database->write_failure;
        if (alive.expired()) return;
        Result<T> made = failure ? Result<T>(*failure) : Result<T>(work());
        done(made && database->lost_answer ? Result<T>(*database->lost_answer) : std::move(made));
      });
}

std::optional<Error> MemoryStore::cannot_read() const {
  PERSEUS_CHECK(database_->may_read, "no read of the store on a thread that must not wait");
  return database_->failure;
}

void MemoryStore::append(Append append, Done<Appended> done) {
  write<Appended>(std::move(done), [this, append = std::move(append)]() mutable {
    const auto found = database_->jobs.find(append.job);
    const std::int64_t last = found == database_->jobs.end() ? 0 : found->second.index.last_sequence;
    if (last != append.expected_sequence) return Appended::conflict;
    MemoryDatabase::StoredJob& job = database_->jobs[append.job];
    for (std::string& body : append.bodies) {
      job.events.push_back({static_cast<std::int64_t>(job.events.size()) + 1, std::move(body)});
    }
    const std::int64_t packed = job.index.packed;
    job.index = append.index;
    job.index.job = append.job;
    job.index.packed = packed;
    job.index.bytes = 0;
    for (const StoredEvent& event : job.events) job.index.bytes += static_cast<std::int64_t>(event.body.size());
    job.index.last_sequence = static_cast<std::int64_t>(job.events.size());
    for (Blob& blob : append.blobs) put(std::move(blob));
    for (const std::string& key : append.holds) database_->holds.emplace("job/" + append.job, key);
    return Appended::committed;
  });
}

void MemoryStore::put(Blob blob) {
  release_all(blob.key);
  for (const std::string& held : blob.holds) database_->holds.emplace(blob.key, held);
  database_->unused_since.erase(blob.key);
  database_->blobs[blob.key] = std::move(blob.bytes);
}

void MemoryStore::release_all(const std::string& holder) {
  std::erase_if(database_->holds, [&](const auto& hold) { return hold.first == holder; });
}

Result<std::vector<StoredEvent>> MemoryStore::read(std::string_view job, std::int64_t after) {
  if (auto failure = cannot_read()) return *std::move(failure);
  const auto found = database_->jobs.find(job);
  if (found == database_->jobs.end()) return std::vector<StoredEvent>{};
  if (const std::string& damage = found->second.damage; !damage.empty()) {
    return Error{ErrorCode::internal, "job " + found->first + " is damaged: " + damage};
  }
  const std::vector<StoredEvent>& events = found->second.events;
  const auto skipped = std::min<std::int64_t>(after, static_cast<std::int64_t>(events.size()));
  return std::vector<StoredEvent>(events.begin() + skipped, events.end());
}

Result<std::vector<JobIndexRow>> MemoryStore::jobs() {
  if (auto failure = cannot_read()) return *std::move(failure);
  std::vector<JobIndexRow> rows;
  rows.reserve(database_->jobs.size());
  for (const auto& [id, job] : database_->jobs) {
    rows.push_back(job.index);
    rows.back().damaged = !job.damage.empty();
  }
  return rows;
}

void MemoryStore::remove_job(std::string job, Done<Ok> done) {
  write<Ok>(std::move(done), [this, job = std::move(job)]() mutable {
    database_->jobs.erase(job);
    release_all("job/" + job);
    std::erase_if(database_->history, [&](const auto& row) { return std::get<0>(row.first) == job; });
    return Ok{};
  });
}

void MemoryStore::pack_job(std::string job, Done<bool> done) {
  write<bool>(std::move(done), [this, job = std::move(job)]() mutable {
    const auto found = database_->jobs.find(job);
    if (found != database_->jobs.end()) found->second.index.packed = found->second.index.last_sequence;
    return false;
  });
}

void MemoryStore::write_history(std::vector<HistoryRow> rows, Done<Ok> done) {
  write<Ok>(std::move(done), [this, rows = std::move(rows)]() mutable {
    for (HistoryRow& row : rows) {
      if (row.job != kAllJobs && !database_->jobs.contains(row.job)) continue;
      database_->history[{row.job, row.step_s, row.start_s, row.source}] = row.figures;
    }
    return Ok{};
  });
}

Result<std::vector<HistoryRow>> MemoryStore::history(std::string_view job, std::int64_t from_s, std::int64_t to_s) {
  if (auto failure = cannot_read()) return *std::move(failure);
  std::vector<HistoryRow> rows;
  for (const auto& [key, figures] : database_->history) {
    const auto& [of, step_s, start_s, source] = key;
    if (of == job && from_s <= start_s && start_s < to_s) rows.push_back({of, step_s, start_s, source, figures});
  }
  return rows;
}

void MemoryStore::age_history(AgeHistory age, Done<bool> done) {
  write<bool>(std::move(done), [this, age]() mutable {
    std::vector<HistoryRow> minutes;
    std::erase_if(database_->history, [&](const auto& entry) {
      const auto& [job, step_s, start_s, source] = entry.first;
      const bool is_minute = step_s == kMinute_s;
      const bool is_old = start_s < (is_minute ? age.minutes_before_s : age.hours_before_s);
      if (is_old && is_minute) minutes.push_back({job, step_s, start_s, source, entry.second});
      return is_old;
    });
    for (const HistoryRow& hour : hours_of(minutes)) {
      if (hour.start_s < age.hours_before_s) continue;
      database_->history[{hour.job, hour.step_s, hour.start_s, hour.source}].add(hour.figures);
    }
    age_site_history(age);
    return false;
  });
}

void MemoryStore::write_site_history(std::vector<SiteRow> rows, Done<Ok> done) {
  write<Ok>(std::move(done), [this, rows = std::move(rows)]() mutable {
    for (SiteRow& row : rows) {
      database_->site_history[{row.step_s, row.start_s, row.domain, row.source}] = std::move(row.figures);
    }
    return Ok{};
  });
}

Result<std::vector<SiteRow>> MemoryStore::site_history(std::int64_t from_s, std::int64_t to_s) {
  if (auto failure = cannot_read()) return *std::move(failure);
  std::vector<SiteRow> rows;
  for (const auto& [key, figures] : database_->site_history) {
    const auto& [step_s, start_s, domain, source] = key;
    if (from_s <= start_s && start_s < to_s) rows.push_back({domain, step_s, start_s, source, figures});
  }
  return rows;
}

void MemoryStore::age_site_history(const AgeHistory& age) {
  std::vector<SiteRow> minutes;
  std::erase_if(database_->site_history, [&](const auto& entry) {
    const auto& [step_s, start_s, domain, source] = entry.first;
    const bool is_minute = step_s == kMinute_s;
    const bool is_old = start_s < (is_minute ? age.minutes_before_s : age.hours_before_s);
    if (is_old && is_minute) minutes.push_back({domain, step_s, start_s, source, entry.second});
    return is_old;
  });
  for (const SiteRow& hour : site_hours_of(minutes)) {
    if (hour.start_s < age.hours_before_s) continue;
    database_->site_history[{hour.step_s, hour.start_s, hour.domain, hour.source}].add(hour.figures);
  }
}

Result<std::vector<HistoryBytes>> MemoryStore::history_bytes() {
  if (auto failure = cannot_read()) return *std::move(failure);
  std::vector<HistoryBytes> bytes;
  for (const auto& [key, figures] : database_->history) {
    if (std::get<0>(key) == kAllJobs) continue;
    if (bytes.empty() || bytes.back().job != std::get<0>(key)) bytes.push_back({std::get<0>(key), 0});
    bytes.back().bytes += kHistoryRowBytes;
  }
  return bytes;
}

void MemoryStore::put_blob(Blob blob, Done<Ok> done) {
  write<Ok>(std::move(done), [this, blob = std::move(blob)]() mutable {
    put(std::move(blob));
    return Ok{};
  });
}

Result<std::optional<std::string>> MemoryStore::blob(std::string_view key) {
  if (auto failure = cannot_read()) return *std::move(failure);
  const auto found = database_->blobs.find(key);
  if (database_->damaged_blobs.contains(key)) {
    return Error{ErrorCode::internal, "the stored '" + std::string(key) + "' is damaged"};
  }
  if (found == database_->blobs.end()) return std::optional<std::string>{};
  return std::optional<std::string>(found->second);
}

Result<std::vector<std::string>> MemoryStore::blob_keys(std::string_view prefix) {
  if (auto failure = cannot_read()) return *std::move(failure);
  std::vector<std::string> keys;
  for (auto at = database_->blobs.lower_bound(prefix); at != database_->blobs.end() && at->first.starts_with(prefix);
       ++at) {
    keys.push_back(at->first);
  }
  return keys;
}

void MemoryStore::remove_blob(std::string key, Done<Ok> done) {
  write<Ok>(std::move(done), [this, key = std::move(key)]() mutable {
    database_->blobs.erase(key);
    release_all(key);
    return Ok{};
  });
}

void MemoryStore::sweep(Sweep sweep, Done<bool> done) {
  write<bool>(std::move(done), [this, sweep = std::move(sweep)]() mutable {
    const auto held = [this](const std::string& key) {
      return std::ranges::any_of(database_->holds, [&](const auto& hold) { return hold.second == key; });
    };
    std::erase_if(database_->unused_since, [&](const auto& unused) { return held(unused.first); });
    std::vector<std::string> over;
    for (const auto& [key, bytes] : database_->blobs) {
      const auto begins = [&key = key](const std::string& prefix) { return key.starts_with(prefix); };
      if (!std::ranges::any_of(sweep.prefixes, begins) || held(key)) continue;
      const double since_s = database_->unused_since.emplace(key, sweep.now_s).first->second;
      if (since_s + sweep.grace_s <= sweep.now_s) over.push_back(key);
    }
    for (const std::string& key : over) {
      database_->blobs.erase(key);
      database_->unused_since.erase(key);
      release_all(key);
    }
    return !over.empty();
  });
}

void MemoryStore::put_token(TokenRow token, Done<Ok> done) {
  write<Ok>(std::move(done), [this, token = std::move(token)]() mutable {
    std::string hash = token.hash;
    database_->tokens[std::move(hash)] = std::move(token);
    return Ok{};
  });
}

void MemoryStore::revoke_token(std::string hash, Done<Ok> done) {
  write<Ok>(std::move(done), [this, hash = std::move(hash)]() mutable {
    database_->tokens.erase(hash);
    return Ok{};
  });
}

Result<std::vector<TokenRow>> MemoryStore::tokens() {
  if (auto failure = cannot_read()) return *std::move(failure);
  std::vector<TokenRow> rows;
  for (const auto& [hash, token] : database_->tokens) rows.push_back(token);
  return rows;
}

Result<std::int64_t> MemoryStore::size_bytes() {
  if (auto failure = cannot_read()) return *std::move(failure);
  std::size_t bytes = 0;
  for (const auto& [id, job] : database_->jobs) bytes += static_cast<std::size_t>(job.index.bytes);
  for (const auto& [key, blob] : database_->blobs) bytes += blob.size();
  return static_cast<std::int64_t>(bytes);
}

Result<std::vector<HeldBlob>> MemoryStore::held_blobs() {
  if (auto failure = cannot_read()) return *std::move(failure);
  constexpr std::string_view job = "job/";
  std::vector<HeldBlob> held;
  for (const auto& [holder, key] : database_->holds) {
    const auto blob = database_->blobs.find(key);
    if (!holder.starts_with(job) || blob == database_->blobs.end()) continue;
    held.push_back({holder.substr(job.size()), key, static_cast<std::int64_t>(blob->second.size())});
  }
  return held;
}

Status MemoryStore::backup(const std::string& path) {
  return Error{ErrorCode::usage, path + ": a store in memory has nothing to back up"};
}

}  // namespace perseus::store
