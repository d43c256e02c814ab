// Measures the cost of the client's hot calls through the C ABI: begin+end, set_speed with a clock that changes (for a
// helper on a simulated GPU), and set_speed without a change; then the CPU time of the client's threads. p50 and p99
// exclude the time to read the clock around each call, which a separate loop measures.
//
// usage: client_bench PERSEUS_CLOCKD
#include <fmt/format.h>
#include <perseus/perseus.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_time.h"
#include "one_f_one_b.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "training/client/call_cost.h"
#include "training/client/energy_meter.h"
#include "training/client/training_client.h"
#include "training/clock_control/clock_controller.h"

namespace {

using perseus::client::host_now_ns;

struct Percentiles {
  double p50, p99;
};

Percentiles percentiles(std::vector<double> values) {
  std::ranges::sort(values);
  return {values[values.size() / 2], values[values.size() * 99 / 100]};
}

template <class Call>
std::vector<double> timed(int times, const Call& call) {
  std::vector<double> took;
  took.reserve(static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) {
    const std::uint64_t from = perseus::client::host_now_ns();
    call(i);
    took.push_back(static_cast<double>(perseus::client::host_now_ns() - from));
  }
  return took;
}

void row(const char* what, Percentiles found, double clock_ns) {
  fmt::print("| {} | {:.0f} | {:.0f} |\n", what, std::max(found.p50 - clock_ns, 0.0),
             std::max(found.p99 - clock_ns, 0.0));
}

void sleep_until(double at_s) {
  const timespec at{static_cast<time_t>(at_s), static_cast<long>(1e9 * (at_s - std::floor(at_s)))};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {}
}

double seconds_now() { return 1e-9 * static_cast<double>(perseus::client::host_now_ns()); }

/// A chain of memory pages: each holds the index of the next, so that reads follow one another.
class PageChain {
 public:
  static constexpr int length = 8;
  PageChain() : pages_(length * page) {
    for (std::size_t i = 0; i < length; ++i) at(i) = &at((i + 5) % length) - pages_.data();
  }
  /// Reads every page of the chain.
  std::ptrdiff_t walk() const {
    std::ptrdiff_t next = 0;
    for (int i = 0; i < length; ++i) next = pages_[static_cast<std::size_t>(next)];
    return next;
  }

