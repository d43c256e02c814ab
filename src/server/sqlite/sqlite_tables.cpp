#include "server/sqlite/sqlite_tables.h"

#include <fmt/format.h>

#include <utility>

#include "server/store/shared_tables.h"

namespace perseus::sqlite {
namespace {

std::int64_t checksum_of_name(std::string_view key) { return store::Checksum().add(key).value(); }

bool is_right_name(const SqliteRow& key_and_crc) {
  return checksum_of_name(key_and_crc.text(0)) == key_and_crc.integer(1);
}

}  // namespace

// Jobs.

std::optional<store::JobIndexRow> SqliteTables::index_row_of(const std::string& job) {
  static const std::string sql = fmt::format("SELECT {} FROM jobs WHERE job = ?", store::kJobColumns);
  std::optional<store::JobIndexRow> row;
  connection_.each(
      sql.c_str(), [&](const SqliteRow& found) { row = store::job_index_row(found); }, job);
  return row;
}

bool SqliteTables::has_events(const std::string& job) {
  bool has = false;
  connection_.each(
      "SELECT EXISTS (SELECT 1 FROM events WHERE job = ?1) OR EXISTS (SELECT 1 FROM packs WHERE job = ?1)",
      [&](const SqliteRow& found) { has = found.integer(0) != 0; }, job);
  return has;
}

void SqliteTables::write_index(const store::JobIndexRow& row) {
  connection_.run("INSERT OR REPLACE INTO jobs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.job, row.state, row.name,
                  row.created_s, row.updated_s, row.next_wake_s, row.last_sequence, row.summary, row.bytes, row.packed,
                  store::checksum_of(row));
}

store::Appended SqliteTables::append(const store::Append& append) {
  store::JobIndexRow present = index_row_of(append.job).value_or(store::JobIndexRow{});
  const auto events = store::accept_append(append, present);
  if (!events) return store::Appended::conflict;
  for (const store::EventRow& event : *events) {
    connection_.run("INSERT INTO events VALUES(?, ?, ?, ?)", append.job, event.sequence, *event.body, event.crc);
  }
  write_index(store::index_after(append, present));
  for (const store::Blob& blob : append.blobs) put_blob(blob);
  hold(store::holder_of_job(append.job), append.holds);
  return store::Appended::committed;
}

Result<std::vector<store::StoredEvent>> SqliteTables::read(const std::string& job, std::int64_t after) {
  store::LogReader log(job, after);
  const auto row = index_row_of(job);
  if (row && row->damaged) return log.damaged_index();
  Status whole = Ok{};
  SQLite::Statement& packs = connection_.bound(
      "SELECT first, last, bytes, crc FROM packs WHERE job = ? AND last > ? ORDER BY last", job, after);
  while (whole && packs.executeStep()) {
    const SqliteRow found{packs};
    whole = log.add_pack(found.integer(0), found.integer(1), found.text(2), found.integer(3));
  }
  packs.reset();
  if (!whole) return whole.error();
  SQLite::Statement& events = connection_.bound(
      "SELECT sequence, body, crc FROM events WHERE job = ? AND sequence >= ? ORDER BY sequence", job, log.next());
  while (whole && events.executeStep()) {
    const SqliteRow found{events};
    whole = log.add_event({found.integer(0), found.text(1)}, found.integer(2));
  }
  events.reset();
  if (!whole) return whole.error();
  if (!row && has_events(job)) return log.damaged_index();
  return log.finish(row);
}

bool SqliteTables::pack_job(const std::string& job) {
  auto row = index_row_of(job);
  if (!row) return false;
  store::LogPacker packer(*std::move(row));
  if (!packer.has_work()) return false;
  bool right = true;
  const std::int64_t first = packer.first();
  SQLite::Statement& events = connection_.bound(
      "SELECT sequence, body, crc FROM events WHERE job = ? AND sequence >= ? ORDER BY sequence", job, first);
  while (right && packer.has_room() && events.executeStep()) {
    const SqliteRow found{events};
    right = packer.add(found.integer(0), found.text(1), found.integer(2));
  }
  events.reset();
  const auto pack = right ? packer.finish() : std::nullopt;
  if (!pack) return false;
  put_bytes(connection_.bound("INSERT INTO packs VALUES(?, ?, ?, ?, ?)", job, pack->last, pack->first, pack->crc), 5,
            pack->bytes);
  connection_.run("DELETE FROM events WHERE job = ? AND sequence <= ?", job, pack->last);
  write_index(pack->index);
  return pack->more;
}

// Blobs.

bool SqliteTables::has_damaged_names() {
  bool damaged = false;
  connection_.each("SELECT key, key_crc FROM blobs",
                   [&](const SqliteRow& found) { damaged = damaged || !is_right_name(found); });
  return damaged;
}

void SqliteTables::put_bytes(SQLite::Statement& statement, int index, const std::string& bytes) {
  statement.bindNoCopy(index, bytes.data(), static_cast<int>(bytes.size()));
  statement.exec();
  statement.reset();
}

void SqliteTables::put_blob(const store::Blob& blob) {
  put_bytes(connection_.bound("INSERT OR REPLACE INTO blobs VALUES(?, ?, ?, ?)", blob.key, checksum_of_name(blob.key),
                              store::checksum_of_blob(blob.key, blob.bytes)),
            4, blob.bytes);
  connection_.run("DELETE FROM unused WHERE key = ?", blob.key);
  connection_.run("DELETE FROM holds WHERE holder = ?", blob.key);
  hold(blob.key, blob.holds);
}

void SqliteTables::hold(const std::string& holder, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) connection_.run("INSERT OR IGNORE INTO holds VALUES(?, ?)", holder, key);
}

