#include "planning/search/layer_memory.h"

#include <utility>

namespace perseus::search {

LayerMemory zoo_layer_memory(std::string model, const partitioner::Workload& workload, std::vector<int> layers) {
  return {std::move(layers), [model = std::move(model), workload](const std::vector<int>& each) {
            return partitioner::zoo_memory(model, workload, static_cast<int>(each.size()), each);
          }};
}

}  // namespace perseus::search
