// The frontiers of a job that are in memory, and those that have been requested for it.
//
// Input:   keys of requested frontiers; of an input, the full frontier is requested.
// Output:  the frontiers that have arrived.
// Errors:  none.
// Cost:    a lookup.
// Threads: io thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/policies/deployment.h"

namespace perseus::live {

class LoadedFrontiers {
 public:
  using Frontier = std::shared_ptr<const jobs::CharacterizedPipeline>;
  [[nodiscard]] const policies::Frontiers& all() const { return loaded_; }
  /// Null: it is not in memory.
  [[nodiscard]] std::shared_ptr<const jobs::CharacterizedPipeline> find(std::string_view key) const;
  void add(std::shared_ptr<const jobs::CharacterizedPipeline> frontier);
  void drop(const std::string& key) { loaded_.erase(key); }

  /// False: it is in memory or has been requested.
  bool request(const std::string& key);
  /// The request was answered.
  void answered(const std::string& key) { requested_.erase(key); }
  /// Withdraws all requests but those, and returns the withdrawn ones.
  std::vector<std::string> withdraw_except(const std::set<std::string>& needed);
  [[nodiscard]] const std::set<std::string>& requested() const { return requested_; }

 private:
  policies::Frontiers loaded_;
  std::set<std::string> requested_;
};

}  // namespace perseus::live
