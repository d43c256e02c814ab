// The server's durable storage: per job an append-only log of events, plus blobs and tokens.
//
// A row is stored with a checksum and returned only if it is unchanged; otherwise the call fails with `internal`, the
// message names the damaged item, and everything else continues to work.
//
// Problem: an answer may be sent only after its content is durable, and one commit per request would cost a disk flush
//          each. So every write is asynchronous: writes that wait during a
//          commit go to disk together, in the order of the calls, in one transaction (group commit); `done` comes
//          after it.
// Input:   bodies are one JSON text each, UTF-8, not parsed; keys and names are UTF-8 without NUL; times are seconds
//          since 1970.
// Output:  events in the order of their sequence, 1, 2, 3 ... per job without a gap; jobs, tokens and keys sorted.
// Errors:  `unavailable` (disk full, database unreachable): the same call may succeed later, and the store recovers
//          by itself. A failed write is stored as a whole or not at all. Almost always not at all; if the connection
//          broke during the commit the outcome is unknown, so discard the job's state and read it again. A write that
//          the database rejects (invalid_input) does not affect other writes.
// Cost:    a write: some microseconds and its share of a disk flush; a read: a lookup. jobs() is one scan of the
//          index, so that a server is ready without folding every log.
// Threads: any. `done` runs where Post runs it, each write's once, in order. Reads
//          block as long as the database does, so the server's io thread must not call them: it uses
//          server/work/store_access.h. The destructor commits all waiting writes, and posts their `done`s.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/store/history_row.h"
#include "server/store/site_row.h"

namespace perseus::store {

/// Statistics of a store's commits since it was opened.
struct CommitCounts {
  static constexpr std::array<double, 9> kUpTo_s{0.0005, 0.002, 0.005, 0.02, 0.1, 0.5, 2, 10, 60};
  /// Commits that took at most kUpTo_s[i] and more than the previous bound; the last entry: longer.
  std::array<std::int64_t, kUpTo_s.size() + 1> took{};
  double seconds = 0;  ///< total of the successful commits
  std::int64_t failed = 0;

  void succeeded_in(double took_s) {
    ++took[static_cast<std::size_t>(std::ranges::lower_bound(kUpTo_s, took_s) - kUpTo_s.begin())];
    seconds += took_s;
  }
};

/// Runs a piece of work soon, on the server's io thread; must be callable from any thread (asio::post is).
using Post = std::function<void(std::function<void()>)>;

struct StoredEvent {
  std::int64_t sequence = 0;
  std::string body;
  bool operator==(const StoredEvent&) const = default;
};

/// Data on a job that the server needs before it folds its log.
struct JobIndexRow {
  std::string job;
  std::string state;
  std::string name;
  double created_s = 0;
  double updated_s = 0;
  std::optional<double> next_wake_s = {};  ///< time of the job's next event
  std::int64_t last_sequence = 0;          ///< set by the store; ignored in an Append
  std::string summary = {};                ///< its entry in lists: one JSON text, not parsed; may be empty
  // Set by the store; ignored in an Append.
  std::int64_t bytes = 0;   ///< of its log, as stored
  std::int64_t packed = 0;  ///< the events up to this one are packed, see pack_job()
  bool damaged = false;     ///< the row is not what was written: only `job` may be right
  bool operator==(const JobIndexRow&) const = default;
};

/// Large bytes under a name: frontiers and profiles, by name or by the hash of their content. The last put wins.
struct Blob {
  std::string key;
  std::string bytes;
  std::vector<std::string> holds = {};  ///< keys of blobs that sweep() keeps while this one exists
};

/// A blob that a job holds.
struct HeldBlob {
  std::string job;
  std::string key;
  std::int64_t bytes = 0;
  bool operator==(const HeldBlob&) const = default;
};

/// Events, the job's new index row, and the blobs that the events refer to: stored together or not at all.
struct Append {
  std::string job;
  std::int64_t expected_sequence = 0;  ///< the last one the writer knew; 0 creates the job
  std::vector<std::string> bodies;
  JobIndexRow index;
  std::vector<Blob> blobs;
  std::vector<std::string> holds = {};  ///< keys of blobs that sweep() keeps while the job exists
};

/// Removes blobs that neither a job nor another blob holds.
struct Sweep {
  std::vector<std::string> prefixes;  ///< of the keys that may be removed
  double now_s = 0;
  double grace_s = 0;  ///< only blobs unused, and not put again, for this long
};

/// conflict: the log does not end at the expected sequence (or the job was removed), and nothing was written.
enum class Appended { committed, conflict };

/// A bearer token by its hash; the server defines the roles.
struct TokenRow {
  std::string hash;
  std::string role;
  std::string job;  ///< the only job that it may access, or ""
  std::string name;
  double created_s = 0;
  double expires_s = 0;  ///< 0: never
  std::string team;      ///< team that shares learned profiles; "": none
  bool operator==(const TokenRow&) const = default;
};

/// Which server may write.
struct Writer {
  bool is_us = false;
  std::string address;  ///< of the one that may
};
/// The right to write lasts this long without being renewed.
inline constexpr double kRight_s = 3;

class Store {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // The right to write, of one server at a time; other servers' writes fail with `unavailable`. On SQLite, of the one
  // that has the file open.
  /// Takes the right, or renews it; `address` is what other servers get meanwhile. Blocks as a read does.
  virtual Result<Writer> become_writer(const std::string& address) { return Writer{true, address}; }
  /// Gives the right to the next that asks.
  virtual void resign() {}

