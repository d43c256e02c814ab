// Asks the store for changes by other servers, before a request is rejected.
//
// Problem: another replica may have committed newer events than this server has seen.
// Input:   with_changes(): requests; query() when an append or a read of the job has ended.
// Output:  `then` with the job, after a query that was sent after the request arrived.
// Errors:  the store's; unavailable: no answer within the time limit.
// Cost:    one query of the log's tail at a time per job, for all requests that wait.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/service/live_job.h"
#include "server/service/store_access.h"

namespace perseus::service {

class JobCache;

class ReplicaChanges : public std::enable_shared_from_this<ReplicaChanges> {
 public:
  ReplicaChanges(JobCache& jobs, StoreAccess& store) : jobs_(jobs), store_(store) {}

  void with_changes(const std::string& id, FoundJob then);
  void query(const std::string& id);
  /// The requests whose query has not been sent; they are no longer answered here.
  std::vector<FoundJob> take_waiting(const std::string& id);

 private:
  struct Query {
    std::vector<FoundJob> asking;  ///< their query is in progress
    std::vector<FoundJob> next;    ///< arrived after that query was sent
    bool reading = false;
  };
  void answered(const std::string& id, const Result<std::int64_t>& last);

  JobCache& jobs_;
  StoreAccess& store_;
  std::unordered_map<std::string, Query> queries_;
};

}  // namespace perseus::service
