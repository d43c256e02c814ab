#include "training/client/rank_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "training/client/background_thread.h"
#include "training/client/call_cost.h"
#include "training/device/ceiling_gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::client {
namespace {

constexpr int kOpenAgain = 3;  ///< the driver's only failure may come at the start
constexpr std::chrono::milliseconds kOpenPause(100);
constexpr double kLatencyPatience_s = 0.15;  ///< wait for the arrival of a clock
constexpr double kLatencyLimit_s = 1;        ///< for all clock changes measured at the start
constexpr std::int64_t kLatencySamples = 6;

/// A device given by CUDA's number: "cuda:1".
constexpr std::string_view kCudaDevice = "cuda:";
/// The rank's own GPU, whichever that is, through zeusd.
constexpr std::string_view kByZeusd = "zeusd:";

bool may_pass(device::DeviceFault fault) {
  return fault == device::DeviceFault::busy || fault == device::DeviceFault::lost;
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

/// The selector of the rank's GPU; "none": there is none, or more than one is possible, which is logged.
std::string choose_gpu(const ClientOptions& options, const device::CudaView& cuda, RankDevice& opened,
                       Complaints& complaints) {
  device::DeviceRequest request{std::nullopt, options.rank};
  if (options.device.starts_with(kCudaDevice)) {
    request.cuda_number = std::atoi(options.device.c_str() + kCudaDevice.size());
  }
  const std::vector<device::ListedGpu> gpus = device::list_gpus();
  device::DeviceChoice choice = device::choose_device(
      gpus, cuda, [](const char* name) { return std::getenv(name); }, request);
  if (const auto [kind, which] = device::split_selector(choice.selector); !which.empty()) {
    return options.device == kByZeusd && kind == "nvml" ? std::string(kByZeusd).append(which) : choice.selector;
  }
  if (choice.why_not.empty()) {
    choice.why_not = gpus.empty() ? device::why_no_gpu(device::gpu_traces())
                                  : "the environment hides every GPU (CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES)";
  }
  opened.no_control = choice.why_not;
  complaints.raise(Cause::device, fmt::format("no energy is measured and no clock is set: {}", choice.why_not));
  return "none";
}

/// What a user must know to read the figures. False: the GPU is divided, and a clock of one slice would be all slices'.
bool remark_conditions(device::Gpu& gpu, RankFacts& facts, Complaints& complaints) {
  const auto conditions = gpu.conditions();
  if (!conditions) return true;
  facts.whole_module = conditions->whole_module;
  const auto say = [&](const std::string& text) {
    complaints.say(LogLevel::warning, fmt::format("{}: {}", device::stable_id(gpu.identity()), text));
  };
  if (conditions->mig) say("the GPU is divided (MIG): energies are those of the whole GPU, and no clock is set");
  if (conditions->whole_module) {
    say("power and energy are those of the module, CPU included: a saving in percent is one of the module");
  }
  if (!conditions->clocks_source.empty()) {
    say(fmt::format("the driver lists no clocks: steps of 15 MHz within its range are used ({})",
                    conditions->clocks_source));
  }
  return !conditions->mig;
}

/// False: the GPU cannot be used, its clock cannot be set, or none of its clocks is known.
bool open_gpu(const ClientOptions& options, const std::string& selector, RankDevice& opened, Complaints& complaints) {
  auto gpu = device::open_gpu(selector);
  for (int again = 0; !gpu && may_pass(gpu.error().fault) && again < kOpenAgain; ++again) {
    std::this_thread::sleep_for(kOpenPause);
    gpu = device::open_gpu(selector);
  }
  if (!gpu) {
    opened.no_control = gpu.error().message;
    complaints.raise(Cause::device, fmt::format("{}: {}; training runs without measuring energy or setting clocks",
                                                selector, gpu.error().message));
    return false;
  }
  // Clocks above the ceiling are not planned either. The controller reports a ceiling that cannot be read.
  const auto ceiling = device::ceiling_of_environment();
  opened.gpu = device::with_ceiling(std::move(*gpu), ceiling ? *ceiling : Megahertz(0));
  if (options.accelerator.empty()) opened.facts.accelerator = opened.gpu->identity().uuid;
  const bool whole = remark_conditions(*opened.gpu, opened.facts, complaints);
  const auto clocks = opened.gpu->supported_clocks();
  if (!clocks) {
    opened.no_control = clocks.error().message;
    complaints.raise(Cause::device, fmt::format("{}: no clock is set; energy and times are measured at the driver's "
                                                "clock",
                                                clocks.error().message));
    return false;
  }
  for (const Megahertz clock : *clocks) opened.facts.clocks_mhz.push_back(clock.value());
  if (!whole) opened.no_control = "the GPU is divided (MIG): its clock is that of all slices";
  return whole && !opened.facts.clocks_mhz.empty();
}

/// The clock, if it is below the highest one without a reason: the driver cannot report a lock. An idle GPU without a
/// lock has its lowest clocks, or the highest one; AMD's give no reason. 0: none.
Megahertz locked_by_another(device::Gpu& gpu, int highest_mhz) {
  if (gpu.identity().amd) return Megahertz(0);
  const auto clock = gpu.clock();
  const auto events = gpu.clock_events();
  if (!clock || !events || events->throttled() || events->sync_boost) return Megahertz(0);
  const bool idles_low = events->idle && 2 * clock->value() < highest_mhz;
  return idles_low || clock->value() >= highest_mhz ? Megahertz(0) : *clock;
}

/// Measures the time from the device's call until the clock is in effect; 0: not known. A plan without the latency
/// assumes that clocks arrive in time. While training runs, the latency cannot be measured where clocks change more
/// often than that.
double measure_switch_latency(clock_control::ClockController& control, const std::vector<int>& clocks_mhz,
                              const std::stop_token& stop) {
  const std::size_t low = clocks_mhz.size() - 1;
  const std::array<std::size_t, 5> targets{low / 2, 0, low, 0, low / 3};
  const double end_s = host_now_s() + kLatencyLimit_s;
  // On a busy host some arrivals are observed too late to count.
  for (std::size_t i = 0; host_now_s() < end_s && control.working_helper() != 0; ++i) {
    const std::int64_t watched = control.statistics().clock_changes_watched;
    if (watched >= kLatencySamples) break;
    const double until_s = host_now_s() + kLatencyPatience_s;
    control.set(Megahertz(clocks_mhz[targets[i % targets.size()]]));
    while (control.statistics().clock_changes_watched == watched && host_now_s() < until_s) {
      if (control.working_helper() == 0 || !sleep_for(stop, 0.001)) break;
    }
    if (stop.stop_requested()) break;
  }
  control.set(Megahertz(0));
  return control.statistics().call_to_clock_p50_s;
}

void start_control(const ClientOptions& options, const std::string& selector, RankDevice& opened,
                   Complaints& complaints, const std::stop_token& stop) {
  auto started = clock_control::ClockController::start(
      {selector, options.helper, options.start_limit_s, options.helper_restart, {}, {}, opened.gpu->identity()});
  if (!started) {
    opened.no_control = started.error().message;
    complaints.raise(Cause::clock_control, fmt::format("no clock is set: {}", opened.no_control));
    return;
  }
  opened.control = std::move(*started);
  opened.locked_before = locked_by_another(*opened.gpu, opened.facts.clocks_mhz.front());
  if (const int before = opened.locked_before.value(); before > 0) {
    complaints.say(
        LogLevel::warning,
        fmt::format("{} runs at {} of {} MHz and the driver gives no reason: another process (a launcher's "
                    "nvidia-smi -lgc) may have locked its clock; the first clock of a plan replaces that lock, and "
                    "PERSEUS_CEILING_MHZ={} keeps it as a limit",
                    selector, before, opened.facts.clocks_mhz.front(), before));
  }
  RankFacts& facts = opened.facts;
  facts.switch_latency_s = std::max(options.switch_latency_s, 0.0);
  if (options.switch_latency_s == 0 && !options.server.empty() && facts.clocks_mhz.size() > 1) {
    facts.switch_latency_s = measure_switch_latency(*opened.control, facts.clocks_mhz, stop);
  }
}

}  // namespace

bool needs_cuda_view(const ClientOptions& options) {
  return options.device.empty() || options.device.starts_with(kCudaDevice) || options.device == kByZeusd;
}

RankDevice open_rank_device(const ClientOptions& options, const device::CudaView& cuda, Complaints& complaints,
                            const std::stop_token& stop) {
  RankDevice opened;
  opened.no_control = options.advice_only ? "advice only, as configured" : "no GPU (device \"none\")";
  opened.facts.host = host_name();
  opened.facts.accelerator = options.accelerator;
  const std::string selector =
      needs_cuda_view(options) ? choose_gpu(options, cuda, opened, complaints) : options.device;
  if (selector == "none" || !open_gpu(options, selector, opened, complaints)) return opened;
  if (!options.advice_only && !stop.stop_requested()) start_control(options, selector, opened, complaints, stop);
  return opened;
}

}  // namespace perseus::client
