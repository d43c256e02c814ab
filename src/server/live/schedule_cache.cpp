#include "server/live/schedule_cache.h"

namespace perseus::live {

ScheduleCache::Schedule& ScheduleCache::at(std::int64_t version, const Key& key) {
  if (version_ != version) schedules_.clear();
  version_ = version;
  return schedules_[key];
}

}  // namespace perseus::live
