// Order of boundaries: the position never goes back and is never ahead of the events recorded before it.
#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "clock_map.h"
#include "parts.h"
#include "shared_word.h"
#include "training/client/device_progress.h"

namespace perseus::measure {
namespace {

constexpr int kBatch = 250;

void check_way(Bench& bench, client::ProgressWay way, int boundaries) {
  const Cuda& cuda = bench.cuda;
  const std::string name(client::name_of(way));
  const Stream stream = cuda.make_stream();
  SharedWord word;
  const auto reached = [&word](std::uint32_t position) { word->position.store(position, std::memory_order_release); };
  auto progress =
      client::DeviceProgress::open(cuda.client(), stream, {&*word, SharedWord::bytes(), &word->position, reached}, way);
  if (!progress) return bench.figures.fact(name, "not possible: " + progress.error().message);
  const bool by_device = way == client::ProgressWay::write_value;
  if (by_device) word.watch_in_process(bench.settings.program);

  std::vector<Event> events;
  for (int i = 0; i < kBatch; ++i) events.push_back(cuda.make_event(client::CudaDriver::kEventDisableTiming));
  std::atomic<std::uint32_t> batch_start{0}, checked{0};
  std::atomic<std::int64_t> ahead{0}, looks{0};
  std::jthread checker([&](const std::stop_token& stop) {
    cuda.make_current();
    while (!stop.stop_requested()) {
      const std::uint32_t start = batch_start.load(std::memory_order_acquire);
      if (!word->here.look(word->position)) continue;
      const std::uint32_t position = word->here.last.load(std::memory_order_relaxed);
      if (position > start && position <= start + kBatch) {
        looks.fetch_add(1, std::memory_order_relaxed);
        const int done = cuda.client()->event_query(events[position - start - 1]);
        if (done != 0) ahead.fetch_add(1, std::memory_order_relaxed);
      }
      checked.store(position, std::memory_order_release);
    }
  });
  std::mt19937 random(2026);
  std::uniform_real_distribution<double> duration_us(1, 40);
  std::uint32_t position = 0;
  bool refused = false;
  for (int done = 0; done < boundaries && !refused; done += kBatch) {
    batch_start.store(position, std::memory_order_release);
    for (int i = 0; i < kBatch && !refused; ++i) {
      cuda.spin(stream, duration_us(random));
      cuda.record(events[i], stream);
      refused = !(*progress)->mark(++position);
    }
    cuda.synchronize(stream);
    // The next batch records the same events: both watchers must have seen all of this one.
    const double until_us = host_now_us() + kPatience_us;
    while (!refused && (checked.load() != position || (by_device && word->there.last.load() != position))) {
      if (host_now_us() > until_us) throw CudaFailure(name + ": a position did not arrive within 30 s");
      std::this_thread::yield();
    }
  }
  checker.request_stop();
  checker.join();
  if (refused) throw CudaFailure(name + ": the driver refused a boundary");
  bench.figures.fact(name + ", boundaries", position, "");
  bench.figures.fact(name + ", positions looked at", static_cast<double>(looks.load()), "");
  bench.figures.fact(name + ", went back",
                     static_cast<double>(word->here.backward.load() + word->there.backward.load()), "");
  bench.figures.fact(name + ", ahead of its event", static_cast<double>(ahead.load()), "");
}

}  // namespace

void measure_order(Bench& bench) {
  check_way(bench, client::ProgressWay::write_value, bench.settings.of(10'000, 500));
  check_way(bench, client::ProgressWay::host_function, bench.settings.of(2'000, 250));
  check_way(bench, client::ProgressWay::polling, bench.settings.of(2'000, 250));
}

}  // namespace perseus::measure
