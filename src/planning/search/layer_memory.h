// The memory of a model whose layers are divided among stages in any way.
//
// Input:   the model's name in the zoo and its training setup; layers per stage.
// Output:  memory per stage, as partitioner::zoo_memory() computes it; the last stage also has the head.
// Errors:  those of zoo_memory().
// Threads: const methods are safe concurrently.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planning/model/stage_memory.h"
#include "planning/partitioner/model_zoo.h"

namespace perseus::search {

struct LayerMemory {
  std::vector<int> layers;  ///< transformer layers of each stage of a job's profile
  /// Memory of stages with so many transformer layers each.
  std::function<Result<std::vector<model::StageMemory>>(const std::vector<int>& layers)> of;
};

LayerMemory zoo_layer_memory(std::string model, const partitioner::Workload& workload, std::vector<int> layers);

}  // namespace perseus::search
