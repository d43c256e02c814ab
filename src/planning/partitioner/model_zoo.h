// Models by name, as the work of their layers: FLOPs and bytes counted from the shapes.
//
// Input:   a name such as "gpt3-1b" or "llama3-70b", and the training setup (Workload).
// Output:  layers in data order. A layer is one in the paper's sense: a transformer layer, or a bottleneck block of a
//          Wide-ResNet (whose stem and classifier are layers too). The embedding is part of the first layer; the
//          language-model head, with its loss, is a separate layer, the last. The paper's models run like the eager
//          PyTorch code of their time (attention scores in memory, one kernel per element-wise operation), today's
//          models with fused kernels.
// Errors:  an unknown name (lists the known ones), a workload out of range.
// Cost:    O(layers).
// Threads: pure functions.
// Source:  the models' published configurations; docs/partition.md has the counting rules.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "planning/model/stage_memory.h"
#include "planning/partitioner/layer_work.h"

namespace perseus::partitioner {

struct Workload {
  int microbatch_size = 1;
  int sequence_length = 0;  ///< tokens; the side of the image for Wide-ResNet
  int tensor_parallel = 1;  ///< GPUs that share every layer
  int expert_parallel = 1;  ///< GPUs that share the experts of a layer, with as many microbatches
  Precision precision = Precision::bf16;
  bool recompute = false;  ///< activations: the backward runs the forward again (not that of the head)
  bool embedding = true;   ///< counted with the first layer; the paper's tables leave it out
};

struct ZooEntry {
  std::string_view name;
  std::string_view description;
  Workload workload;  ///< the model's usual training setup; the paper's for the paper's models
};

const std::vector<ZooEntry>& zoo();
Result<ZooEntry> zoo_entry(std::string_view name);
Result<std::vector<LayerWork>> zoo_layers(std::string_view name, const Workload& workload);
/// Memory per stage (planning/partitioner/transformer_memory.h). `layers_per_stage` counts transformer layers; a single
/// number applies to each of `stages`. Further errors: usage: a model of unknown memory, layers that do not add up.
Result<std::vector<model::StageMemory>> zoo_memory(std::string_view name, const Workload& workload, int stages,
                                                   std::vector<int> layers_per_stage);

}  // namespace perseus::partitioner
