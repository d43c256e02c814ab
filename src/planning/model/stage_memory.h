// Memory of a pipeline stage on one accelerator, in GiB; planning/search/memory.h defines the peak over a schedule.
//
// Threads: plain value.
#pragma once

#include <optional>

namespace perseus::model {

struct StageMemory {
  double weights_gib = 0;      ///< with gradients and optimizer state
  double activations_gib = 0;  ///< of one microbatch
  /// Of one microbatch with recomputation: the inputs of all layers if recompute_gib is given, otherwise the input of
  /// the stage.
  double checkpoint_gib = 0;
  /// Activations in memory, beside the checkpoint, while a backward recomputes: those of one layer if layers recompute
  /// one by one; nullopt: all activations, because the stage recomputes as a whole.
  std::optional<double> recompute_gib = {};
};

}  // namespace perseus::model
