#include "planning/model/layer.h"

#include <array>

namespace perseus::model {
namespace {

constexpr std::array<std::string_view, kNumLayerKinds> kLayerNames = {"embedding", "transformer", "mtp", "head",
                                                                      "other"};

}  // namespace

std::string_view name_of(LayerKind kind) { return kLayerNames[static_cast<std::size_t>(kind)]; }

std::optional<LayerKind> layer_kind_named(std::string_view name) {
  for (std::size_t i = 0; i < kLayerNames.size(); ++i) {
    if (kLayerNames[i] == name) return static_cast<LayerKind>(i);
  }
  return std::nullopt;
}

std::vector<Seconds> forward_latencies(const std::vector<Layer>& layers) {
  std::vector<Seconds> latencies;
  latencies.reserve(layers.size());
  for (const Layer& layer : layers) latencies.push_back(layer.costs.front().forward);
  return latencies;
}

}  // namespace perseus::model
