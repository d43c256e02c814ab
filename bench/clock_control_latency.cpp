// Measures the cost of clock control: the call in the training process, the latency until the device has the clock, CPU
// time and memory of the helper. docs/measurements/client.md has the figures.
//
// usage: clock_control_latency [SETS [CASE]]    SETS: clock requests in each case, default 1000; CASE: runs only cases
//                                               whose name contains CASE
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "one_f_one_b.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "training/clock_control/clock_controller.h"
#include "training/clock_control/mailbox.h"
#include "training/clock_control/request_rhythm.h"

namespace {

using namespace perseus;

simulated_gpu::SimulatedGpuSpec gpu_with_eight_clocks() {
  simulated_gpu::SimulatedGpuSpec spec;
  for (int mhz = 1400; mhz > 600; mhz -= 100) spec.clocks.emplace_back(mhz);
  spec.computations = {{"forward", std::vector<Seconds>(8, Seconds(1)), std::vector<Watts>(8, Watts(300))}};
  spec.blocking_power.assign(8, Watts(80));
  return spec;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

constexpr int kLearning = 4;  ///< number of first steps that are not counted

/// Waits like a rank that waits for its stream: CUDA spins by default.
void spin_until(std::int64_t at_ns) {
  while (clock_control::monotonic_ns() < at_ns) {}
}

void sleep_until(std::int64_t at_ns) {
  const timespec at{at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {}
}

/// Threads that only count, like a training process that keeps its cores busy.
class BusyCores {
 public:
  explicit BusyCores(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
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

/// Number of times that the process went to sleep: one for each check of the helper.
long sleeps_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string word; file >> word;) {
    if (long count = 0; word == "voluntary_ctxt_switches:" && file >> count) return count;
  }
  return 0;
}

std::unique_ptr<clock_control::ClockController> start(const std::string& gpu) {
  auto controller = clock_control::ClockController::start({gpu, "", 30, {}});
  if (controller) return std::move(*controller);
  fmt::print(stderr, "{}\n", controller.error().message);
  std::exit(1);
}

/// Subtracts the time to read the clock, which each call's time includes.
void print_row(const char* name, std::vector<double> calls_ns, const std::vector<double>& clock_ns,
               const clock_control::ControlStatistics& before, const clock_control::ControlStatistics& now,
               double took_s) {
  const double reading_ns = quantile(clock_ns, 0.5);
  for (double& call : calls_ns) call = std::max(call - reading_ns, 0.0);
  const double cpu_s = now.helper_cpu_s - before.helper_cpu_s;
  const auto applied = static_cast<double>(std::max<std::int64_t>(now.applied - before.applied, 1));
  const auto requested = static_cast<double>(std::max<std::int64_t>(now.requested - before.requested, 1));
  fmt::print("| {} | {:.2f} | {:.2f} | {:.3f} | {:.3f} | {:.1f} | {:.2f} | {:.1f} | {} of {} |\n", name,
             1e-3 * quantile(calls_ns, 0.5), 1e-3 * quantile(calls_ns, 0.99), 1e3 * now.request_to_device_p50_s,
             1e3 * now.request_to_device_p99_s, 1e6 * cpu_s / applied, 100 * cpu_s / took_s,
             100 * static_cast<double>(now.woken - before.woken) / requested, now.applied - before.applied,
             now.requested - before.requested);
  (void)std::fflush(stdout);
}

/// Requests a clock about every `pause_us`; measures the time of each call.
void measure(const std::string& gpu, const char* name, int sets, int pause_us, bool busy) {
  const auto controller = start(gpu);
  const clock_control::ControlStatistics before = controller->statistics();
  const std::int64_t began_ns = clock_control::monotonic_ns();
  const BusyCores cores(busy ? std::thread::hardware_concurrency() : 0);
  std::mt19937 random(7);
  std::vector<double> calls_ns, clock_ns;
  for (int i = 0; i < sets; ++i) {
    if (pause_us > 0)
      ::usleep(static_cast<unsigned>(pause_us / 2) + static_cast<unsigned>(random()) % static_cast<unsigned>(pause_us));
    const std::int64_t earlier = clock_control::monotonic_ns();
    const std::int64_t began = clock_control::monotonic_ns();
    controller->set(Megahertz(700 + 100 * (i % 8)));
    const std::int64_t ended = clock_control::monotonic_ns();
    clock_ns.push_back(static_cast<double>(began - earlier));
    calls_ns.push_back(static_cast<double>(ended - began));
  }
  ::usleep(20'000);
  print_row(name, std::move(calls_ns), clock_ns, before, controller->statistics(),
            1e-9 * static_cast<double>(clock_control::monotonic_ns() - began_ns));
}

/// A rank that trains: the same clocks step after step, at moments of a pipeline with jitter. It sleeps while it
/// waits, so that its own caches are as cold as possible; with all cores busy, it spins.
void train(const std::string& gpu, const char* name, int sets, const OneFOneB& job, bool busy) {
  const auto controller = start(gpu);
  const BusyCores others(busy ? std::thread::hardware_concurrency() - 1 : 0);
  const int steps = kLearning + std::max(sets / (2 * job.microbatches), 1);
  std::vector<double> calls_ns, clock_ns;
  clock_control::ControlStatistics before;
  std::int64_t measured_from_ns = 0;
  const std::int64_t origin_ns = clock_control::monotonic_ns() + 10'000'000;
  int step = 0;
  for (const std::vector<double>& times_s : request_times_s(job, steps, 7)) {
    if (step++ == kLearning) {
      before = controller->statistics();
      measured_from_ns = clock_control::monotonic_ns();
    }
    controller->begin_step();
    for (std::size_t i = 0; i < times_s.size(); ++i) {
      const std::int64_t at_ns = origin_ns + static_cast<std::int64_t>(1e9 * times_s[i]);
      busy ? spin_until(at_ns) : sleep_until(at_ns);
      const std::int64_t earlier = clock_control::monotonic_ns();
      const std::int64_t began = clock_control::monotonic_ns();
      controller->set(Megahertz(700 + 100 * static_cast<int>(3 * i % 8)));
      const std::int64_t ended = clock_control::monotonic_ns();
      if (step <= kLearning) continue;
      clock_ns.push_back(static_cast<double>(began - earlier));
      calls_ns.push_back(static_cast<double>(ended - began));
    }
  }
  const double took_s = 1e-9 * static_cast<double>(clock_control::monotonic_ns() - measured_from_ns);
  ::usleep(20'000);
  print_row(name, std::move(calls_ns), clock_ns, before, controller->statistics(), took_s);
}

/// A host that has queued a whole step when its device begins it. The main thread acts as the device: it writes its
/// position, which wakes no thread. Prints how long after that the helper set the clock, and the cost of its checks.
void train_ahead(const std::string& gpu, const char* name, int sets, const OneFOneB& job, bool busy) {
  const auto controller = start(gpu);
  const BusyCores others(busy ? std::thread::hardware_concurrency() - 1 : 0);
  std::atomic<std::uint32_t>& position = *controller->share_memory().position;
  const int steps = kLearning + std::max(sets / (2 * job.microbatches), 1);
  std::vector<std::int64_t> reached_ns{0};  // by position, from 1
  std::uint32_t queued = 0;
  std::uint32_t counted_from = 0;
  long slept = 0;
  clock_control::ControlStatistics before;
  std::int64_t measured_from_ns = 0;
  const std::int64_t origin_ns = clock_control::monotonic_ns() + 10'000'000;
  int step = 0;
  for (const std::vector<double>& times_s : request_times_s(job, steps, 7)) {
    if (step++ == kLearning) {
      before = controller->statistics();
      measured_from_ns = clock_control::monotonic_ns();
      counted_from = queued + 1;
      slept = sleeps_of(controller->helper_pid());
    }
    controller->begin_step();
    for (std::size_t i = 0; i < times_s.size(); ++i) {
      controller->set_from(++queued, Megahertz(700 + 100 * static_cast<int>(3 * i % 8)));
    }
    for (const double time_s : times_s) {
      const std::int64_t at_ns = origin_ns + static_cast<std::int64_t>(1e9 * time_s);
      busy ? spin_until(at_ns) : sleep_until(at_ns);
      reached_ns.push_back(clock_control::monotonic_ns());
      position.store(static_cast<std::uint32_t>(reached_ns.size() - 1), std::memory_order_release);
    }
  }
  const double took_s = 1e-9 * static_cast<double>(clock_control::monotonic_ns() - measured_from_ns);
  slept = sleeps_of(controller->helper_pid()) - slept;
  ::usleep(20'000);
  std::vector<double> late_ms;
  std::uint64_t read = 0;
  controller->applied_since(read, [&](const clock_control::AppliedClock& applied) {
    if (applied.position < counted_from) return;
    late_ms.push_back(1e-6 * static_cast<double>(applied.call_ns - reached_ns[applied.position]));
  });
  const clock_control::ControlStatistics now = controller->statistics();
  const double cpu_s = now.helper_cpu_s - before.helper_cpu_s;
  const auto applied = static_cast<double>(std::max<std::int64_t>(now.applied - before.applied, 1));
  fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} | {:.1f} | {:.1f} | {:.2f} | {} of {} |\n", name, quantile(late_ms, 0.5),
             quantile(late_ms, 0.9), quantile(late_ms, 0.99), static_cast<double>(slept) / applied,
             1e6 * cpu_s / applied, 100 * cpu_s / took_s, now.applied - before.applied,
             now.requested - before.requested);
  (void)std::fflush(stdout);
}

/// The same under a manual clock, without a helper: a nap ends 15 us late on average, a check takes 6 us.
void look_by_hand(const char* name, const OneFOneB& job) {
  std::mt19937 random(3);
  std::exponential_distribution<double> visible_ns(1e-4), wake_ns(1.0 / 15e3);
  clock_control::RequestRhythm rhythm;
  std::int64_t now_ns = 0, last_ns = 0, looked_ns = 0;
  std::int64_t looks = 0;
  std::vector<double> late_us;
  int step = 0;
  for (const std::vector<double>& times_s : request_times_s(job, 200, 7)) {
    ++step;
    for (std::uint32_t i = 0; i < times_s.size(); ++i) {
      const auto reached_ns = static_cast<std::int64_t>(1e9 * (1 + times_s[i]) + visible_ns(random));
      for (; now_ns<reached_ns; looks += step> kLearning ? 1 : 0) {
        const clock_control::Rest rest =
            clock_control::doze_until(rhythm.next(i), last_ns, now_ns, last_ns == 0 ? reached_ns : -1);
        looked_ns = now_ns;
        now_ns += rest.limit_ns + 6000 + static_cast<std::int64_t>(wake_ns(random));
      }
      rhythm.requested(i, now_ns, looked_ns);
      last_ns = now_ns;
      if (step > kLearning) late_us.push_back(1e-3 * static_cast<double>(now_ns - reached_ns));
    }
  }
  fmt::print("| {} | {:.1f} | {:.0f} | {:.0f} | {:.0f} |\n", name,
             static_cast<double>(looks) / static_cast<double>(late_us.size()), quantile(late_us, 0.5),
             quantile(late_us, 0.9), quantile(late_us, 0.99));
}

}  // namespace

int main(int argc, char** argv) {
  const int sets = argc > 1 ? std::max(std::atoi(argv[1]), 10) : 1000;
  std::string folder = (std::filesystem::temp_directory_path() / "perseus-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  ::setenv("PERSEUS_RUNTIME_DIR", folder.c_str(), 1);
  auto made = simulated_gpu::SimulatedGpu::create(folder + "/gpu", gpu_with_eight_clocks());
  if (!made) return fmt::print(stderr, "{}\n", made.error().message), 1;
  const std::string gpu = "simulated:" + folder + "/gpu";

  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  {
    std::vector<double> starts_s, stops_s;
    double supervisor_mb = 0, worker_mb = 0;
    bool preferred = false;
    for (int i = 0; i < 11; ++i) {
      const std::int64_t began = clock_control::monotonic_ns();
      auto controller = start(gpu);
      starts_s.push_back(1e-9 * static_cast<double>(clock_control::monotonic_ns() - began));
      controller->set(Megahertz(700));
      supervisor_mb = megabytes(controller->supervisor_pid());
      worker_mb = megabytes(controller->helper_pid());
      preferred = (::sched_getscheduler(controller->helper_pid()) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
      const std::int64_t ends = clock_control::monotonic_ns();
      controller.reset();
      stops_s.push_back(1e-9 * static_cast<double>(clock_control::monotonic_ns() - ends));
    }
    fmt::print(
        "{} cores, load {:.1f} before this began, helper {} real-time priority; start {:.1f} ms, stop {:.1f} ms "
        "(medians of 11); memory of supervisor {:.1f} MB, worker {:.1f} MB\n\n",
        std::thread::hardware_concurrency(), load, preferred ? "with" : "without", 1e3 * quantile(starts_s, 0.5),
        1e3 * quantile(stops_s, 0.5), supervisor_mb, worker_mb);
  }
  fmt::print(
      "| clocks asked for | set() p50 us | p99 us | to the device p50 ms | p99 ms | helper's processor time per clock "
      "us | % of a core | % woken | applied |\n|---|---|---|---|---|---|---|---|---|\n");
  const std::string_view only = argc > 2 ? argv[2] : "";
  const auto wanted = [&](const char* name) { return std::string_view(name).find(only) != std::string_view::npos; };
  struct Case {
    const char* name;
    int pause_us;
    bool busy;
  };
  for (const Case& c : {Case{"one after the other", 0, false}, Case{"at random, every 10 ms or so", 10'000, false},
                        Case{"at random, every 10 ms or so, all cores busy", 10'000, true},
                        Case{"at random, every 1 ms or so, all cores busy", 1'000, true}}) {
    if (wanted(c.name)) measure(gpu, c.name, c.pause_us == 0 ? 100 * sets : sets, c.pause_us, c.busy);
  }
  struct Training {
    const char* name;
    OneFOneB job;
    bool busy;
  };
  const OneFOneB tenth{4, 1, 8, 0.01, 0.01, 0.01, 0.01}, shortest{4, 1, 8, 0.02, 0.04, 0.01, 0.03},
      longer{4, 1, 8, 0.05, 0.1, 0.01, 0.05};
  for (const Training& t :
       {Training{"1F1B, all of 10 ms", tenth, false}, Training{"1F1B, 20 and 40 ms", shortest, false},
        Training{"1F1B, 50 and 100 ms", longer, false}, Training{"1F1B, all of 10 ms, all cores busy", tenth, true},
        Training{"1F1B, 20 and 40 ms, all cores busy", shortest, true},
        Training{"1F1B, 50 and 100 ms, all cores busy", longer, true}}) {
    if (wanted(t.name)) train(gpu, t.name, sets, t.job, t.busy);
  }
  fmt::print(
      "\n| the device writes its position, 1F1B | until the helper's call p50 ms | p90 ms | p99 ms | looks per "
      "clock | helper's processor time per clock us | % of a core | applied |\n|---|---|---|---|---|---|---|---|\n");
  for (const Training& t :
       {Training{"ahead: all of 10 ms", tenth, false}, Training{"ahead: 20 and 40 ms", shortest, false},
        Training{"ahead: 50 and 100 ms", longer, false},
        Training{"ahead: 20 and 40 ms, all cores busy", shortest, true}}) {
    if (wanted(t.name)) train_ahead(gpu, t.name, sets, t.job, t.busy);
  }
  fmt::print(
      "\n| under a hand-turned clock, 1F1B | looks per clock | until seen p50 us | p90 us | p99 us |\n"
      "|---|---|---|---|---|\n");
  for (const auto& [name, jitter] : {std::pair{"by hand: 20 and 40 ms, jitter 0.05 %", 0.0005},
                                     std::pair{"by hand: 20 and 40 ms, jitter 0.3 %", 0.003},
                                     std::pair{"by hand: 20 and 40 ms, jitter 1 %", 0.01}}) {
    OneFOneB job = shortest;
    job.jitter = jitter;
    if (wanted(name)) look_by_hand(name, job);
  }
  std::filesystem::remove_all(folder);
  return 0;
}
