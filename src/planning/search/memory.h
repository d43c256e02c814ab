// Peak memory of each rank under a schedule: weights, and the activations of the microbatches in flight.
//
// Model:   a stage holds the activations of a microbatch from its forward until its backward ends (a split backward:
//          until its weight gradient ends). A stage that recomputes holds only its checkpoint for that long; in its
//          backward it also holds the recomputed activations, and between the halves of a split backward, and after an
//          early recomputation, all activations. Weights, gradients and optimizer state stay all the time. The model
//          excludes communication buffers, fragmentation and the framework: the limit must leave space for them.
// Input:   a valid schedule, memory per stage in GiB, which stages recompute.
// Output:  peak GiB per rank; it follows from each rank's own order, not from times.
// Cost:    O(actions).
// Threads: pure functions.
#pragma once

#include <vector>

#include "planning/model/schedule.h"
#include "planning/model/stage_memory.h"

namespace perseus::search {

/// The same model cut into another number of stages, as with_stages() of planning/search/stage_count.h does, where only
/// the memory of the given stages is known. Chunks share weights and activations equally, and the checkpoint too if
/// layers recompute one by one (recompute_gib is given); otherwise the checkpoint is the input of a stage, and each
/// chunk keeps one of that size.
std::vector<model::StageMemory> with_stages(const std::vector<model::StageMemory>& memory, int num_stages);

std::vector<double> peak_memory_gib(const model::Schedule& schedule, const std::vector<model::StageMemory>& memory,
                                    const std::vector<bool>& recomputes);

/// Per stage, the maximum number of microbatches whose activations (or checkpoints) are in memory at once.
std::vector<int> microbatches_in_flight(const model::Schedule& schedule);

}  // namespace perseus::search
