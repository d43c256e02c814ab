// What clock control costs: the call in the training process, until the device has been told, the helper's processor
// time and memory. docs/measurements/client.md has the figures.
//
// usage: clock_control_latency [SETS]    clocks asked for in each case, 1000 unless given
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "clock_control/clock_controller.h"
#include "clock_control/mailbox.h"
#include "simulated_gpu/simulated_gpu.h"

namespace {

using namespace perseus;

SimulatedGpuSpec gpu_with_eight_clocks() {
  SimulatedGpuSpec spec;
  for (int mhz = 1400; mhz > 600; mhz -= 100) spec.clocks.emplace_back(mhz);
  spec.computations = {{"forward", std::vector<Seconds>(8, Seconds(1)), std::vector<Watts>(8, Watts(300))}};
  spec.blocking_power.assign(8, Watts(80));
  return spec;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

/// As many threads as cores that only count, as a training process that keeps them busy.
class BusyCores {
 public:
  explicit BusyCores(bool busy) {
    for (unsigned i = 0; busy && i < std::thread::hardware_concurrency(); ++i) {
      threads_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) {}
      });
    }
  }
  ~BusyCores() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Proportional set size: memory shared with others counts in part.
double megabytes(int pid) {
  std::ifstream file(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string word; file >> word;) {
    if (double kb = 0; word == "Pss:" && file >> kb) return kb / 1024;
  }
  return 0;
}

std::unique_ptr<ClockController> start(const std::string& gpu) {
  auto controller = ClockController::start({gpu, "", 30});
  if (controller) return std::move(*controller);
  fmt::print(stderr, "{}\n", controller.error().message);
  std::exit(1);
}

/// A clock every `pause_us` or so; how long each call took.
void measure(const std::string& gpu, const char* name, int sets, int pause_us, bool busy) {
  const auto controller = start(gpu);
  const double started_cpu_s = controller->statistics().helper_cpu_s;
  const BusyCores cores(busy);
  std::mt19937 random(7);
  std::vector<double> calls_ns, clock_ns;
  for (int i = 0; i < sets; ++i) {
    if (pause_us > 0)
      ::usleep(static_cast<unsigned>(pause_us / 2) + static_cast<unsigned>(random()) % static_cast<unsigned>(pause_us));
    const std::int64_t before = monotonic_ns();
    const std::int64_t began = monotonic_ns();
    controller->set(Megahertz(700 + 100 * (i % 8)));
    const std::int64_t ended = monotonic_ns();
    clock_ns.push_back(static_cast<double>(began - before));
    calls_ns.push_back(static_cast<double>(ended - began));
  }
  const double reading_ns = quantile(clock_ns, 0.5);
  for (double& call : calls_ns) call = std::max(call - reading_ns, 0.0);
  ::usleep(20'000);
  const ControlStatistics now = controller->statistics();
  fmt::print("| {} | {:.2f} | {:.2f} | {:.3f} | {:.3f} | {:.1f} | {} of {} |\n", name, 1e-3 * quantile(calls_ns, 0.5),
             1e-3 * quantile(calls_ns, 0.99), 1e3 * now.request_to_device_p50_s, 1e3 * now.request_to_device_p99_s,
             1e6 * (now.helper_cpu_s - started_cpu_s) / static_cast<double>(now.applied), now.applied, now.requested);
}

}  // namespace

int main(int argc, char** argv) {
  const int sets = argc > 1 ? std::max(std::atoi(argv[1]), 10) : 1000;
  std::string folder = (std::filesystem::temp_directory_path() / "perseus-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  ::setenv("PERSEUS_RUNTIME_DIR", folder.c_str(), 1);
  auto made = SimulatedGpu::create(folder + "/gpu", gpu_with_eight_clocks());
  if (!made) return fmt::print(stderr, "{}\n", made.error().message), 1;
  const std::string gpu = "simulated:" + folder + "/gpu";

  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  {
    std::vector<double> starts_s, stops_s;
    double supervisor_mb = 0, worker_mb = 0;
    bool preferred = false;
    for (int i = 0; i < 11; ++i) {
      const std::int64_t began = monotonic_ns();
      auto controller = start(gpu);
      starts_s.push_back(1e-9 * static_cast<double>(monotonic_ns() - began));
      controller->set(Megahertz(700));
      supervisor_mb = megabytes(controller->supervisor_pid());
      worker_mb = megabytes(controller->helper_pid());
      preferred = (::sched_getscheduler(controller->helper_pid()) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
      const std::int64_t ends = monotonic_ns();
      controller.reset();
      stops_s.push_back(1e-9 * static_cast<double>(monotonic_ns() - ends));
    }
    fmt::print(
        "{} cores, load {:.1f} before this began, helper {} real-time priority; start {:.1f} ms, stop {:.1f} ms "
        "(medians of 11); memory of supervisor {:.1f} MB, worker {:.1f} MB\n\n",
        std::thread::hardware_concurrency(), load, preferred ? "with" : "without", 1e3 * quantile(starts_s, 0.5),
        1e3 * quantile(stops_s, 0.5), supervisor_mb, worker_mb);
  }
  fmt::print(
      "| clocks asked for | set() p50 us | p99 us | to the device p50 ms | p99 ms | helper's processor time per clock "
      "us "
      "| told |\n|---|---|---|---|---|---|---|\n");
  measure(gpu, "one after the other", 100 * sets, 0, false);
  measure(gpu, "every 10 ms", sets, 10'000, false);
  measure(gpu, "every 10 ms, all cores busy", sets, 10'000, true);
  measure(gpu, "every 1 ms, all cores busy", sets, 1'000, true);
  std::filesystem::remove_all(folder);
  return 0;
}
