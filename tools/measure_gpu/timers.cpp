// Event resolution, and drift between the GPU's timer and CLOCK_MONOTONIC.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <set>
#include <thread>

#include "clock_map.h"
#include "parts.h"

namespace perseus::measure {
namespace {

void measure_resolution(Bench& bench) {
  const Cuda& cuda = bench.cuda;
  const Stream stream = cuda.make_stream();
  const int count = bench.settings.of(500, 50);
  std::vector<Event> events;
  for (int i = 0; i < count; ++i) events.push_back(cuda.make_event());
  cuda.spin(stream, 5000);
  for (int i = 0; i < count; ++i) {
    cuda.record(events[i], stream);
    if (i % 7 == 0) cuda.spin_cycles(stream, 100 * static_cast<std::uint64_t>(i));
  }
  cuda.synchronize(stream);
  std::set<double> distances_us;
  std::vector<double> back_to_back;
  for (int i = 1; i < count; ++i) {
    distances_us.insert(cuda.elapsed_us(events[0], events[i]));
    if ((i - 1) % 7 != 0) back_to_back.push_back(cuda.elapsed_us(events[i - 1], events[i]));
  }
  double step_us = 0;
  for (auto at = distances_us.begin(); at != distances_us.end() && std::next(at) != distances_us.end(); ++at) {
    const double step = *std::next(at) - *at;
    // Differences below 1 ns are those of the 32-bit number that CUDA returns.
    if (step > 0.001 && (step_us == 0 || step < step_us)) step_us = step;
  }
  bench.figures.fact("smallest difference between two event times", step_us, "us");
  bench.figures.add("two events with nothing between", "us", std::move(back_to_back));
}

}  // namespace

void measure_timers(Bench& bench) {
  measure_resolution(bench);

  const Cuda& cuda = bench.cuda;
  const Stream stream = cuda.make_stream();
  struct Second {
    double device_us, offset_us;
  };
  std::vector<Second> seconds;
  std::vector<double> half_widths;
  // CUDA returns distances as 32-bit numbers, so each second has a base of its own, and the bases form a chain.
  Event base = cuda.make_event();
  cuda.record(base, stream);
  cuda.synchronize(stream);
  double base_us = 0;
  for (int second = 0; second <= bench.settings.of(60, 2); ++second) {
    if (second > 0) std::this_thread::sleep_for(std::chrono::milliseconds(bench.settings.of(1000, 100)));
    const Event next = cuda.make_event();
    cuda.record(next, stream);
    cuda.synchronize(stream);
    base_us += cuda.elapsed_us(base, next);
    base = next;
    double lower = -1e300, upper = 1e300;
    const Event event = cuda.make_event();
    for (int i = 0; i < bench.settings.of(200, 20); ++i) {
      const double before = host_now_us();
      cuda.record(event, stream);
      int code = client::CudaDriver::kNotReady;
      while (code == client::CudaDriver::kNotReady) code = cuda.client()->event_query(event);
      const double after = host_now_us(), there = base_us + cuda.elapsed_us(base, event);
      cuda.check(code, "cuEventQuery");
      lower = std::max(lower, before - there);
      upper = std::min(upper, after - there);
    }
    seconds.push_back({base_us, 0.5 * (lower + upper)});
    half_widths.push_back(std::abs(upper - lower) / 2);
  }

  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const Second& s : seconds) {
    mean_x += s.device_us / static_cast<double>(seconds.size());
    mean_y += s.offset_us / static_cast<double>(seconds.size());
  }
  for (const Second& s : seconds) {
    xx += (s.device_us - mean_x) * (s.device_us - mean_x);
    xy += (s.device_us - mean_x) * (s.offset_us - mean_y);
  }
  const double slope = xy / xx;
  std::vector<double> residuals;
  for (const Second& s : seconds) {
    residuals.push_back(std::abs(s.offset_us - mean_y - slope * (s.device_us - mean_x)));
  }
  bench.figures.fact("drift of CLOCK_MONOTONIC against the GPU timer", 1e6 * slope, "ppm");
  bench.figures.fact("drift measured over", 1e-6 * (seconds.back().device_us - seconds.front().device_us), "s");
  bench.figures.add("distance of the offset from a straight line", "us", std::move(residuals));
  bench.figures.add("half width of the offset's bounds", "us", std::move(half_widths));
}

}  // namespace perseus::measure
