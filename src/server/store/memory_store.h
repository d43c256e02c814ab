// A store in memory: for tests, and as the simplest implementation of the interface.
//
// Problem: the server's tests need a store without disk, thread or time, two servers on one database, and a database
//          that fails.
// Input:   stores that share a MemoryDatabase are replicas of each other.
// Output:  as in store.h. A write runs when Post runs it, at any later time on the one thread, never inside the call;
//          writes that have not run when the store is destroyed are lost, as in a crash.
// Errors:  as in store.h; while `database.failure` is set, every call fails with it and changes nothing;
//          `write_failure` does the same to writes, and `lost_answer` after they are made.
// Cost:    a map.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/store/store.h"

namespace perseus::store {

struct MemoryDatabase {
  struct StoredJob {
    JobIndexRow index;
    std::vector<StoredEvent> events;
    std::string damage = {};  ///< damage injected by a test; empty: none
  };
  std::map<std::string, StoredJob, std::less<>> jobs;
  std::map<std::string, std::string, std::less<>> blobs;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::string>, HistoryFigures>
      history;  ///< by job, step, start and source
  std::map<std::tuple<std::int64_t, std::int64_t, std::string, std::string>, SiteFigures>
      site_history;                                     ///< by step, start, domain and source
  std::set<std::pair<std::string, std::string>> holds;  ///< a job ("job/ID") or blob, and the blob that it holds
  std::map<std::string, double> unused_since;           ///< blobs found unused by a sweep
  std::set<std::string, std::less<>> damaged_blobs;     ///< damage injected by a test
  std::map<std::string, TokenRow, std::less<>> tokens;
  std::optional<Error> failure;
  std::optional<Error> write_failure;  ///< of writes only, as on a full disk
  std::optional<Error> lost_answer;    ///< writes are made and fail with it: the connection broke during the commit
  bool may_read = true;  ///< false: a read is a programming error, as on a thread that must not wait for the store
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Post post, std::shared_ptr<MemoryDatabase> database = std::make_shared<MemoryDatabase>());

  void append(Append append, Done<Appended> done) override;
  Result<std::vector<StoredEvent>> read(std::string_view job, std::int64_t after) override;
  Result<std::vector<JobIndexRow>> jobs() override;
  void remove_job(std::string job, Done<Ok> done) override;
  void pack_job(std::string job, Done<bool> done) override;
  void write_history(std::vector<HistoryRow> rows, Done<Ok> done) override;
  Result<std::vector<HistoryRow>> history(std::string_view job, std::int64_t from_s, std::int64_t to_s) override;
  void age_history(AgeHistory age, Done<bool> done) override;
  Result<std::vector<HistoryBytes>> history_bytes() override;
  void write_site_history(std::vector<SiteRow> rows, Done<Ok> done) override;
  Result<std::vector<SiteRow>> site_history(std::int64_t from_s, std::int64_t to_s) override;
  void put_blob(Blob blob, Done<Ok> done) override;
  Result<std::optional<std::string>> blob(std::string_view key) override;
  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override;
  void remove_blob(std::string key, Done<Ok> done) override;
  void sweep(Sweep sweep, Done<bool> done) override;
  void put_token(TokenRow token, Done<Ok> done) override;
  void revoke_token(std::string hash, Done<Ok> done) override;
  Result<std::vector<TokenRow>> tokens() override;
  Result<std::int64_t> size_bytes() override;
  Result<std::vector<HeldBlob>> held_blobs() override;
  Status backup(const std::string& path) override;

 private:
  /// Posts done(value), or done(failure) without running the work.
  template <class T, class Work>
  void write(Done<T> done, Work work);
  [[nodiscard]] std::optional<Error> cannot_read() const;
  void put(Blob blob);
  void age_site_history(const AgeHistory& age);
  void release_all(const std::string& holder);

  Post post_;
  std::shared_ptr<MemoryDatabase> database_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();  // not shared
};

}  // namespace perseus::store
