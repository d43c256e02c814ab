// The schedules of a job's stages, each made once per plan version and shared by the ranks of the stage.
//
// Input:   the version that ranks see, and the stage.
// Output:  the schedule; null until RankPlans has made it.
// Errors:  none.
// Cost:    a lookup.
// Threads: io thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "server/policies/stage_schedule.h"

namespace perseus::live {

class ScheduleCache {
 public:
  /// Pipeline's choice, stage rank, clock set and instruction set.
  using Key = std::array<int, 4>;
  using Schedule = std::shared_ptr<const jobs::StageSchedule>;
  /// Drops the schedules of another version.
  Schedule& at(std::int64_t version, const Key& key);
  void clear() { schedules_.clear(); }

  /// The computations where there is no frontier, from the job's input.
  struct MaxClockShape {
    enum class Reading : unsigned char { no, under_way, failed };
    std::optional<jobs::PipelineShape> shape;
    Reading reading = Reading::no;
  };
  MaxClockShape max_clock;

 private:
  std::map<Key, Schedule> schedules_;
  std::int64_t version_ = 0;
};

}  // namespace perseus::live
