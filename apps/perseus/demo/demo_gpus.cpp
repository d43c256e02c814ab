#include "demo/demo_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <tuple>

#include "command_line/command.h"
#include "simulation/replay/simulated_ranks.h"
#include "training/clock_control/lease.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;

// In the profile's own time, before --time-scale: typical of data-center GPUs, more on the way down.
constexpr Seconds kLeastSwitchLatency(0.002), kMostSwitchLatency(0.006);
constexpr std::chrono::milliseconds kBetweenLooks(10);
constexpr double kBetweenRestores_s = 1;

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
  if (!o_.switch_latency_ms) return {job_.time_scale * kLeastSwitchLatency, job_.time_scale * kMostSwitchLatency};
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
    spec.uuid = uuid_of(o_.first_gpu + w);
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

replay::UnlockWait::Seen DemoGpus::seen() const {
  replay::UnlockWait::Seen seen;
  for (const auto& [worker, pid, state] : helpers()) seen.helpers.push_back({pid, state.state, state.cpu_ticks});
  for (std::size_t w = 0; w < gpus_.size(); ++w) {
    if (gpus_[w]->locked()) seen.locked.push_back(static_cast<int>(w));
  }
  return seen;
}

Status DemoGpus::wait_until_unlocked() const {
  using Advice = replay::UnlockWait::Advice;
  const auto began = std::chrono::steady_clock::now();
  replay::UnlockWait wait;
  double restored_s = -kBetweenRestores_s;
  while (true) {
    const double now_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const replay::UnlockWait::Seen seen = this->seen();
    const Advice advice = wait.look(now_s, seen);
    if (advice == Advice::done) return Ok{};
    if (advice == Advice::stuck) {
      return Error{
          ErrorCode::unavailable,
          fmt::format("clocks are still locked on the GPUs of workers {}, and nothing has changed for {:g} s; "
                      "of their helpers there is {}",
                      fmt::join(seen.locked, ", "), replay::UnlockWait::kSilence_s, replay::text_of(seen.helpers))};
    }
    if (advice == Advice::give_back && now_s - restored_s >= kBetweenRestores_s) {
      restored_s = now_s;
      restore_expired();
    }
    continue_stopped_helpers();
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void DemoGpus::restore_expired() {
  for (const clock_control::ExpiredLease& lease : clock_control::restore_expired_leases()) {
    note(lease.restored ? "a helper was killed before it could give its clock back; the demo has given it back"
                        : fmt::format("a helper was killed, and its clock cannot be given back: {}", text_of(lease)));
  }
}

std::vector<DemoGpus::FoundHelper> DemoGpus::helpers() const {
  std::vector<FoundHelper> found;
  for (const pid_t pid : replay::all_processes()) {
    auto state = replay::kernel_state_of(pid);
    if (!state || state->state == 'Z' || state->name.find("clockd") == std::string::npos) continue;
    const std::vector<std::string> arguments = replay::arguments_of(pid);
    for (std::size_t w = 0; w < files_.size(); ++w) {
      if (std::ranges::find(arguments, "simulated:" + files_[w]) == arguments.end()) continue;
      found.push_back({static_cast<int>(w), pid, *state});
    }
  }
  return found;
}

std::vector<HelperProcess> DemoGpus::stopped_helpers() const {
  std::vector<HelperProcess> stopped;
  for (const auto& [worker, pid, state] : helpers()) {
    if (!state.stopped || !state.name.starts_with("clockd-")) continue;
    stopped.push_back({worker, pid, state.name == "clockd-super"});
  }
  return stopped;
}

void DemoGpus::kill_helpers() const {
  for (const FoundHelper& helper : helpers()) kill(helper.pid, SIGKILL);
}

void DemoGpus::continue_stopped_helpers() const {
  for (const HelperProcess& helper : stopped_helpers()) kill(helper.pid, SIGCONT);
}

}  // namespace perseus::cli
