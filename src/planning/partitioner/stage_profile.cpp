#include "planning/partitioner/stage_profile.h"

#include <fmt/format.h>

namespace perseus::partitioner {

Result<model::Profile> profile_of(const std::vector<model::Layer>& layers, const Partition& partition) {
  for (const model::Layer& layer : layers) {
    for (const model::LayerCost& cost : layer.costs) {
      if (cost.clock > Megahertz(0) && cost.backward != Seconds(0) && cost.forward_energy != Joules(0)) continue;
      return Error{ErrorCode::invalid_input,
                   fmt::format("layer '{}': a profile needs clock, backward time and energies of every layer (columns "
                               "frequency_mhz, backward_s, forward_j, backward_j)",
                               layer.name)};
    }
  }
  model::Profile profile;
  profile.accelerators.assign(partition.num_stages(), 1);
  const std::size_t num_clocks = layers.front().costs.size();
  for (int s = 0; s < partition.num_stages(); ++s) {
    model::ProfileEntry forward{s, "forward", {}};
    model::ProfileEntry backward{s, "backward", {}};
    for (std::size_t c = 0; c < num_clocks; ++c) {
      model::LayerCost sum{layers.front().costs[c].clock, {}, {}, {}, {}};
      for (int i = partition.boundaries[s]; i < partition.boundaries[s + 1]; ++i) {
        const model::LayerCost& cost = layers[i].costs[c];
        sum.forward += cost.forward;
        sum.backward += cost.backward;
        sum.forward_energy += cost.forward_energy;
        sum.backward_energy += cost.backward_energy;
      }
      forward.measurements.push_back({sum.clock, sum.forward, sum.forward_energy, {}, {}, 1});
      backward.measurements.push_back({sum.clock, sum.backward, sum.backward_energy, {}, {}, 1});
    }
    profile.entries.push_back(std::move(forward));
    profile.entries.push_back(std::move(backward));
  }
  return profile;
}

}  // namespace perseus::partitioner
