// Maps times of CUDA events to CLOCK_MONOTONIC, by bounds from both sides.
//
// The GPU records an event after the host begins to enqueue it and before the host sees it done. So each probe bounds
// the offset between both clocks from below and above; probes that are close in time narrow each other's bounds.
//
// Input:   probes on a stream without other work.
// Output:  the offset's middle, and half the width of its bounds.
// Errors:  CudaFailure; a map without probes has no offset (std::logic_error).
// Cost:    about 10 us per probe.
// Threads: one.
#pragma once

#include <cstdint>
#include <deque>

#include "cuda.h"

namespace perseus::measure {

class ClockMap {
 public:
  explicit ClockMap(const Cuda& cuda);
  void probe(int times = 20);
  /// Of an event that is done, since this map was made.
  [[nodiscard]] double device_us(Event event) const;

  struct Bounds {
    double middle_us = 0, half_width_us = 0;
  };
  /// What to add to a device time: from probes within that distance, or the nearest one.
  [[nodiscard]] Bounds offset_at(double device_us, double within_us = 50'000) const;
  [[nodiscard]] double host_us(double device_us) const { return device_us + offset_at(device_us).middle_us; }

 private:
  struct Probe {
    double device_us, lower_us, upper_us;
  };
  const Cuda& cuda_;
  Stream stream_;
  Event base_, event_;
  std::deque<Probe> probes_;
};

/// CLOCK_MONOTONIC.
double host_now_us();
/// After so long without an answer of the device a part gives up.
constexpr double kPatience_us = 30e6;

}  // namespace perseus::measure
