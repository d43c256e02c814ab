// Estimates transfer latencies between the ranks of a pipeline from the times of its computations.
//
// Method: begin of the receiver minus end of the sender = latency + idle time of the message + offset of the clocks.
// A message is not idle if its receiver waited for it, as most ranks do in every warm-up. So the least value of an
// iteration is latency + offset, and the sum of the least values of both directions is the round trip. Of iterations
// in which ranks waited in both directions, the median counts; otherwise the least of all iterations. A sender waits
// if its next computation, whose inputs are available, begins more than half a latency later.
//
// Problem: a plan that slows the stages beside a slow link is late if the link's latency is not in the DAG. Ranks
//          only know their own clocks, which may differ by seconds.
// Input:   a schedule; per iteration and rank, begin and end of each action, s, by the rank's own clock.
// Output:  links(): the latency of each boundary, and whether senders wait. Only the sum of both directions of a
//          boundary can be determined, so each direction gets half of it. If ranks never waited for a message, the
//          latency is the largest at which they would not have waited either. Nothing: fewer than kLeastIterations,
//          or ranks that do not exchange messages in both directions.
// Errors:  none; an iteration of the wrong shape, or with values that are not finite, is left out.
// Cost:    O(messages) per iteration.
// Threads: plain value.
// Source:  docs/decisions/0045.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planning/model/schedule.h"
#include "planning/model/transfer_latency.h"

namespace perseus::profiling {

struct MeasuredLinks {
  model::TransferLatency latency;  ///< one per boundary
  bool blocking_transfers = false;
  bool operator==(const MeasuredLinks&) const = default;
};

struct RunTime {
  double begin_s = 0;
  double end_s = 0;
};
/// [rank][action], as Schedule::ranks.
using IterationTimes = std::vector<std::vector<RunTime>>;

class LinkTimes {
 public:
  static constexpr std::size_t kLeastIterations = 3;

  /// A schedule without a DAG yields an object without links.
  explicit LinkTimes(const model::Schedule& schedule);
  void add(const IterationTimes& iteration);
  [[nodiscard]] std::optional<MeasuredLinks> links() const;

 private:
  struct Place {
    int rank = 0;
    int action = 0;
  };
  struct Message {
    Place sender, receiver;
  };
  using Ranks = std::pair<int, int>;  ///< sender and receiver; of a boundary the lower one first
  struct RoundTrips {
    std::vector<double> waited_s;  ///< of iterations in which both ranks waited for a message
    std::optional<double> bound_s;
    std::size_t iterations = 0;
  };
  [[nodiscard]] bool fits(const IterationTimes& iteration) const;
  /// Upper bound of each rank's idle time before each action that is due to its own send, s.
  [[nodiscard]] std::vector<std::vector<double>> send_times(const std::map<Ranks, double>& least_s) const;
  void compare_sends(const IterationTimes& iteration, const std::map<Ranks, double>& least_s,
                     const std::vector<std::vector<double>>& send_s);

  std::vector<std::size_t> actions_;  ///< per rank
  std::vector<Message> messages_;
  std::map<Ranks, RoundTrips> round_trips_;
  std::vector<double> sender_idle_;  ///< after a send, in latencies
};

}  // namespace perseus::profiling
