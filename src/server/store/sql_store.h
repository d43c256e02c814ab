// What both databases do alike with their tables, in SQL that both understand.
//
// Input:   of a connection, within the caller's transaction where it matters: run(sql, values...),
//          each(sql, visit, values...) with a row that has text, integer, number and is_null of a column, and
//          each_bytes(), the same for columns that are texts and bytes. Parameters are $1, $2 ..., which first appear
//          in this order.
// Output:  as in store.h.
// Errors:  as in store.h for damaged rows; failures of the connection pass through.
// Cost:    a statement per call; age_history(): some per job.
// Threads: those of the connection; SqlStore as in store.h.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/checksum.h"
#include "server/store/group_commit.h"
#include "server/store/history_row.h"
#include "server/store/site_row.h"
#include "server/store/store.h"
#include "server/store/stored_log.h"

namespace perseus::store {

/// The bytes of a value; they must outlive its use.
struct Bytes {
  const std::string& bytes;
};

// ---- Logs

template <class Connection>
std::optional<JobIndexRow> index_row_of(Connection& connection, const std::string& job) {
  static const std::string sql = fmt::format("SELECT {} FROM jobs WHERE job = $1", kJobColumns);
  std::optional<JobIndexRow> row;
  connection.each(
      sql.c_str(), [&](const auto& found) { row = job_index_row(found); }, job);
  return row;
}

/// Every event after that one, or the first damaged item as an error.
template <class Connection>
Result<std::vector<StoredEvent>> read_log(Connection& connection, const std::string& job, std::int64_t after) {
  LogReader log(job, after);
  const auto row = index_row_of(connection, job);
  if (row && row->damaged) return log.damaged_index();
  Status whole = Ok{};
  connection.each_bytes(
      "SELECT CAST(first AS TEXT), CAST(last AS TEXT), bytes, CAST(crc AS TEXT) FROM packs "
      "WHERE job = $1 AND last > $2 ORDER BY packs.last",
      [&](const auto& found) {
        if (whole) whole = log.add_pack(found.integer(0), found.integer(1), found.text(2), found.integer(3));
      },
      job, after);
  const auto add_event = [&](const auto& found) {
    if (whole) whole = log.add_event({found.integer(0), found.text(1)}, found.integer(2));
  };
  connection.each("SELECT sequence, body, crc FROM events WHERE job = $1 AND sequence >= $2 ORDER BY sequence",
                  add_event, job, log.next());
  if (!whole) return whole.error();
  bool has_rows = row.has_value();
  if (!has_rows) {
    connection.each(
        "SELECT sequence FROM events WHERE job = $1 UNION ALL SELECT last FROM packs WHERE job = $1 LIMIT 1",
        [&](const auto&) { has_rows = true; }, job);
    if (has_rows) return log.damaged_index();
  }
  return log.finish(row);
}

template <class Connection>
bool pack_job(Connection& connection, const std::string& job) {
  constexpr std::int64_t at_once = 4096;
  const auto row = index_row_of(connection, job);
  if (!row) return false;
  LogPacker packer(*row);
  if (!packer.has_work()) return false;
  bool right = true;
  const auto add_event = [&](const auto& found) {
    if (right && packer.has_room()) right = packer.add(found.integer(0), found.text(1), found.integer(2));
  };
  connection.each("SELECT sequence, body, crc FROM events WHERE job = $1 AND sequence >= $2 ORDER BY sequence LIMIT $3",
                  add_event, job, packer.first(), at_once);
  const auto pack = right ? packer.finish() : std::nullopt;
  if (!pack) return false;
  connection.run("INSERT INTO packs(job, last, first, crc, bytes) VALUES($1, $2, $3, $4, $5)", job, pack->last,
                 pack->first, pack->crc, Bytes{pack->bytes});
  connection.run("DELETE FROM events WHERE job = $1 AND sequence <= $2", job, pack->last);
  connection.run("UPDATE jobs SET bytes = $1, packed = $2, crc = $3 WHERE job = $4", pack->index.bytes,
                 pack->index.packed, checksum_of(pack->index), job);
  return pack->more;
}

// ---- Blobs

template <class Connection>
Result<std::optional<std::string>> read_blob(Connection& connection, const std::string& key) {
  std::optional<std::string> bytes;
  std::int64_t crc = 0;
  connection.each_bytes(
      "SELECT bytes, CAST(crc AS TEXT) FROM blobs WHERE key = $1",
      [&](const auto& found) {
        bytes = found.text(0);
        crc = found.integer(1);
      },
      key);
  if (bytes && crc != checksum_of_blob(key, *bytes)) return damaged_in_database(fmt::format("the stored '{}'", key));
  return bytes;
}

template <class Connection>
void remove_blob(Connection& connection, const std::string& key) {
  for (const char* const sql : {"DELETE FROM blobs WHERE key = $1", "DELETE FROM unused WHERE key = $1",
                                "DELETE FROM holds WHERE holder = $1"}) {
    connection.run(sql, key);
  }
}

/// Removes some blobs that have been unused for long enough; true: there may be more.
template <class Connection>
bool remove_unused(Connection& connection, const Sweep& sweep) {
  constexpr std::int64_t at_once = 20;  // other writers need their turn: three round trips each
  connection.run(
      "DELETE FROM unused WHERE EXISTS (SELECT 1 FROM holds WHERE holds.key = unused.key) "
      "OR NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.key = unused.key)");
  for (const std::string& prefix : sweep.prefixes) {
    connection.run(
        "INSERT INTO unused(key, since_s) SELECT key, $1 FROM blobs WHERE key >= $2 AND "
        "substr(key, 1, length($2)) = $2 AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.key = blobs.key) "
        "ON CONFLICT DO NOTHING",
        sweep.now_s, prefix);
  }
  std::vector<std::string> keys;
  connection.each(
      "SELECT key FROM unused WHERE since_s <= $1 LIMIT $2", [&](const auto& found) { keys.push_back(found.text(0)); },
      sweep.now_s - sweep.grace_s, at_once);
  for (const std::string& key : keys) remove_blob(connection, key);
  return static_cast<std::int64_t>(keys.size()) == at_once;
}

// ---- History

template <class Connection>
void read_history_of(Connection& connection, const std::string& job, std::int64_t step_s, std::int64_t from_s,
                     std::int64_t to_s, std::vector<HistoryRow>& into) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM history WHERE job = $1 AND step_s = $2 AND start_s >= $3 AND start_s < $4 "
      "ORDER BY start_s, source",
      kHistoryColumns);
  connection.each(
      sql.c_str(),
      [&](const auto& found) {
        if (auto row = history_row(found)) into.push_back(*std::move(row));
      },
      job, step_s, from_s, to_s);
}

