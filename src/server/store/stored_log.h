// A job's log as databases store it: rows of single events and of packed ones, checked while they are put together.
//
// Problem: SQLite and PostgreSQL store the same rows, so the rules for what is whole, what an append adds and what is
//          packed next are here once, without SQL.
// Input:   rows in ascending order, each with its stored checksum.
// Output:  events without a gap; the rows that an append or a pack adds, and the job's changed index row.
// Errors:  `internal`, naming the job and the first event that is missing or damaged.
// Cost:    a checksum per row.
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/store.h"

namespace perseus::store {

/// Columns of a job's index row, in the order of job_index_row().
inline constexpr const char* kJobColumns =
    "job, state, name, created_s, updated_s, next_wake_s, last_sequence, summary, bytes, packed, crc";
/// Columns of a token, in the order of token_row(); the checksum follows them.
inline constexpr const char* kTokenColumns = "hash, role, job, name, created_s, expires_s, team, crc";

/// For a database row that begins with kJobColumns; `Row` has text, integer, number and is_null of a column.
template <class Row>
JobIndexRow unchecked_job_row(const Row& row) {
  JobIndexRow index;
  index.job = row.text(0);
  index.state = row.text(1);
  index.name = row.text(2);
  index.created_s = row.number(3);
  index.updated_s = row.number(4);
  if (!row.is_null(5)) index.next_wake_s = row.number(5);
  index.last_sequence = row.integer(6);
  index.summary = row.text(7);
  index.bytes = row.integer(8);
  index.packed = row.integer(9);
  return index;
}

/// Sets `damaged` where the row differs from its checksum.
JobIndexRow checked_job_row(JobIndexRow row, std::int64_t crc);

template <class Row>
JobIndexRow job_index_row(const Row& row) {
  return checked_job_row(unchecked_job_row(row), row.integer(10));
}

/// For a database row that begins with kTokenColumns.
template <class Row>
TokenRow token_row(const Row& row) {
  return {row.text(0), row.text(1), row.text(2), row.text(3), row.number(4), row.number(5), row.text(6)};
}

/// The holder of a job's blobs in the table of held blobs.
std::string holder_of_job(std::string_view job);

Error damaged_in_database(std::string_view what);

/// Puts the events after a sequence together.
class LogReader {
 public:
  LogReader(std::string job, std::int64_t after);

  /// All packs that end after the sequence, then every event from next() on. An error: the row is damaged.
  Status add_pack(std::int64_t first, std::int64_t last, std::string_view bytes, std::int64_t crc);
  Status add_event(StoredEvent event, std::int64_t crc);
  [[nodiscard]] std::int64_t next() const { return next_; }

  /// Of an index row that job_index_row() marked as damaged, or of events without an index row.
  [[nodiscard]] Error damaged_index() const;
  /// The events, if they end where the index says; `row`: none if the job does not exist.
  Result<std::vector<StoredEvent>> finish(const std::optional<JobIndexRow>& row);

 private:
  [[nodiscard]] Error damaged(std::string_view what) const;

  std::string job_;
  std::int64_t after_;
  std::int64_t next_;
  std::vector<StoredEvent> events_;
};

/// An event's row.
struct EventRow {
  std::int64_t sequence = 0;
  const std::string* body = nullptr;  ///< the append's
  std::int64_t crc = 0;
};

/// Applies an append to the job's present index row (a new job's has sequence 0): the rows of its events; nothing on a
/// conflict. The next sequence of a damaged job is unknown, so it conflicts; a client that reads it gets the error.
std::optional<std::vector<EventRow>> accept_append(const Append& append, JobIndexRow& present);
/// The index row after an append: the append's, with what the store counts.
JobIndexRow index_after(const Append& append, const JobIndexRow& present);

/// Collects the next events of a log, to pack them into one row.
class LogPacker {
 public:
  /// The job's present index row.
  explicit LogPacker(JobIndexRow row);

  /// False: everything is packed, or the row is damaged.
  [[nodiscard]] bool has_work() const;
  /// Sequence of the first event to add.
  [[nodiscard]] std::int64_t first() const { return row_.packed + 1; }
  /// True while the pack has room for another event.
  [[nodiscard]] bool has_room() const;
  /// False: the event is damaged or not the next one, and nothing may be packed.
  bool add(std::int64_t sequence, std::string body, std::int64_t crc);

  struct Pack {
    std::int64_t first = 0, last = 0;
    std::string bytes;
    std::int64_t crc = 0;
    JobIndexRow index;  ///< the job's index row afterwards
    bool more = false;  ///< events remain to be packed
  };
  /// None without events.
  std::optional<Pack> finish();

 private:
  JobIndexRow row_;
  std::vector<std::string> bodies_;
  std::size_t size_ = 0;
};

/// Most bytes of bodies that are packed together: reading one of them unpacks all.
constexpr std::size_t kMostPackedBytes = std::size_t{256} << 10;

std::string pack_events(std::span<const std::string> bodies);
std::optional<std::vector<std::string>> unpack_events(std::string_view packed);

}  // namespace perseus::store
