// Latency from the device passing a boundary until the host sees it, per way of reporting progress.
#include <atomic>
#include <string>
#include <thread>

#include "clock_map.h"
#include "parts.h"
#include "shared_word.h"
#include "training/client/device_progress.h"
#include "training/clock_control/mailbox.h"

namespace perseus::measure {
namespace {

constexpr int kBlock = 100;  // boundaries between two sets of probes, 20 ms

void measure_way(Bench& bench, client::ProgressWay way) {
  const Cuda& cuda = bench.cuda;
  const std::string name(client::name_of(way));
  const Stream stream = cuda.make_stream();
  const bool by_device = way == client::ProgressWay::write_value;
  SharedWord word;
  // Host functions and the polling thread take the time themselves, when they store the position.
  const auto reached = [&word](std::uint32_t position) {
    word->position.store(position, std::memory_order_release);
    word->here.look(word->position);
  };
  auto progress =
      client::DeviceProgress::open(cuda.client(), stream, {&*word, SharedWord::bytes(), &word->position, reached}, way);
  if (!progress) return bench.figures.fact(name, "not possible: " + progress.error().message);
  if (by_device) word.watch_in_process(bench.settings.program);

  std::vector<Event> events;
  for (int i = 0; i < kBlock; ++i) events.push_back(cuda.make_event());
  ClockMap map(cuda);
  std::vector<double> here, there, uncertainty;
  std::uint32_t position = 0;
  for (int block = 0; block < bench.settings.of(15, 1); ++block) {
    const std::uint32_t first = position + 1;
    map.probe();
    for (const Event event : events) {
      cuda.spin(stream, 200);
      cuda.record(event, stream);
      if (!(*progress)->mark(++position)) throw CudaFailure(name + ": the driver refused a boundary");
    }
    const double until_us = host_now_us() + kPatience_us;
    while (word->here.last.load(std::memory_order_acquire) != position ||
           (by_device && word->there.last.load(std::memory_order_acquire) != position)) {
      if (host_now_us() > until_us) throw CudaFailure(name + ": a position did not arrive within 30 s");
      if (by_device) {
        word->here.look(word->position);
      } else {
        std::this_thread::yield();
      }
    }
    cuda.synchronize(stream);
    map.probe();
    for (int i = 0; i < kBlock; ++i) {
      const double device_us = map.device_us(events[i]), passed_us = map.host_us(device_us);
      here.push_back(1e-3 * static_cast<double>(word->here.seen_ns[first + i].load()) - passed_us);
      if (by_device) there.push_back(1e-3 * static_cast<double>(word->there.seen_ns[first + i].load()) - passed_us);
      uncertainty.push_back(map.offset_at(device_us).half_width_us);
    }
  }
  if (by_device) {
    bench.figures.add(name + ": seen by a spinning thread", "us", std::move(here));
    bench.figures.add(name + ": seen by another process", "us", std::move(there));
  } else {
    bench.figures.add(name + (way == client::ProgressWay::polling ? ": seen by the polling thread (every 0.2 ms)"
                                                                  : ": host function called"),
                      "us", std::move(here));
  }
  bench.figures.add(name + ": uncertainty of the clock map (+-)", "us", std::move(uncertainty));
}

}  // namespace

void measure_visibility(Bench& bench) {
  for (const auto way :
       {client::ProgressWay::write_value, client::ProgressWay::host_function, client::ProgressWay::polling}) {
    measure_way(bench, way);
  }
}

}  // namespace perseus::measure
