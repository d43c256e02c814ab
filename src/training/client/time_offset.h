// Offset between the GPU's time scale and the host's, from moments that bound each other.
//
// The GPU reaches an event no sooner than the host enqueues it (lower bound of the offset), and no later than a
// process observes that it was reached (upper bound). Neither is tight by itself: a host that runs ahead enqueues an
// event seconds before the GPU reaches it, and the GPU's progress may become visible late. Probes are events on a
// separate, otherwise idle stream, so the GPU reaches them when they are enqueued. Where several probes give nearly
// the same lower bound, that bound is the offset. On hardware that queues the probe behind other work (one connection
// for all streams) their bounds differ, and the upper bound counts.
//
// Input:   pairs of times, s: of the GPU on its own scale, and of the host.
// Output:  the difference to add to a GPU time for the host's; known(): within about a millisecond.
// Cost:    O(1). Bounds older than some ten seconds are dropped, since the two scales drift (some 4 us a second).
#pragma once

#include <array>

namespace perseus::client {

class TimeOffset {
 public:
  /// The host enqueued at `host_s` an event that the GPU reached at `device_s`.
  void enqueued(double device_s, double host_s);
  /// The same for a probe; `done_s`: when it was first observed to be reached, if that was at once; else negative.
  void probed(double device_s, double host_s, double done_s);
  /// At `host_s` the GPU was observed to be past its position at `device_s`.
  void seen(double device_s, double host_s);

  [[nodiscard]] double seconds() const;
  [[nodiscard]] bool known() const;

 private:
  static constexpr std::size_t kProbes = 3;  ///< number of probes that have to agree
  struct Bounds {
    double from_s = -1e300, to_s = 1e300;
    std::array<double, kProbes> probes_s{-1e300, -1e300,
                                         -1e300};  ///< the highest lower bounds of probes, highest first
    bool seen = false;
  };
  Bounds& at(double host_s);
  [[nodiscard]] Bounds both() const;

  std::array<Bounds, 2> bounds_;  ///< of this period and the one before
  double period_began_s_ = -1e300;
};

}  // namespace perseus::client
