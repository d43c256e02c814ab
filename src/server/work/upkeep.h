// Limits the size of the database: removes ended jobs, packs logs, removes unused blobs.
//
// Problem: a server that runs for years must not grow without bound, and must answer during cleanup.
// Input:   retention limits; the store's index, read at intervals on the executor.
// Output:  jobs that ended too long ago are removed, and the oldest ended ones until all logs together are small
//          enough; logs of ended jobs, and long ones, are packed; old minutes of jobs' history become hours; blobs that
//          nothing has held for the set time are removed.
// Errors:  operations that fail in the store are repeated at the next scan; damaged jobs are left for manual
//          inspection.
// Cost:    one scan of the index every ten minutes, on the executor; then up to 200 short writes per second until
//          done.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/work/store_access.h"

namespace perseus::work {

/// 0 means no limit.
struct Keep {
  double finished_s = 0;            ///< ended jobs are removed after this time
  std::int64_t finished_bytes = 0;  ///< size of all logs, live jobs included, above which ended jobs are removed
  double unused_s = 0;              ///< blobs that nothing has held for this long are removed
  double minutes_s = 0;             ///< minutes of jobs' history become hours after this time
  double hours_s = 0;               ///< hours of jobs' history are removed after this time
  [[nodiscard]] bool ages() const { return minutes_s > 0 || hours_s > 0; }
  [[nodiscard]] bool any() const { return finished_s > 0 || finished_bytes > 0 || unused_s > 0 || ages(); }
};

struct UpkeepWork {
  std::vector<std::string> remove, pack;
};
/// The work to do for these jobs.
UpkeepWork upkeep_of(std::vector<store::JobIndexRow> jobs, const Keep& keep, double now_s);

class Upkeep {
 public:
  using RemoveJob = std::function<void(const std::string& job, std::function<void(const Status&)> done)>;
  Upkeep(Keep keep, StoreAccess& store, const Clock& clock, Due& due, RemoveJob remove);

  void set_keep(Keep keep);

 private:
  struct Task {
    enum class Kind : unsigned char { remove, pack, age, sweep } kind;
    std::string job;
  };
  void go_on();
  void look();
  void found(const Result<std::vector<store::JobIndexRow>>& jobs);
  void begin(Task task);
  void ended(Task task, const Result<bool>& more);
  void rest(double seconds);
  [[nodiscard]] store::AgeHistory age() const;

  Keep keep_;
  StoreAccess& store_;
  const Clock& clock_;
  AlarmOf<&Upkeep::go_on> alarm_;
  RemoveJob remove_;
  std::deque<Task> tasks_;
  std::size_t under_way_ = 0;
  bool looking_ = false;
};

}  // namespace perseus::work
