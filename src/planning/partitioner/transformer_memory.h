// Memory of a transformer's pipeline stages on one GPU: weights with optimizer state, activations, checkpoints.
//
// Model:   a stage holds its layers' activations of a microbatch; the first stage also the dropout mask of the
//          embedding, the last one the inputs of the final normalization and of the head, and single-precision logits.
//          When it recomputes, layer by layer, it keeps each layer's input (and what the head holds) and in its
//          backward one layer's activations. Weights, gradients, master weights and Adam's two moments take 16 bytes a
//          parameter; tied embeddings have a copy on the last stage. Tensor parallelism as in Megatron, without
//          sequence parallelism; no sharded optimizer. It does not count biases and normalization weights (0.1 %),
//          communication buffers and fragmentation.
// Input:   a shape that has_known_memory(): attention scores in memory, dropout, an MLP of two matrices; a valid
//          workload; layers per stage, whose sum is the shape's layers.
// Output:  GiB per stage, of one microbatch.
// Errors:  none.
// Threads: pure functions.
// Source:  Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, MLSys 2023, equations 1
//          and 2 and section 4.3, here for elements of 2 or 4 bytes; Rajbhandari et al., ZeRO, SC'20, section 3.1.
#pragma once

#include <vector>

#include "planning/model/stage_memory.h"
#include "planning/partitioner/transformer_work.h"

namespace perseus::partitioner {

bool has_known_memory(const TransformerShape& shape);
std::vector<model::StageMemory> memory_of(const TransformerShape& shape, const Workload& workload,
                                          const std::vector<int>& layers_per_stage);

}  // namespace perseus::partitioner
