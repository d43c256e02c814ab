#include "training/client/device_positions.h"

namespace perseus::client {
namespace {

constexpr double kPositionPatience_s = 1;  ///< wait for a position behind the device's progress

/// Positions may wrap.
bool is_before(std::uint32_t position, std::uint32_t other) { return static_cast<std::int32_t>(position - other) < 0; }

std::uint32_t last_position(const Step& step) {
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < step.count; ++i) {
    if (step.computations[i].end_position != 0) last = step.computations[i].end_position;
  }
  return last;
}

}  // namespace

void DevicePositions::completed(const Step& step) {
  for (std::size_t i = 0; i < step.count && !applied_.empty(); ++i) {
    const RecordedComputation& c = step.computations[i];
    if (c.end_position == 0) continue;
    while (!applied_.empty() && !is_before(c.end_position, applied_.front().position)) {
      if (applied_.front().position == c.end_position) {
        reached_to_call_.record(applied_.front().call_ns - static_cast<std::int64_t>(c.end));
      }
      applied_.pop_front();
    }
  }
}

bool DevicePositions::stays_behind(const Step& step, std::uint32_t position, double now_s) {
  const std::uint32_t last = last_position(step);
  if (last == 0 || !is_before(position, last)) {
    behind_since_s_ = 0;
  } else if (behind_since_s_ == 0) {
    behind_since_s_ = now_s;
  } else {
    return now_s - behind_since_s_ > kPositionPatience_s;
  }
  return false;
}

}  // namespace perseus::client
