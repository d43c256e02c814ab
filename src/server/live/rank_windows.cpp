#include "server/live/rank_windows.h"

namespace perseus::live {

std::optional<int> RankWindows::handed(int rank) const {
  const auto found = windows_of_.find(rank);
  return found == windows_of_.end() ? std::nullopt : found->second.handed;
}

bool RankWindows::has_run(int rank, int window) const {
  const auto found = windows_of_.find(rank);
  return found != windows_of_.end() && found->second.run == window;
}

}  // namespace perseus::live
