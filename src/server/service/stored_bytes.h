// How much of the database each token's jobs take: their logs, and the blobs that they hold.
//
// Input:   what is written, as it is sent to the store; now and then the whole index and what jobs hold, which
//          corrects the sum. A blob that several jobs of a token hold counts once for it.
// Output:  bytes by token. What jobs hold through others' work (a frontier) counts from the next correction on.
// Errors:  while the store does not answer, the sum stays as it is.
// Cost:    a table entry per token; one scan of the index at the start, and every ten minutes on the executor.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "server/service/store_access.h"

namespace perseus::service {

class StoredBytes : public std::enable_shared_from_this<StoredBytes> {
 public:
  using ByToken = std::unordered_map<std::string, std::int64_t>;

  /// `counted`: what there is now, by count(). An error: counted anew at the next tick.
  StoredBytes(StoreAccess& store, Result<ByToken> counted, double now_s);
  static Result<ByToken> count(store::Store& store);
  /// The token's jobs write so much.
  void add(const std::string& token, std::int64_t bytes) { since_[token] += bytes; }
  [[nodiscard]] std::int64_t of(const std::string& token) const;
  /// To be called at least every few minutes.
  void tick(double now_s);

 private:
  StoreAccess& store_;
  ByToken counted_;  ///< by the last correction
  ByToken before_;   ///< written between it and the one under way
  ByToken since_;
  double next_s_;
  bool counting_ = false;
};

}  // namespace perseus::service
