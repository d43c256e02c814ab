// Latency of the transfers between ranks: one value for all, or one per boundary and direction.
//
// Shape:   boundary b lies between ranks b and b + 1; boundary N - 1 of N ranks lies between the last rank and the
//          first, for schedules with several stages per rank (interleaved 1F1B). "forward" is the direction from rank b
//          to rank b + 1, "backward" the opposite one: in schedules with one stage per rank, activations go forward and
//          gradients go backward.
// Input:   seconds, finite and >= 0.
// Errors:  check() and between() name the boundary or the ranks, the value and what is allowed.
// Cost:    O(1) per transfer.
// Threads: plain value.
// Source:  docs/decisions/0039-latency-per-link.md.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace perseus::model {

struct BoundaryLatency {
  Seconds forward;
  Seconds backward;
  bool operator==(const BoundaryLatency&) const = default;
};

struct TransferLatency {
  TransferLatency() = default;
  /// One latency for all transfers. Implicit, because it is the common case: {power, Seconds(0.001), false}.
  TransferLatency(Seconds all) : common(all) {}  // NOLINT(google-explicit-constructor)
  explicit TransferLatency(std::vector<BoundaryLatency> each) : boundaries(std::move(each)) {}

  Seconds common;                           ///< of every transfer if `boundaries` is empty
  std::vector<BoundaryLatency> boundaries;  ///< empty, or one per boundary; the last one, N - 1, may be missing

  /// Latency from rank `from` to rank `to` of a pipeline with `num_ranks`. Error: this pair of ranks has no boundary.
  [[nodiscard]] Result<Seconds> between(int from, int to, int num_ranks) const;
  /// Error: a value that is not finite or negative, or more boundaries than `num_ranks` ranks have.
  [[nodiscard]] Status check(int num_ranks) const;
  [[nodiscard]] bool is_zero() const;
  [[nodiscard]] Seconds largest() const;
  bool operator==(const TransferLatency&) const = default;
};

/// Text for reports: "0.002 s", or "0.002 to 0.064 s, slowest: boundary 3, forward".
std::string text_of(const TransferLatency& latency);

}  // namespace perseus::model