  // Jobs.
  virtual void append(Append append, Done<Appended> done) = 0;
  /// The job's events after that sequence (0: all); none for a job that does not exist.
  virtual Result<std::vector<StoredEvent>> read(std::string_view job, std::int64_t after) = 0;
  virtual Result<std::vector<JobIndexRow>> jobs() = 0;
  /// Removes its log, its history and its index row; blobs stay until a sweep(), since others may use them.
  virtual void remove_job(std::string job, Done<Ok> done) = 0;
  /// Stores some of the job's events in less space; the result of read() does not change. True: call again, there are
  /// more. A damaged log stays as it is.
  virtual void pack_job(std::string job, Done<bool> done) = 0;

  // History of jobs' iterations; it goes with the job.
  /// Minutes of one source; a row that exists already is replaced, so a write may be repeated. Rows of jobs that do not
  /// exist are left out; those of kAllJobs are not.
  virtual void write_history(std::vector<HistoryRow> rows, Done<Ok> done) = 0;
  /// The job's minutes and hours that begin within [from_s, to_s), by step, start and source. An iteration is in a
  /// minute or in an hour, never in both. Damaged rows are left out.
  virtual Result<std::vector<HistoryRow>> history(std::string_view job, std::int64_t from_s, std::int64_t to_s) = 0;
  /// Adds old minutes to their hours, for some jobs and domains in one transaction. True: call again, there are more.
  virtual void age_history(AgeHistory age, Done<bool> done) = 0;
  /// Of each job with history, by job: an upper limit, as if each job had rows without a gap. Without kAllJobs.
  virtual Result<std::vector<HistoryBytes>> history_bytes() = 0;

  // History of the site's domains, aged by age_history().
  /// Minutes of one source; a row that exists already is replaced, so a write may be repeated.
  virtual void write_site_history(std::vector<SiteRow> rows, Done<Ok> done) = 0;
  /// Minutes and hours of all domains that begin within [from_s, to_s), by step, start, domain and source. Damaged rows
  /// are left out.
  virtual Result<std::vector<SiteRow>> site_history(std::int64_t from_s, std::int64_t to_s) = 0;

  // Blobs.
  virtual void put_blob(Blob blob, Done<Ok> done) = 0;
  virtual Result<std::optional<std::string>> blob(std::string_view key) = 0;
  virtual Result<std::vector<std::string>> blob_keys(std::string_view prefix) = 0;
  virtual void remove_blob(std::string key, Done<Ok> done) = 0;
  /// Of all jobs, sorted by job and key.
  virtual Result<std::vector<HeldBlob>> held_blobs() = 0;
  /// Also returns space to the file system, a little at a time. True: call again, there is more to do.
  virtual void sweep(Sweep sweep, Done<bool> done) = 0;

  // Tokens, by hash.
  virtual void put_token(TokenRow token, Done<Ok> done) = 0;
  virtual void revoke_token(std::string hash, Done<Ok> done) = 0;
  virtual Result<std::vector<TokenRow>> tokens() = 0;

  /// Why writes are not possible, if the store was opened on a full or read-only file system; "": writes are
  /// possible. Until there is space, writes fail with `unavailable`; each one checks again.
  [[nodiscard]] virtual std::string read_only() const { return ""; }

  /// For metrics. Never blocks.
  [[nodiscard]] virtual CommitCounts commits() const { return {}; }
  /// Size of the database on disk.
  virtual Result<std::int64_t> size_bytes() = 0;

  /// A consistent copy of everything in a new file, while the server works; it appears complete or not at all.
  virtual Status backup(const std::string& path) = 0;
};

}  // namespace perseus::store
