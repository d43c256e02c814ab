#include "planning/model/transfer_latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::model {
namespace {

bool is_valid(Seconds latency) { return std::isfinite(latency.value()) && latency >= Seconds(0); }

/// Boundaries of a pipeline. The boundary between the last rank and the first differs from boundary 0 if there are more
/// than two ranks.
int most_boundaries(int num_ranks) { return num_ranks > 2 ? num_ranks : num_ranks - 1; }

}  // namespace

Result<Seconds> TransferLatency::between(int from, int to, int num_ranks) const {
  if (boundaries.empty()) return common;
  const auto given = static_cast<int>(boundaries.size());
  // With two ranks, boundary 0 is the only one, so test for it first.
  for (const int boundary : {std::min(from, to), num_ranks - 1}) {
    const int low = boundary, high = (boundary + 1) % num_ranks;
    const bool forward = from == low && to == high, backward = from == high && to == low;
    if ((forward || backward) && boundary < given)
      return forward ? boundaries[boundary].forward : boundaries[boundary].backward;
  }
  const bool around = std::min(from, to) == 0 && std::max(from, to) == num_ranks - 1;
  return Error{
      ErrorCode::invalid_input,
      fmt::format("transfer_latency_s: {} boundaries, but rank {} sends to rank {}; allowed: {}", given, from, to,
                  around ? fmt::format("one latency per boundary and one more, from rank {} to rank 0 ({})",
                                       num_ranks - 1, num_ranks)
                         : std::string("one latency for all, because these ranks are not neighbors"))};
}

Status TransferLatency::check(int num_ranks) const {
  const auto refuse = [](const std::string& which, Seconds value) -> Status {
    return Error{ErrorCode::usage,
                 fmt::format("transfer_latency_s{} {}; must be finite and >= 0", which, value.value())};
  };
  if (boundaries.empty()) return is_valid(common) ? Status(Ok{}) : refuse("", common);
  for (std::size_t b = 0; b < boundaries.size(); ++b) {
    for (const Seconds value : {boundaries[b].forward, boundaries[b].backward}) {
      if (!is_valid(value)) return refuse(fmt::format(" of boundary {}:", b), value);
    }
  }
  const int most = most_boundaries(num_ranks);
  const auto given = static_cast<int>(boundaries.size());
  if (given > most || given < num_ranks - 1) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("transfer_latency_s: {} boundaries for {} ranks; allowed: {}{}", given, num_ranks,
                             num_ranks - 1, most > num_ranks - 1 ? fmt::format(" or {}", most) : "")};
  }
  return Ok{};
}

bool TransferLatency::is_zero() const { return largest() == Seconds(0); }

Seconds TransferLatency::largest() const {
  Seconds most = boundaries.empty() ? common : Seconds(0);
  for (const BoundaryLatency& b : boundaries) most = std::max({most, b.forward, b.backward});
  return most;
}

std::string text_of(const TransferLatency& latency) {
  if (latency.boundaries.empty()) return fmt::format("{:g} s", latency.common.value());
  Seconds least = latency.boundaries.front().forward, most(-1);
  std::string slowest;
  for (std::size_t b = 0; b < latency.boundaries.size(); ++b) {
    const auto& [forward, backward] = latency.boundaries[b];
    least = std::min({least, forward, backward});
    if (std::max(forward, backward) <= most) continue;
    most = std::max(forward, backward);
    slowest = fmt::format("boundary {}{}", b,
                          forward == backward  ? ""
                          : forward > backward ? ", forward"
                                               : ", backward");
  }
  if (least == most) return fmt::format("{:g} s", most.value());
  return fmt::format("{:g} to {:g} s, slowest: {}", least.value(), most.value(), slowest);
}

}  // namespace perseus::model