template <class Connection>
std::vector<SiteRow> read_site_history(Connection& connection, std::int64_t from_s, std::int64_t to_s) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM site_history WHERE step_s IN (60, 3600) AND start_s >= $1 AND start_s < $2 "
      "ORDER BY step_s, start_s, domain, source",
      kSiteColumns);
  std::vector<SiteRow> rows;
  connection.each(
      sql.c_str(),
      [&](const auto& found) {
        if (auto row = site_row(found)) rows.push_back(*std::move(row));
      },
      from_s, to_s);
  return rows;
}

/// Of one hour; true: there may be more.
template <class Connection>
bool age_site_history(Connection& connection, const AgeHistory& age) {
  connection.run("DELETE FROM site_history WHERE start_s < $1 AND step_s = 3600", age.hours_before_s);
  std::optional<std::int64_t> hour_s;
  connection.each(
      "SELECT start_s - start_s % 3600 FROM site_history WHERE start_s < $1 AND step_s = 60 ORDER BY start_s LIMIT 1",
      [&](const auto& found) { hour_s = found.integer(0); }, age.minutes_before_s);
  if (!hour_s) return false;
  const std::vector<SiteRow> rows = read_site_history(connection, *hour_s, *hour_s + kHour_s);
  connection.run("DELETE FROM site_history WHERE step_s IN (60, 3600) AND start_s >= $1 AND start_s < $2", *hour_s,
                 *hour_s + kHour_s);
  if (*hour_s >= age.hours_before_s) connection.write_site_history(hours_of<&SiteRow::domain>(rows));
  return true;
}

