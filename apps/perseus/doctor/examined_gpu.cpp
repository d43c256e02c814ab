#include "doctor/examined_gpu.h"

#include <fmt/format.h>
#include <sys/types.h>

#include <memory>
#include <string_view>
#include <utility>

#include "command_line/interrupt.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/start_helper.h"
#include "training/device/ceiling_gpu.h"

namespace perseus::cli {
namespace {

constexpr std::string_view kByDaemon = "clock daemon";

/// Restores the clock if this process ends early, also by SIGKILL: it waits for the lease.
class RestoringHelper {
 public:
  explicit RestoringHelper(const std::string& lease) {
    constexpr const char* longest_test_s = "600";
    const auto program = clock_control::find_helper("");
    if (!program) return;
    if (const auto started = clock_control::spawn_helper(*program, {"--restore", lease, longest_test_s}, {}))
      child_ = *started;
  }
  RestoringHelper(const RestoringHelper&) = delete;
  RestoringHelper& operator=(const RestoringHelper&) = delete;
  ~RestoringHelper() {
    constexpr double limit_s = 5;
    if (child_ > 0) clock_control::reap(child_, limit_s);
  }

 private:
  pid_t child_ = 0;
};

/// Holds the lease on the clock, so that the test cannot run beside a job.
device::SwitchExamination test_with_lease(const std::string& selector) {
  device::SwitchExamination refused;
  auto opened = device::open_gpu(selector);
  if (!opened) {
    refused.why = opened.error().message;
    return refused;
  }
  const auto given = device::ceiling_of_environment();
  if (!given) {
    refused.why = given.error().message;
    return refused;
  }
  const Megahertz ceiling = *given;
  const std::unique_ptr<device::Gpu> gpu = device::with_ceiling(std::move(*opened), ceiling);
  std::optional<RestoringHelper> helper;  // its end waits for the lease's
  auto lease = clock_control::Lease::take(gpu->identity(), selector, 0, ceiling);
  if (!lease) {
    refused.why = lease.error().message;
    return refused;
  }
  if (lease->recorded()) {
    if (const device::DeviceStatus restored = clock_control::give_back_patiently(*gpu, *lease); !restored) {
      refused.why = "a lock that was left behind cannot be given back: " + restored.error().message;
      return refused;
    }
  }
  helper.emplace(lease->path());  // before there is anything to restore
  if (const device::DeviceStatus recorded = lease->record(); !recorded) {
    refused.why = recorded.error().message;
    return refused;
  }
  constexpr int switches = 40;
  device::SwitchExamination seen =
      device::examine_switching(*gpu, switches, [] { return !InterruptGuard::interrupted(); });
  // Tries again, to unlock the GPU; the test has failed in any case.
  const bool unlocked = seen.restored || !seen.touched || clock_control::unlock_patiently(*gpu).ok();
  if (unlocked) lease->clear();
  return seen;
}

}  // namespace

ExaminedGpu examine_gpu(const std::string& selector, Seconds longest_watch) {
  ExaminedGpu gpu;
  gpu.selector = selector;
  auto opened = device::open_gpu(selector);
  if (!opened) {
    gpu.closed = opened.error();
    return gpu;
  }
  gpu.identity = (*opened)->identity();
  gpu.clocks = (*opened)->supported_clocks();
  gpu.clock = (*opened)->clock();
  gpu.power = (*opened)->power();
  gpu.limit = (*opened)->power_limit();
  gpu.events = (*opened)->clock_events();
  gpu.conditions = (*opened)->conditions();
  gpu.counter = device::examine_counter(**opened, longest_watch);
  gpu.control = device::control_path(selector);
  gpu.lock_holder = clock_control::clock_holder(gpu.identity, true);
  return gpu;
}

std::string others_of(const device::GpuConditions& conditions) {
  const int others = conditions.other_processes, unknown = conditions.unknown_processes;
  if (others == 0) return {};
  std::string words =
      fmt::format("{} other process{} compute{} on it", others, others == 1 ? "" : "es", others == 1 ? "s" : "");
  if (unknown > 0) {
    words += fmt::format(
        " ({} without a number in this PID namespace: in a container the driver gives the host's numbers, so this may "
        "be your own job)",
        unknown);
  }
  return words;
}

device::SwitchExamination test_control(const ExaminedGpu& gpu, bool beside_others) {
  device::SwitchExamination refused;
  if (gpu.control.selector.empty()) {
    refused.why = "this process has no permission to set its clock";
  } else if (!gpu.conditions) {
    refused.why = gpu.conditions.error().message;
  } else if (const std::string others = others_of(*gpu.conditions); !others.empty() && !beside_others) {
    refused.why = others + "; --beside-others runs the test all the same";
  } else {
    return test_with_lease(gpu.control.selector);
  }
  return refused;
}

bool can_be_controlled(const ExaminedGpu& gpu) {
  const bool controlled = !gpu.control.selector.empty() || gpu.control.kind == kByDaemon;
  return !gpu.closed && controlled && gpu.clocks;
}

void count_on_daemon(ExaminedGpu& gpu, const std::string& socket) {
  const bool sliced = gpu.conditions && gpu.conditions->mig;
  if (gpu.closed || !gpu.control.selector.empty() || sliced) return;
  gpu.control = {std::string(kByDaemon), "", "through " + socket + "; " + gpu.control.why};
}

}  // namespace perseus::cli
