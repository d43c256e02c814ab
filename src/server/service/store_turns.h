// Changes of one thing in the store, one after another, of all servers on the database.
//
// Problem: a change reads the store, decides, and writes; two at a time would lose one.
// Input:   changes, which call their argument when they have ended.
// Output:  `done` with the outcome of the change. A change begins when this server has the claim `work`, so what it has
//          read stays until it has ended.
// Errors:  `busy`: another server is changing it. Those of the store, and of the change.
// Cost:    a claim and a release per change.
// Threads: io thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "server/service/service_options.h"
#include "server/service/store_access.h"

namespace perseus::service {

class StoreTurns : public std::enable_shared_from_this<StoreTurns> {
 public:
  /// A server that ends within a change stops others for this long.
  static constexpr double kLease_s = 15;
  using Change = std::function<void(Done<Ok>)>;

  StoreTurns(std::string work, Error busy, const ServiceOptions& options, StoreAccess& store, const Clock& clock)
      : work_(std::move(work)), busy_(std::move(busy)), options_(options), store_(store), clock_(clock) {}

  void add(Change change, Done<Ok> done);

 private:
  struct Turn {
    Change change;
    Done<Ok> done;
  };
  void begin();
  void end(const Result<Ok>& result);

  std::string work_;
  Error busy_;
  const ServiceOptions& options_;
  StoreAccess& store_;
  const Clock& clock_;
  std::deque<Turn> turns_;  ///< the first is in progress
};

}  // namespace perseus::service
