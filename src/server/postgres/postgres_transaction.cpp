#include "server/postgres/postgres_transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "server/store/stored_log.h"

namespace perseus::postgres {
namespace {

/// Limit on the bytes of appends that wait for their round trips.
constexpr std::size_t kMostPendingBytes = std::size_t{32} << 20;

}  // namespace

void PostgresTransaction::append(PendingAppend& pending) {
  for (const std::string& body : pending.append.bodies) pending_bytes_ += body.size();
  appends_.push_back(&pending);
  if (pending_bytes_ > kMostPendingBytes) flush();
}

PostgresRows PostgresTransaction::run(const char* sql, std::initializer_list<PostgresValue> values) {
  flush();
  return connection_.run(sql, values);
}

void PostgresTransaction::put_blob(const store::Blob& blob) {
  flush();
  write_blob(blob);
}

void PostgresTransaction::write_blob(const store::Blob& blob) {
  const std::string_view key = blob.key;
  connection_.run(
      "INSERT INTO blobs(key, bytes, crc) VALUES($1, $2, $3) "
      "ON CONFLICT (key) DO UPDATE SET bytes = excluded.bytes, crc = excluded.crc",
      {key, store::Bytes{blob.bytes}, store::checksum_of_blob(blob.key, blob.bytes)});
  connection_.run("DELETE FROM unused WHERE key = $1", {key});
  connection_.run("DELETE FROM holds WHERE holder = $1", {key});
  hold(blob.key, blob.holds);
}

void PostgresTransaction::hold(const std::string& holder, const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  connection_.run("INSERT INTO holds(holder, key) SELECT $1, key FROM unnest($2::text[]) key ON CONFLICT DO NOTHING",
                  {std::string_view(holder), array_literal(keys)});
}

void PostgresTransaction::flush() {
  if (!appends_.empty()) write_appends();
  appends_.clear();
  pending_bytes_ = 0;
}

void PostgresTransaction::commit() {
  flush();
  connection_.script("COMMIT");
}

void PostgresTransaction::write_appends() {
  std::map<std::string, LockedJob> jobs = locked_jobs();
  std::vector<std::string> event_jobs, event_bodies;
  std::vector<std::int64_t> event_sequences, event_checksums;
  for (PendingAppend* pending : appends_) {
    const store::Append& append = pending->append;
    LockedJob& job = jobs[append.job];
    const auto events = store::accept_append(append, job.row);
    pending->outcome = events ? store::Appended::committed : store::Appended::conflict;
    if (!events) continue;
    job.newest = &append;
    for (const store::EventRow& event : *events) {
      event_jobs.push_back(append.job);
      event_sequences.push_back(event.sequence);
      event_bodies.push_back(*event.body);
      event_checksums.push_back(event.crc);
    }
    for (const store::Blob& blob : append.blobs) write_blob(blob);
    hold(store::holder_of_job(append.job), append.holds);
  }
  write_index(jobs);
  if (event_jobs.empty()) return;
  connection_.run(
      "INSERT INTO events(job, sequence, body, crc) "
      "SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[])",
      {array_literal(event_jobs), array_literal(event_sequences), array_literal(event_bodies),
       array_literal(event_checksums)});
}

std::map<std::string, PostgresTransaction::LockedJob> PostgresTransaction::locked_jobs() {
  std::map<std::string, LockedJob> jobs;
  std::vector<std::string> created;
  for (const PendingAppend* pending : appends_) {
    jobs.try_emplace(pending->append.job);
    if (pending->append.expected_sequence == 0) created.push_back(pending->append.job);
  }
  if (!created.empty()) {
    std::ranges::sort(created);
    connection_.run(
        "INSERT INTO jobs(job, state, name, created_s, updated_s, last_sequence) "
        "SELECT new, '', '', 0, 0, 0 FROM unnest($1::text[]) new ON CONFLICT DO NOTHING",
        {array_literal(created)});
  }
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs) ids.push_back(id);
  static const std::string sql =
      fmt::format("SELECT {} FROM jobs WHERE job = ANY($1::text[]) ORDER BY job FOR UPDATE", store::kJobColumns);
  const PostgresRows rows = connection_.run(sql.c_str(), {array_literal(ids)});
  for (int row = 0; row < rows.size(); ++row) {
    store::JobIndexRow index = store::job_index_row(PostgresRow{rows, row});
    if (index.last_sequence == 0) index.damaged = false;  // newly created
    jobs[rows.text(row, 0)].row = std::move(index);
  }
  return jobs;
}

void PostgresTransaction::write_index(const std::map<std::string, LockedJob>& jobs) {
  std::vector<std::string> ids, states, names, summaries;
  std::vector<std::optional<double>> created, updated, wakes;
  std::vector<std::int64_t> sequences, bytes, checksums;
  for (const auto& [id, job] : jobs) {
    if (job.newest == nullptr) continue;
    const store::JobIndexRow index = store::index_after(*job.newest, job.row);
    ids.push_back(id);
    states.push_back(index.state);
    names.push_back(index.name);
    created.emplace_back(index.created_s);
    updated.emplace_back(index.updated_s);
    wakes.push_back(index.next_wake_s);
    sequences.push_back(index.last_sequence);
    summaries.push_back(index.summary);
    bytes.push_back(index.bytes);
    checksums.push_back(store::checksum_of(index));
  }
  if (ids.empty()) return;
  connection_.run(
      "UPDATE jobs SET state = new.state, name = new.name, created_s = new.created_s, updated_s = new.updated_s, "
      "next_wake_s = new.next_wake_s, last_sequence = new.last_sequence, summary = new.summary, bytes = new.bytes, "
      "crc = new.crc FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::double precision[], "
      "$6::double precision[], $7::bigint[], $8::text[], $9::bigint[], $10::bigint[]) AS new(job, state, name, "
      "created_s, updated_s, next_wake_s, last_sequence, summary, bytes, crc) WHERE jobs.job = new.job",
      {array_literal(ids), array_literal(states), array_literal(names), array_literal(created), array_literal(updated),
       array_literal(wakes), array_literal(sequences), array_literal(summaries), array_literal(bytes),
       array_literal(checksums)});
}

}  // namespace perseus::postgres
