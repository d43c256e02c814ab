// Where the server keeps what it acknowledged: per job an append-only log of events, and beside it blobs, claims,
// tokens.
//
// Problem: an answer may be sent only after what it says is durable, several servers may share one database, and one
//          commit per request would cost a disk flush each. So every write is asynchronous: writes that are waiting
//          while another commits go to disk together, in the order of the calls, in one transaction (group commit);
//          `done` comes after it.
// Input:   bodies are one JSON text each, UTF-8, not looked into; keys and names are UTF-8 without NUL; times are
//          seconds since 1970.
// Output:  events in the order of their sequence, 1, 2, 3 ... per job without a gap; jobs, tokens and keys sorted.
// Errors:  `unavailable` (disk full, database gone): the same call may succeed later, the store recovers by itself,
//          and a failed write is there as a whole or not at all. Almost always not at all; where the connection broke
//          during the commit nobody can say, so drop what you knew of the job and read it again. Other writes are not
//          affected by one that the database does not take (invalid_input).
// Cost:    a write some microseconds and its share of a disk flush; a read a look-up. jobs() is one scan of the
//          index, so that a server is ready without folding every log. Damage: a row is kept with a checksum and read
//          only if it is what was written; otherwise `internal`, and the message says what is damaged. Everything
//          else goes on.
// Threads: any. `done` and the foreign-change callbacks run where Post puts them, each write's once, in order. Reads
//          block as long as the database does, so the server's io thread must not call them: it has
//          server/service/store_access.h. The destructor commits everything that is waiting, and posts its `done`s.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/store/commit_counts.h"

namespace perseus::store {

/// Runs a piece of work soon, on the server's io thread; must be callable from any thread (asio::post is).
using Post = std::function<void(std::function<void()>)>;

struct StoredEvent {
  std::int64_t sequence = 0;
  std::string body;
  bool operator==(const StoredEvent&) const = default;
};

/// What the server needs to know of a job before it folds its log.
struct JobIndexRow {
  std::string job;
  std::string state;
  std::string name;
  double created_s = 0;
  double updated_s = 0;
  std::optional<double> next_wake_s;  ///< when time makes the next event due
  std::int64_t last_sequence = 0;     ///< set by the store; ignored in an Append
  std::string summary;                ///< what lists say of it: one JSON text, not looked into; may be empty
  // Set by the store; ignored in an Append.
  std::int64_t bytes = 0;   ///< of its log, as it is stored
  std::int64_t packed = 0;  ///< the events up to this one are packed, see pack_job()
  bool damaged = false;     ///< the row is not what was written: only `job` may be right
  bool operator==(const JobIndexRow&) const = default;
};

/// Large bytes under a name: frontiers and profiles, named or by the hash of their content. The last put wins.
struct Blob {
  std::string key;
  std::string bytes;
  std::vector<std::string> holds = {};  ///< keys of blobs that sweep() leaves while this one is there
};

/// A blob that a job holds.
struct HeldBlob {
  std::string job;
  std::string key;
  std::int64_t bytes = 0;
  bool operator==(const HeldBlob&) const = default;
};

/// Events, the job's new index row, and the blobs that the events speak of: all of it or nothing.
struct Append {
  std::string job;
  std::int64_t expected_sequence = 0;  ///< the last one the writer knew; 0 creates the job
  std::vector<std::string> bodies;
  JobIndexRow index;
  std::vector<Blob> blobs;
  std::vector<std::string> holds = {};  ///< keys of blobs that sweep() leaves while the job is there
};

/// Removes blobs that nothing holds: no job, no other blob.
struct Sweep {
  std::vector<std::string> prefixes;  ///< of the keys that may be removed
  double now_s = 0;
  double grace_s = 0;  ///< only what nothing has held, and nobody has put, since so long
};

/// conflict: another writer was first (or the job is gone), nothing was written; read the tail, fold, decide again.
enum class Appended { committed, conflict };

/// A bearer token by its hash; what roles mean is the server's business.
struct TokenRow {
  std::string hash;
  std::string role;
  std::string job;  ///< the only job it reaches, or ""
  std::string name;
  double created_s = 0;
  double expires_s = 0;  ///< 0: never
  std::string team;      ///< who shares what was learned in its jobs; "": nobody else
  bool operator==(const TokenRow&) const = default;
};

class Store {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Jobs.
  virtual void append(Append append, Done<Appended> done) = 0;
  /// The job's events after that sequence (0: all); none for a job that does not exist.
  virtual Result<std::vector<StoredEvent>> read(std::string_view job, std::int64_t after) = 0;
  virtual Result<std::vector<JobIndexRow>> jobs() = 0;
  /// Its log and its index row; blobs stay until a sweep(), others may use them.
  virtual void remove_job(std::string job, Done<Ok> done) = 0;
  /// Stores some of the job's events in less space; what read() says stays the same. True: call again, there are more.
  /// A damaged log is left as it is.
  virtual void pack_job(std::string job, Done<bool> done) = 0;

  // Blobs.
  virtual void put_blob(Blob blob, Done<Ok> done) = 0;
  virtual Result<std::optional<std::string>> blob(std::string_view key) = 0;
  virtual Result<std::vector<std::string>> blob_keys(std::string_view prefix) = 0;
  virtual void remove_blob(std::string key, Done<Ok> done) = 0;
  /// Of all jobs, sorted by job and key.
  virtual Result<std::vector<HeldBlob>> held_blobs() = 0;
  /// Also gives space back to the file system, a little at a time. True: call again, there is more to do.
  virtual void sweep(Sweep sweep, Done<bool> done) = 0;

  // Work that exactly one server does at a time, such as a characterization.
  /// True if `owner` has the work until now_s + lease_s: it was free, its lease was over, or it is already the owner's
  /// (so claiming again renews). Clocks of servers may differ: a lease must be much longer than that.
  virtual void claim(std::string work, std::string owner, double now_s, double lease_s, Done<bool> done) = 0;
  /// Nothing happens if it is not the owner's.
  virtual void release(std::string work, std::string owner, Done<Ok> done) = 0;

  // Tokens, by hash.
  virtual void put_token(TokenRow token, Done<Ok> done) = 0;
  virtual void revoke_token(std::string hash, Done<Ok> done) = 0;
  virtual Result<std::vector<TokenRow>> tokens() = 0;

  // What other servers on the same database do. Set both before anything else is called.
  struct Foreign {
    /// A job's log has grown to that sequence; 0: the job was removed. Also called for every job after the connection
    /// to the database was lost and is back, since notices may have been missed.
    std::function<void(std::string job, std::int64_t sequence)> appended;
    /// Tokens were put or revoked (or may have been): read tokens() again.
    std::function<void()> tokens_changed;
  };
  virtual void on_foreign(Foreign foreign) = 0;

  /// Why no write is possible, where it was opened on a full or read-only file system; "": writes are possible. Writes
  /// fail with `unavailable` then, until there is room: each one looks whether there is.
  [[nodiscard]] virtual std::string read_only() const { return ""; }

  /// For metrics. Never blocks.
  [[nodiscard]] virtual CommitCounts commits() const { return {}; }
  /// What the database takes on its disk.
  virtual Result<std::int64_t> size_bytes() = 0;

  /// A consistent copy of everything in a new file, while the server works; it appears whole or not at all.
  virtual Status backup(const std::string& path) = 0;
};

}  // namespace perseus::store
