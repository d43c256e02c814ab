// The work of a Wide-ResNet's layers: the stem, bottleneck blocks (three convolutions and a skip), the classifier.
//
// Errors:  none.
// Threads: pure function.
// Source:  torchvision's resnet50/101 with width_per_group = 64 * width.
#pragma once

#include <array>
#include <vector>

#include "planning/partitioner/layer_work.h"
#include "planning/partitioner/model_zoo.h"

namespace perseus::partitioner {

struct WideResnetShape {
  std::array<int, 4> blocks{};
  int width = 1;
};

std::vector<LayerWork> work_of(const WideResnetShape& shape, const Workload& workload);

}  // namespace perseus::partitioner