/// The connection also writes rows: write_history(), write_site_history().
template <class Connection>
bool age_history(Connection& connection, const AgeHistory& age) {
  constexpr std::int64_t at_once = 20;  // jobs; other writers need their turn
  std::vector<std::string> jobs;
  connection.each(
      "SELECT job FROM (SELECT '' AS job UNION ALL SELECT job FROM jobs) AS jobs WHERE "
      "EXISTS (SELECT 1 FROM history h WHERE h.job = jobs.job AND step_s = 60 AND start_s < $1) OR "
      "EXISTS (SELECT 1 FROM history h WHERE h.job = jobs.job AND step_s = 3600 AND start_s < $2) LIMIT $3",
      [&](const auto& found) { jobs.push_back(found.text(0)); }, age.minutes_before_s, age.hours_before_s, at_once);
  for (const std::string& job : jobs) {
    std::vector<HistoryRow> minutes;
    read_history_of(connection, job, kMinute_s, 0, age.minutes_before_s, minutes);
    std::vector<HistoryRow> hours = hours_of<&HistoryRow::job>(minutes);
    for (HistoryRow& hour : hours) {
      std::vector<HistoryRow> before;
      read_history_of(connection, job, kHour_s, hour.start_s, hour.start_s + 1, before);
      for (const HistoryRow& row : before) hour.figures.add(row.figures);
    }
    connection.write_history(hours);
    connection.run("DELETE FROM history WHERE job = $1 AND step_s = 60 AND start_s < $2", job, age.minutes_before_s);
    connection.run("DELETE FROM history WHERE job = $1 AND step_s = 3600 AND start_s < $2", job, age.hours_before_s);
  }
  const bool more = age_site_history(connection, age);
  return more || static_cast<std::int64_t>(jobs.size()) == at_once;
}

/// The calls that both databases answer alike. `Self` has `group_`; writing(): what a write uses within its
/// transaction, which also has put_blob(), sweep(), write_history() and write_site_history(); and reading<T>(work),
/// which gives the work the connection of reads.
template <class Self, class Connection>
class SqlStore : public Store {
 public:
  Result<std::vector<JobIndexRow>> jobs() override {
    return rows_of<JobIndexRow>([](Connection& connection, std::vector<JobIndexRow>& rows) {
      static const std::string sql = fmt::format("SELECT {} FROM jobs ORDER BY job", kJobColumns);
      connection.each(sql.c_str(), [&](const auto& found) { rows.push_back(job_index_row(found)); });
    });
  }
  void remove_job(std::string job, Done<Ok> done) override {
    write(std::move(done), [job = std::move(job)](auto& tables) {
      for (const char* const sql : {"DELETE FROM jobs WHERE job = $1", "DELETE FROM events WHERE job = $1",
                                    "DELETE FROM packs WHERE job = $1", "DELETE FROM history WHERE job = $1"}) {
        tables.run(sql, job);
      }
      tables.run("DELETE FROM holds WHERE holder = $1", holder_of_job(job));
    });
  }
  void pack_job(std::string job, Done<bool> done) override {
    write_part(std::move(done), [job = std::move(job)](auto& tables) { return store::pack_job(tables, job); });
  }
  void write_history(std::vector<HistoryRow> rows, Done<Ok> done) override {
    write(std::move(done), [rows = std::move(rows)](auto& tables) { tables.write_history(rows); });
  }
  Result<std::vector<HistoryRow>> history(std::string_view job, std::int64_t from_s, std::int64_t to_s) override {
    return rows_of<HistoryRow>([=, id = std::string(job)](Connection& connection, std::vector<HistoryRow>& rows) {
      for (const std::int64_t step_s : {kMinute_s, kHour_s}) {
        read_history_of(connection, id, step_s, from_s, to_s, rows);
      }
    });
  }
  void age_history(AgeHistory age, Done<bool> done) override {
    write_part(std::move(done), [age](auto& tables) { return store::age_history(tables, age); });
  }
  Result<std::vector<HistoryBytes>> history_bytes() override {
    return rows_of<HistoryBytes>([](Connection& connection, std::vector<HistoryBytes>& bytes) {
      connection.each(
          "SELECT job, "
          "(SELECT max(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 60) - "
          "(SELECT min(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 60), "
          "(SELECT max(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 3600) - "
          "(SELECT min(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 3600) FROM jobs ORDER BY job",
          [&](const auto& found) {
            std::int64_t rows = 0;
            if (!found.is_null(1)) rows += found.integer(1) / kMinute_s + 1;
            if (!found.is_null(2)) rows += found.integer(2) / kHour_s + 1;
            if (rows > 0) bytes.push_back({found.text(0), rows * kHistoryRowBytes});
          });
    });
  }
  void write_site_history(std::vector<SiteRow> rows, Done<Ok> done) override {
    write(std::move(done), [rows = std::move(rows)](auto& tables) { tables.write_site_history(rows); });
  }
  Result<std::vector<SiteRow>> site_history(std::int64_t from_s, std::int64_t to_s) override {
    return self().template reading<std::vector<SiteRow>>(
        [=](Connection& connection) { return read_site_history(connection, from_s, to_s); });
  }

