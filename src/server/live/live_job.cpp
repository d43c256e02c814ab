#include "server/live/live_job.h"

#include <fmt/format.h>

namespace perseus::live {

Error later_version(const std::string& job) {
  return {
      ErrorCode::unavailable,
      fmt::format("job {} was changed by a later version of Perseus, which this server does not support: use a server "
                  "of that version",
                  job)};
}

std::optional<int> RankWindows::handed(int rank) const {
  const auto found = windows_of_.find(rank);
  return found == windows_of_.end() ? std::nullopt : found->second.handed;
}

bool RankWindows::has_run(int rank, int window) const {
  const auto found = windows_of_.find(rank);
  return found != windows_of_.end() && found->second.run == window;
}

std::shared_ptr<const jobs::CharacterizedPipeline> LoadedFrontiers::find(std::string_view key) const {
  const auto found = loaded_.find(key);
  return found == loaded_.end() ? nullptr : found->second;
}

void LoadedFrontiers::add(std::shared_ptr<const jobs::CharacterizedPipeline> frontier) {
  const std::string& key = frontier->key;
  loaded_[key] = std::move(frontier);
}

bool LoadedFrontiers::request(const std::string& key) {
  return !loaded_.contains(key) && requested_.insert(key).second;
}

std::vector<std::string> LoadedFrontiers::withdraw_except(const std::set<std::string>& needed) {
  std::vector<std::string> withdrawn;
  std::erase_if(requested_, [&](const std::string& key) {
    if (needed.contains(key)) return false;
    withdrawn.push_back(key);
    return true;
  });
  return withdrawn;
}

ScheduleCache::Schedule& ScheduleCache::at(std::int64_t version, const Key& key) {
  if (version_ != version) schedules_.clear();
  version_ = version;
  return schedules_[key];
}

}  // namespace perseus::live
