#include "planning/model/boundary_count.h"

#include <algorithm>
#include <vector>

namespace perseus::model {

int boundary_count(const Schedule& schedule) {
  const int last = schedule.num_ranks() - 1;
  std::vector<int> rank_of(schedule.num_stages);
  for (int rank = 0; rank <= last; ++rank) {
    for (const Action& action : schedule.ranks[rank]) rank_of[action.stage] = rank;
  }
  const auto around = std::ranges::adjacent_find(
      rank_of, [last](int a, int b) { return std::min(a, b) == 0 && std::max(a, b) == last; });
  return last > 1 && around != rank_of.end() ? last + 1 : last;
}

}  // namespace perseus::model