  void put_blob(Blob blob, Done<Ok> done) override {
    write(std::move(done), [blob = std::move(blob)](auto& tables) { tables.put_blob(blob); });
  }
  void remove_blob(std::string key, Done<Ok> done) override {
    write(std::move(done), [key = std::move(key)](auto& tables) { store::remove_blob(tables, key); });
  }
  Result<std::vector<HeldBlob>> held_blobs() override {
    return rows_of<HeldBlob>([](Connection& connection, std::vector<HeldBlob>& held) {
      connection.each(
          "SELECT substr(holder, 5), key, length(bytes) FROM holds JOIN blobs USING (key) "
          "WHERE holder > 'job/' AND holder < 'job0' ORDER BY holder, key",
          [&](const auto& found) {
            held.push_back({found.text(0), found.text(1), found.integer(2)});
          });
    });
  }
  void sweep(Sweep sweep, Done<bool> done) override {
    write_part(std::move(done), [sweep = std::move(sweep)](auto& tables) { return tables.sweep(sweep); });
  }

  void put_token(TokenRow token, Done<Ok> done) override {
    write(std::move(done), [token = std::move(token)](auto& tables) {
      static const std::string sql = fmt::format(
          "INSERT INTO tokens({}) VALUES($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (hash) DO UPDATE SET "
          "role = excluded.role, job = excluded.job, name = excluded.name, created_s = excluded.created_s, "
          "expires_s = excluded.expires_s, team = excluded.team, crc = excluded.crc",
          kTokenColumns);
      tables.run(sql.c_str(), token.hash, token.role, token.job, token.name, token.created_s, token.expires_s,
                 token.team, checksum_of(token));
    });
  }
  void revoke_token(std::string hash, Done<Ok> done) override {
    write(std::move(done),
          [hash = std::move(hash)](auto& tables) { tables.run("DELETE FROM tokens WHERE hash = $1", hash); });
  }
  Result<std::vector<TokenRow>> tokens() override {
    return self().template reading<std::vector<TokenRow>>([](Connection& connection) -> Result<std::vector<TokenRow>> {
      static const std::string sql = fmt::format("SELECT {} FROM tokens ORDER BY hash", kTokenColumns);
      std::vector<TokenRow> rows;
      bool right = true;
      connection.each(sql.c_str(), [&](const auto& found) {
        rows.push_back(token_row(found));
        right = right && found.integer(7) == checksum_of(rows.back());
      });
      if (!right) return damaged_in_database("a token");
      return rows;
    });
  }

  [[nodiscard]] CommitCounts commits() const override { return static_cast<const Self*>(this)->group_.counts(); }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  template <class Work>
  void write(Done<Ok> done, Work work) {
    self().group_.add_work(std::move(done), [this, work = std::move(work)] {
      auto&& tables = self().writing();
      work(tables);
    });
  }
  /// The work returns whether there is more to do.
  template <class Work>
  void write_part(Done<bool> done, Work work) {
    const auto run = [this, work = std::move(work)] {
      auto&& tables = self().writing();
      return work(tables);
    };
    self().group_.template add<bool>(run, std::move(done));
  }
  template <class Row, class Work>
  Result<std::vector<Row>> rows_of(Work work) {
    return self().template reading<std::vector<Row>>([&](Connection& connection) {
      std::vector<Row> rows;
      work(connection, rows);
      return rows;
    });
  }
};

}  // namespace perseus::store
