// Memory that a pipeline stage needs on one accelerator, in GiB; planning/search/memory.h says how it adds up. Threads:
// plain value.
#pragma once

#include <optional>

namespace perseus::model {

struct StageMemory {
  double weights_gib = 0;      ///< with gradients and optimizer state
  double activations_gib = 0;  ///< of one microbatch
  /// Of one microbatch whose activations are recomputed: the inputs of all layers where recompute_gib is given, that of
  /// the stage otherwise.
  double checkpoint_gib = 0;
  /// Held beside the checkpoint while a backward recomputes: that of a layer where layers recompute one by one.
  /// Nothing: all activations, as a stage that is recomputed as a whole needs.
  std::optional<double> recompute_gib = {};
};

}  // namespace perseus::model
