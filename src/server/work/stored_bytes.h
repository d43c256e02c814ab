// Database space of each token's jobs: their logs, their history, and the blobs that they hold.
//
// Input:   writes as they are sent to the store; at intervals the whole index and the held blobs, which correct the
//          sum. A blob that several jobs of a token hold counts once for it.
// Output:  bytes by token. Blobs held through others' work (a frontier), and history, count from the next
//          correction on.
// Errors:  while the store does not answer, the sum stays as it is.
// Cost:    a table entry per token; one scan of the index at the start, and every ten minutes on the executor.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "server/work/store_access.h"

namespace perseus::work {

class StoredBytes {
 public:
  using ByToken = std::unordered_map<std::string, std::int64_t>;

  /// `counted`: the present sizes, by count(). An error: counted again at once.
  StoredBytes(StoreAccess& store, Due& due, Result<ByToken> counted, double now_s);
  static Result<ByToken> count(store::Store& store);
  /// Adds bytes that the token's jobs write.
  void add(const std::string& token, std::int64_t bytes) { since_[token] += bytes; }
  [[nodiscard]] std::int64_t of(const std::string& token) const;

 private:
  void correct(double now_s);

  StoreAccess& store_;
  AlarmOf<&StoredBytes::correct> alarm_;
  ByToken counted_;  ///< at the last correction
  ByToken before_;   ///< written between that correction and the one in progress
  ByToken since_;
  bool counting_ = false;
};

}  // namespace perseus::work
