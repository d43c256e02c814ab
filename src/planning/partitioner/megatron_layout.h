// A partition in the format of Megatron's --pipeline-model-parallel-layout: "Et*6|(t*4|)*2t*3L".
//
// Input:   the kind of each layer and a partition of them.
// Output:  the stages between |, E embedding, t transformer layer, m multi-token prediction, L loss; runs of equal
//          layers as t*6, of equal stages as (...|)*n. It adds E and L at the ends if the layers do not name them (they
//          are part of the first and last layer then). Megatron's parser unrolls the string to exactly these stages.
// Errors:  layers that the format cannot express (`other`), an embedding that is not first, a head that is not last,
//          and the format's other rules: MTP layers come last, together, and not in the first stage.
// Cost:    O(layers).
// Threads: pure function.
// Source:  Megatron-Core's pipeline_parallel_layer_layout.py.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "planning/model/layer.h"
#include "planning/partitioner/partition.h"

namespace perseus::partitioner {

Result<std::string> megatron_layout(std::span<const model::Layer> layers, const Partition& partition);

}  // namespace perseus::partitioner
