#include "server/profiling/clock_grid.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace perseus::profiling {

std::vector<CurvePosition> ClockGrid::positions(int curve) const {
  std::vector<CurvePosition> positions;
  positions.reserve(clocks.size());
  for (const Megahertz clock : clocks) {
    positions.push_back({std::log(static_cast<double>(clock.value()) / clocks.front().value()), curve});
  }
  return positions;
}

ClockGrids::ClockGrids(const Layout& layout) : places(layout.types.size()), types_of_rank(layout.num_ranks()) {
  std::map<model::Instruction, int> index;
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    if (!type.has_clock()) continue;
    types_of_rank[type.rank].push_back(t);
    const auto [it, is_new] = index.try_emplace(type.instruction, static_cast<int>(grids.size()));
    if (is_new) grids.emplace_back();
    ClockGrid& grid = grids[it->second];
    places[t].grid = it->second;
    places[t].member = static_cast<int>(grid.types.size());
    grid.types.push_back(t);
    grid.clocks.insert(grid.clocks.end(), type.clocks.begin(), type.clocks.end());
  }
  for (ClockGrid& grid : grids) {
    std::ranges::sort(grid.clocks, std::greater{});
    grid.clocks.erase(std::unique(grid.clocks.begin(), grid.clocks.end()), grid.clocks.end());
    for (const int t : grid.types) {
      for (const Megahertz clock : layout.types[t].clocks) {
        places[t].positions.push_back(static_cast<int>(std::ranges::find(grid.clocks, clock) - grid.clocks.begin()));
      }
    }
  }
}

}  // namespace perseus::profiling