 private:
  static constexpr std::size_t page = 4096 / sizeof(std::ptrdiff_t);
  std::ptrdiff_t& at(std::size_t i) { return pages_[i * page + 8 * i]; }
  std::vector<std::ptrdiff_t> pages_;
};

/// Cost of memory accesses of any code in training's rhythm: address translation and one cache line of each page.
void cold_pages(double clock_ns) {
  const PageChain pages;
  std::vector<double> walks;
  std::ptrdiff_t last = 0;
  for (int i = 0; i < 400; ++i) {
    sleep_until(seconds_now() + 0.02);
    const std::uint64_t from = perseus::client::host_now_ns();
    last += pages.walk();
    walks.push_back((static_cast<double>(perseus::client::host_now_ns() - from) - clock_ns) / PageChain::length);
  }
  if (last != 0) fmt::print("the chain of pages is broken\n");
  row("touching one page, every 20 ms", percentiles(walks), 0);
}

/// The same calls in training's rhythm: the rank sleeps between them, as if waiting for a GPU or for its input, so
/// that caches and address translations are as cold as possible.
void cold_calls(perseus_client* client, perseus::clock_control::ClockController* control, double clock_ns) {
  const perseus::OneFOneB job{4, 1, 8, 0.02, 0.04, 0.01, 0.03};
  constexpr int learning = 4, steps = 24;
  std::vector<double> begins, ends, changes;
  const double origin_s = seconds_now() + 0.01;
  int step = 0;
  for (const std::vector<double>& times_s : perseus::request_times_s(job, steps, 7)) {
    const bool counted = ++step > learning;
    perseus_step_begin(client, PERSEUS_TRAIN);
    if (control != nullptr) control->begin_step();
    for (std::size_t i = 0; i < times_s.size(); ++i) {
      sleep_until(origin_s + times_s[i]);
      const std::uint64_t from = perseus::client::host_now_ns();
      if (control != nullptr) {
        control->set(perseus::Megahertz(1410 - 15 * static_cast<int>(3 * i % 8)));
        if (counted) changes.push_back(static_cast<double>(perseus::client::host_now_ns() - from));
        continue;
      }
      const int instruction = static_cast<int>(i % 2);
      if (i > 0) perseus_end(client, 1 - instruction, -1, -1);
      const std::uint64_t between = perseus::client::host_now_ns();
      if (counted && i > 0) ends.push_back(static_cast<double>(between - from));
      sleep_until(origin_s + times_s[i] + 0.002);
      const std::uint64_t again = perseus::client::host_now_ns();
      perseus_begin(client, instruction, -1, -1);
      if (counted) begins.push_back(static_cast<double>(perseus::client::host_now_ns() - again));
    }
    perseus_step_end(client);
  }
  if (control != nullptr) {
    row("a clock that changes, 1F1B of 20 and 40 ms", percentiles(changes), clock_ns);
    return;
  }
  row("begin, 1F1B of 20 and 40 ms", percentiles(begins), clock_ns);
  row("end, 1F1B of 20 and 40 ms", percentiles(ends), clock_ns);
}

/// A rank that trains on the simulated GPU for that long: share of a core that the client's own threads use.
void train(perseus::simulated_gpu::SimulatedGpu& gpu, const std::string& device, const char* helper, double seconds) {
  perseus_options options;
  perseus_options_init(&options);
  options.device = device.c_str();
  options.helper = helper;
  options.microbatches = 12;
  perseus_client* const client = perseus_start(&options);
  const std::uint64_t from = perseus::client::host_now_ns();
  perseus_statistics before{}, after{};
  before.size = after.size = sizeof(before);
  perseus_statistics_get(client, &before);
  while (static_cast<double>(perseus::client::host_now_ns() - from) * 1e-9 < seconds) {
    perseus_step_begin(client, PERSEUS_TRAIN);
    for (int i = 0; i < 24; ++i) {
      perseus_set_speed(client, i % 2, -1, -1);
      perseus_begin(client, i % 2, -1, -1);
      gpu.run(i % 2);
      perseus_end(client, i % 2, -1, -1);
    }
    perseus_step_end(client);
  }
  perseus_statistics_get(client, &after);
  const double took = static_cast<double>(perseus::client::host_now_ns() - from) * 1e-9;
  fmt::print(
      "\nown threads, training with computations of 50 and 100 ms on a counter of 100 ms: {:.3f} % of a core ({:.1f} "
      "s)\n",
      100 * (after.client_cpu_s - before.client_cpu_s) / took, took);
  fmt::print("energy of an iteration: {:.2f} J, {} intervals\n", after.last_iteration_energy_j,
             static_cast<long long>(after.samples));
  perseus_stop(client);
}

/// Processor time of dividing the counter's energy among steps, as the client does 50 times a second; two minutes of
/// steps of 1 s, computations of 2 ms, each at one of 8 clocks.
void meter() {
  perseus::client::EnergyMeter meter(2, 900, 1410);
  std::mt19937 random(1);
  std::vector<perseus::client::WorkSpan> spans;
  constexpr double seconds = 120, computation_s = 0.002;
  double now_s = 0, look_s = 0, edge_s = 0, step_s = 0;
  std::size_t steps = 0;
  const double began_s = perseus::thread_cpu_s();
  while (now_s < seconds) {
    meter.clock(now_s, 1410 - 60 * static_cast<int>(random() % 8), 0.001);
    spans.push_back({static_cast<int>(spans.size() % 2), now_s, now_s + computation_s});
    now_s += computation_s;
    if (now_s - step_s >= 1) {
      meter.step(static_cast<std::int64_t>(step_s), step_s, now_s, std::exchange(spans, {}), false);
      step_s = now_s;
    }
    for (; look_s < now_s; look_s += 0.02) {
      if (look_s >= edge_s + 0.1) {
        edge_s += 0.1;
        meter.edge({edge_s, 1e-4, 300 * edge_s});
      }
      steps += meter.take().size();
    }
  }
  fmt::print("energies of {} steps of 500 computations: {:.3f} % of a core\n", steps,
             100 * (perseus::thread_cpu_s() - began_s) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = (std::filesystem::temp_directory_path() / "perseus_bench_XXXXXX").string();
  if (argc < 2 || mkdtemp(folder.data()) == nullptr) return 64;
  perseus::simulated_gpu::SimulatedGpuSpec spec;
  for (int mhz = 1410; mhz >= 900; mhz -= 15) {
    spec.clocks.emplace_back(mhz);
    spec.blocking_power.emplace_back(80);
  }
  const std::vector<perseus::Watts> power(spec.clocks.size(), perseus::Watts(300));
  spec.computations = {{"forward", std::vector<perseus::Seconds>(power.size(), perseus::Seconds(0.05)), power},
                       {"backward", std::vector<perseus::Seconds>(power.size(), perseus::Seconds(0.1)), power}};
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto gpu = perseus::simulated_gpu::SimulatedGpu::create(folder + "/gpu", spec);
  if (!gpu) return 1;

  const double clock_ns = percentiles(timed(100000, [](int) {})).p50;
  fmt::print("reading the clock: {:.0f} ns\n\n| call | p50 [ns] | p99 [ns] |\n| --- | --- | --- |\n", clock_ns);

  perseus_options options;
  perseus_options_init(&options);
  options.device = "none";
  options.microbatches = 200;
  perseus_client* const client = perseus_start(&options);
  std::vector<double> pairs, unchanged;
  for (int step = 0; step < 200; ++step) {
    perseus_step_begin(client, PERSEUS_TRAIN);
    const auto some = timed(400, [&](int i) {
      perseus_begin(client, i % 2, -1, -1);
      perseus_end(client, i % 2, -1, -1);
    });
    pairs.insert(pairs.end(), some.begin(), some.end());
    const auto idle = timed(400, [&](int i) { perseus_set_speed(client, i % 2, -1, -1); });
    unchanged.insert(unchanged.end(), idle.begin(), idle.end());
    perseus_step_end(client);
  }
  row("begin + end", percentiles(pairs), clock_ns);
  row("set_speed, nothing changes", percentiles(unchanged), clock_ns);
  cold_calls(client, nullptr, clock_ns);
  cold_pages(clock_ns);
  perseus_statistics own{};
  own.size = sizeof(own);
  perseus_statistics_get(client, &own);
  perseus_stop(client);

  auto opened = perseus::clock_control::ClockController::start({"simulated:" + folder + "/gpu", argv[1], 5, {}});
  if (opened) {
    for (const int pause_us : {0, 200, 5000}) {
      std::vector<double> changes;
      for (int i = 0; i < (pause_us > 1000 ? 1000 : 5000); ++i) {
        const std::uint64_t until = perseus::client::host_now_ns() + static_cast<std::uint64_t>(pause_us) * 1000;
        while (perseus::client::host_now_ns() < until) {}
        const auto one = timed(1, [&](int) { (*opened)->set(perseus::Megahertz(i % 2 == 0 ? 1410 : 900)); });
        changes.push_back(one[0]);
      }
      row(fmt::format("a clock that changes, every {} us", pause_us).c_str(), percentiles(changes), clock_ns);
    }
    cold_calls(nullptr, opened->get(), clock_ns);
  } else {
    fmt::print("no clock control: {}\n", opened.error().message);
  }
  fmt::print("\nas the client says itself: begin + end {:.0f} ns, set_speed {:.0f} ns\n", own.begin_end_ns,
             own.set_speed_ns);
  if (opened) opened->reset();
  train(**gpu, "simulated:" + folder + "/gpu", argv[1], 20);
  meter();
  std::filesystem::remove_all(folder);
  return 0;
}
