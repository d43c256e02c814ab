// What a boundary costs the stream: time that the device adds between two back-to-back kernels.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parts.h"
#include "shared_word.h"
#include "training/client/device_progress.h"

namespace perseus::measure {
namespace {

constexpr int kKernels = 150;              // with four operations each they fit in a launch queue of 1,024
constexpr std::uint64_t kCycles = 30'000;  // about 20 us
constexpr double kGate_us = 10'000;        // time in which the host enqueues all of them

}  // namespace

void measure_boundary_cost(Bench& bench) {
  const Cuda& cuda = bench.cuda;
  const Stream stream = cuda.make_stream();
  SharedWord word;
  std::uint32_t position = 0;
  std::vector<Event> events;
  for (int i = 0; i < 2 * kKernels; ++i) events.push_back(cuda.make_event());
  std::vector<std::unique_ptr<client::DeviceProgress>> ways;

  struct Variant {
    std::string name;
    std::function<void(int)> before, after;
    std::vector<double> per_boundary_us;
  };
  const auto nothing = [](int) {};
  const auto begin = [&](int i) { cuda.record(events[2 * i], stream); };
  const auto end = [&](int i) { cuda.record(events[2 * i + 1], stream); };
  std::vector<Variant> variants{
      {"nothing", nothing, nothing, {}}, {"one event", nothing, end, {}}, {"two events", begin, end, {}}};
  for (const auto way :
       {client::ProgressWay::write_value, client::ProgressWay::host_function, client::ProgressWay::polling}) {
    auto opened = client::DeviceProgress::open(
        cuda.client(), stream, {&*word, SharedWord::bytes(), &word->position, [](std::uint32_t) {}}, way);
    if (!opened) {
      bench.figures.fact("client boundary by " + std::string(client::name_of(way)),
                         "not possible: " + opened.error().message);
      continue;
    }
    client::DeviceProgress* const progress = ways.emplace_back(std::move(*opened)).get();
    const auto mark = [&position, progress, end](int i) {
      end(i);
      (void)progress->mark(++position);
    };
    variants.push_back({"one event and " + std::string(client::name_of(way)), nothing, mark, {}});
    variants.push_back({"two events and " + std::string(client::name_of(way)), begin, mark, {}});
  }

  const Event first = cuda.make_event(), last = cuda.make_event();
  std::vector<double> baseline;
  int late = 0;
  for (int run = 0; run < bench.settings.of(40, 2); ++run) {
    double nothing_us = 0;
    for (Variant& variant : variants) {
      cuda.spin(stream, kGate_us);
      cuda.record(first, stream);
      for (int i = 0; i < kKernels; ++i) {
        variant.before(i);
        cuda.spin_cycles(stream, kCycles);
        variant.after(i);
      }
      cuda.record(last, stream);
      if (cuda.client()->event_query(first) == client::CudaDriver::kSuccess) ++late;
      cuda.synchronize(stream);
      const double total_us = cuda.elapsed_us(first, last);
      if (&variant == &variants.front()) {
        nothing_us = total_us;
        baseline.push_back(total_us / kKernels);
      } else {
        variant.per_boundary_us.push_back((total_us - nothing_us) / kKernels);
      }
    }
  }
  // Its kernels may have waited for the host.
  bench.figures.fact("runs in which the host had not enqueued everything when the device began",
                     std::to_string(late) + " of " + std::to_string(baseline.size() * variants.size()));
  bench.figures.add("kernel with nothing between (period)", "us", std::move(baseline));
  for (std::size_t i = 1; i < variants.size(); ++i) {
    bench.figures.add(variants[i].name + ", added per boundary", "us", std::move(variants[i].per_boundary_us));
  }
}

}  // namespace perseus::measure
