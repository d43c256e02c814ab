// The layers of a model in data order; a partition assigns them to stages.
//
// Shape:   per layer its costs at each clock, highest first; all layers have the same clocks. A single cost with clock
//          0 means that the clock is unknown. Unknown backward times or energies are 0 in all layers.
// Units:   s and J of one microbatch on one accelerator.
// Threads: plain values.
// Source:  paper appendix B.1 (what counts as a layer).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace perseus::model {

/// The kinds that frameworks distinguish; `other` is, for example, a convolution block or an encoder.
enum class LayerKind : unsigned char { embedding, transformer, mtp, head, other };

inline constexpr int kNumLayerKinds = 5;

std::string_view name_of(LayerKind kind);
std::optional<LayerKind> layer_kind_named(std::string_view name);

struct LayerCost {
  Megahertz clock;
  Seconds forward;
  Seconds backward;
  Joules forward_energy;
  Joules backward_energy;
};

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::transformer;
  std::vector<LayerCost> costs;
};

/// Forward latencies at the highest clock.
std::vector<Seconds> forward_latencies(const std::vector<Layer>& layers);

}  // namespace perseus::model
