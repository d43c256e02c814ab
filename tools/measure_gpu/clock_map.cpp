#include "clock_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "training/clock_control/mailbox.h"

namespace perseus::measure {

double host_now_us() { return 1e-3 * static_cast<double>(clock_control::monotonic_ns()); }

ClockMap::ClockMap(const Cuda& cuda)
    : cuda_(cuda), stream_(cuda.make_stream()), base_(cuda.make_event()), event_(cuda.make_event()) {
  cuda.record(base_, stream_);
  cuda.synchronize(stream_);
}

void ClockMap::probe(int times) {
  for (int i = 0; i < times; ++i) {
    const double before = host_now_us();
    cuda_.record(event_, stream_);
    int code = client::CudaDriver::kNotReady;
    while (code == client::CudaDriver::kNotReady) code = cuda_.client()->event_query(event_);
    const double after = host_now_us();
    cuda_.check(code, "cuEventQuery");
    const double there = device_us(event_);
    probes_.push_back({there, before - there, after - there});
  }
}

double ClockMap::device_us(Event event) const { return cuda_.elapsed_us(base_, event); }

ClockMap::Bounds ClockMap::offset_at(double device_us, double within_us) const {
  if (probes_.empty()) throw std::logic_error("a clock map without probes");
  double lower = -std::numeric_limits<double>::infinity(), upper = -lower;
  const Probe* nearest = &probes_.front();
  for (const Probe& probe : probes_) {
    const double distance = std::abs(probe.device_us - device_us);
    if (distance < std::abs(nearest->device_us - device_us)) nearest = &probe;
    if (distance > within_us) continue;
    lower = std::max(lower, probe.lower_us);
    upper = std::min(upper, probe.upper_us);
  }
  if (std::isinf(lower)) lower = nearest->lower_us, upper = nearest->upper_us;
  // Bounds that cross by a timer's resolution still have a middle.
  return {0.5 * (lower + upper), std::abs(upper - lower) / 2};
}

}  // namespace perseus::measure