Result<std::optional<std::string>> SqliteTables::blob(const std::string& key, bool damaged_names) {
  std::optional<std::string> bytes;
  std::int64_t crc = 0;
  connection_.each(
      "SELECT bytes, crc FROM blobs WHERE key = ?",
      [&](const SqliteRow& found) {
        bytes = found.text(0);
        crc = found.integer(1);
      },
      key);
  if (!bytes && damaged_names) {
    return store::damaged_in_database(fmt::format("'{}' is missing, and a stored name", key));
  }
  if (bytes && crc != store::checksum_of_blob(key, *bytes))
    return store::damaged_in_database(fmt::format("the stored '{}'", key));
  return bytes;
}

std::vector<std::string> SqliteTables::blob_keys(const std::string& prefix) {
  std::vector<std::string> keys;
  connection_.each(
      "SELECT key, key_crc FROM blobs WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
      [&](const SqliteRow& found) {
        if (is_right_name(found)) keys.push_back(found.text(0));
      },
      prefix);
  return keys;
}

bool SqliteTables::sweep(const store::Sweep& sweep) {
  constexpr std::int64_t at_once = 100;  // other writers need their turn
  const std::vector<std::string> unused = unused_blobs(sweep, at_once);
  for (const std::string& key : unused) store::remove_blob(connection_, key);
  const bool more_pages = return_free_pages();
  return static_cast<std::int64_t>(unused.size()) == at_once || more_pages;
}

std::vector<std::string> SqliteTables::unused_blobs(const store::Sweep& sweep, std::int64_t limit) {
  connection_.run(
      "DELETE FROM unused WHERE EXISTS (SELECT 1 FROM holds WHERE holds.key = unused.key) "
      "OR NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.key = unused.key)");
  for (const std::string& prefix : sweep.prefixes) {
    connection_.run(
        "INSERT OR IGNORE INTO unused SELECT key, ?2 FROM blobs WHERE key BETWEEN ?1 AND ?1 || char(1114111) "
        "AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.key = blobs.key)",
        prefix, sweep.now_s);
  }
  std::vector<std::string> keys;
  connection_.each(
      "SELECT key FROM unused WHERE since_s <= ? LIMIT ?",
      [&](const SqliteRow& found) { keys.push_back(found.text(0)); }, sweep.now_s - sweep.grace_s, limit);
  return keys;
}

bool SqliteTables::return_free_pages() {
  constexpr int free_pages = 256;
  const int pages = pragma("PRAGMA page_count"), free = pragma("PRAGMA freelist_count");
  // A quarter may stay free for later use. Files of versions before 4 keep their free pages.
  const bool wasteful = free > free_pages && free > pages / 4 && pragma("PRAGMA auto_vacuum") != 0;
  if (wasteful) connection_.each("PRAGMA incremental_vacuum(256)", [](const SqliteRow&) {});
  return wasteful;
}

int SqliteTables::pragma(const char* sql) {
  std::int64_t value = 0;
  connection_.each(sql, [&](const SqliteRow& found) { value = found.integer(0); });
  return static_cast<int>(value);
}

// History.

void SqliteTables::write_history(const std::vector<store::HistoryRow>& rows) {
  for (const store::HistoryRow& row : rows) {
    bool is_there = row.job == store::kAllJobs;
    connection_.each(
        "SELECT 1 FROM jobs WHERE job = ?", [&](const SqliteRow&) { is_there = true; }, row.job);
    if (!is_there) continue;
    const store::HistoryFigures& of = row.figures;
    connection_.run("INSERT OR REPLACE INTO history VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.job,
                    row.step_s, row.start_s, row.source, of.iterations, of.time_s, of.least_s, of.most_s,
                    of.energy_iterations, of.energy_j, of.planned_iterations, of.planned_s, of.planned_j,
                    of.straggler_iterations, of.first_version, of.last_version, store::checksum_of(row));
  }
}

void SqliteTables::write_site_history(const std::vector<store::SiteRow>& rows) {
  for (const store::SiteRow& row : rows) {
    const std::string figures = store::format_site_figures(row.figures);
    connection_.run("INSERT OR REPLACE INTO site_history VALUES(?, ?, ?, ?, ?, ?)", row.domain, row.step_s, row.start_s,
                    row.source, figures, store::checksum_of(row, figures));
  }
}

}  // namespace perseus::sqlite
