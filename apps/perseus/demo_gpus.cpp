#include "demo_gpus.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <tuple>

#include "simulation/replay/kernel_state.h"
#include "simulation/replay/simulated_ranks.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;

// In the profile's own time, before --time-scale: typical of data-center GPUs, more on the way down.
constexpr Seconds kLeastSwitchLatency(0.002), kMostSwitchLatency(0.006);
constexpr std::chrono::seconds kUnlocking(5);

}  // namespace

Status DemoGpus::make_leases() const {
  // Leases on clocks serve the process that has to give a clock back: they belong to these GPUs, and are deleted with
  // them.
  const std::string leases = scratch_.file("leases");
  std::error_code error;
  fs::create_directory(leases, error);
  if (error) return Error{ErrorCode::cannot_write, fmt::format("{}: {}", leases, error.message())};
  fs::permissions(leases, fs::perms::owner_all, error);
  setenv("PERSEUS_RUNTIME_DIR", leases.c_str(), 1);
  return Ok{};
}

std::pair<Seconds, Seconds> DemoGpus::switch_latencies() const {
  if (!o_.switch_latency_ms) return {o_.time_scale * kLeastSwitchLatency, o_.time_scale * kMostSwitchLatency};
  const Seconds given(1e-3 * *o_.switch_latency_ms);
  return {given, given};
}

Status DemoGpus::make() {
  replay::SimulatedRankOptions options;
  options.blocking_power = job_.blocking_power;
  options.idle_power = 0.6 * job_.blocking_power;
  std::tie(options.least_switch_latency, options.most_switch_latency) = switch_latencies();
  const int ranks = job_.dag.num_ranks();
  for (int w = 0; w < ranks * o_.replicas; ++w) {
    simulated_gpu::SimulatedGpuSpec spec = replay::gpu_of_rank(job_.dag, w % ranks, options);
    spec.uuid = uuid_of(w);
    files_.push_back(fs::absolute(scratch_.file(fmt::format("gpu_{}", w))).string());
    auto gpu = simulated_gpu::SimulatedGpu::create(files_.back(), spec);
    if (!gpu) return gpu.error();
    gpus_.push_back(*std::move(gpu));
    limits_.push_back(spec.power_limit);
  }
  return Ok{};
}

std::string DemoGpus::uuid_of(int worker) { return fmt::format("GPU-{:08x}-5131-4000-8000-{:012x}", getpid(), worker); }

void DemoGpus::cap(int replica, Watts limit) {
  const int ranks = job_.dag.num_ranks();
  for (int rank = 0; rank < ranks; ++rank) gpus_[replica * ranks + rank]->set_power_limit(limit);
}

void DemoGpus::uncap(int replica) {
  const int ranks = job_.dag.num_ranks();
  for (int w = replica * ranks; w < (replica + 1) * ranks; ++w) gpus_[w]->set_power_limit(limits_[w]);
}

Status DemoGpus::wait_until_unlocked() const {
  std::string locked;
  const auto until = std::chrono::steady_clock::now() + kUnlocking;
  do {
    locked.clear();
    for (std::size_t w = 0; w < gpus_.size(); ++w) {
      if (gpus_[w]->locked()) locked += fmt::format(" {}", w);
    }
    if (locked.empty()) return Ok{};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (std::chrono::steady_clock::now() < until);
  return Error{ErrorCode::unavailable,
               fmt::format("clocks are still locked on the GPUs of workers{}: their helpers do not end", locked)};
}

std::vector<HelperProcess> DemoGpus::stopped_helpers() const {
  std::vector<HelperProcess> stopped;
  for (const pid_t pid : replay::all_processes()) {
    const auto state = replay::kernel_state_of(pid);
    if (!state || !state->stopped || !state->name.starts_with("clockd-")) continue;
    const std::vector<std::string> arguments = replay::arguments_of(pid);
    for (std::size_t w = 0; w < files_.size(); ++w) {
      if (std::ranges::find(arguments, "simulated:" + files_[w]) == arguments.end()) continue;
      stopped.push_back({static_cast<int>(w), pid, state->name == "clockd-super"});
    }
  }
  return stopped;
}

}  // namespace perseus::cli
