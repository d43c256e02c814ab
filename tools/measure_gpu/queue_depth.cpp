// How many launches a stream takes before a launch blocks the host.
#include <functional>
#include <string>
#include <utility>

#include "clock_map.h"
#include "parts.h"

namespace perseus::measure {
namespace {

constexpr int kMost = 5000;
constexpr double kGate_us = 150'000, kBlocked_us = 10'000;

}  // namespace

void measure_queue_depth(Bench& bench) {
  const Cuda& cuda = bench.cuda;
  const Stream stream = cuda.make_stream();
  const Event event = cuda.make_event();
  const std::pair<std::string, std::function<void()>> kinds[] = {
      {"kernels", [&] { cuda.spin(stream, 20); }},
      {"kernels with an event each",
       [&] {
         cuda.spin(stream, 20);
         cuda.record(event, stream);
       }},
  };
  for (const auto& [name, launch] : kinds) {
    const double began_us = host_now_us();
    // One kernel, so that no slot of the queue is freed meanwhile; simulated kernels are shorter.
    const double gate_us = cuda.simulated() ? 40'000 : kGate_us;
    for (double sum_us = 0; sum_us < kGate_us; sum_us += gate_us) cuda.spin(stream, gate_us);
    std::string answer = "none blocked within " + std::to_string(kMost);
    for (int i = 1; i <= kMost; ++i) {
      const double before_us = host_now_us();
      launch();
      const double now_us = host_now_us();
      if (now_us - before_us > kBlocked_us) {
        answer = std::to_string(i);
        break;
      }
      if (now_us - began_us > kGate_us) {
        answer = "none blocked within " + std::to_string(i) + ", then the stream ran on";
        break;
      }
    }
    cuda.synchronize(stream);
    bench.figures.fact(name + ": first launch that blocked the host (more than 10 ms)", answer);
  }
}

}  // namespace perseus::measure
