#include "server/live/loaded_frontiers.h"

namespace perseus::live {

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

}  // namespace perseus::live
