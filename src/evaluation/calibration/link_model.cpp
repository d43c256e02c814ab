#include "evaluation/calibration/link_model.h"

namespace perseus::calibration {

model::TransferLatency LinkModel::latencies(std::span<const double> seconds) const {
  if (detail == LinkDetail::one) return Seconds(seconds[0]);
  std::vector<model::BoundaryLatency> boundaries;
  for (int b = 0; b < num_boundaries(); ++b) {
    boundaries.push_back({Seconds(seconds[latency_of(b, b + 1)]), Seconds(seconds[latency_of(b + 1, b)])});
  }
  return model::TransferLatency(std::move(boundaries));
}

}  // namespace perseus::calibration
