#include "training/device/open_gpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "training/device/backends.h"
#include "training/device/nvml_library.h"

namespace perseus::device {
namespace {

bool has_sys_admin() {
  if (geteuid() == 0) {
    std::ifstream map("/proc/self/uid_map");
    std::uint64_t inside = 0, outside = 0, count = 0;
    // Root of a separate user namespace is not root to the driver.
    if (map >> inside >> outside >> count && (outside != 0 || count < 0xffffffff)) return false;
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::uint64_t sys_admin = std::uint64_t{1} << 21U;
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) & sys_admin) != 0;
  }
  return false;
}

}  // namespace

DeviceResult<std::unique_ptr<Gpu>> open_gpu(const std::string& selector) {
  const auto [kind, part] = split_selector(selector);
  const std::string which(part);
  if (kind == "nvml" && !which.empty()) return open_nvml(which);
  if (kind == "zeusd" && !which.empty()) return open_zeusd(which);
  if (kind == "simulated" && !which.empty()) return open_simulated(which);
  return DeviceError{
      DeviceFault::not_supported,
      fmt::format("'{}' names no GPU; allowed: nvml:WHICH and zeusd:WHICH, where WHICH is an index, a UUID "
                  "or a PCI bus id, and simulated:PATH; for a rank also zeusd:",
                  selector)};
}

std::string stable_selector(const GpuIdentity& gpu, const std::string& selector) {
  const auto [kind, which] = split_selector(selector);
  if ((kind == "nvml" || kind == "zeusd") && !stable_id(gpu).empty()) {
    return fmt::format("{}:{}", kind, stable_id(gpu));
  }
  if (kind != "simulated") return selector;
  char* resolved = ::realpath(std::string(which).c_str(), nullptr);
  if (resolved == nullptr) return selector;
  std::string result = fmt::format("{}:{}", kind, resolved);
  std::free(resolved);
  return result;
}

FoundGpus find_all_gpus() {
  FoundGpus found = find_nvml();
  std::ranges::move(find_amd(), std::back_inserter(found.selectors));
  // If the simulated NVML is loaded, the simulated GPUs are in the list already.
  const auto nvml = nvml_library();
  if (!nvml || !(*nvml)->simulated) std::ranges::move(find_simulated(), std::back_inserter(found.selectors));
  return found;
}

std::vector<std::string> find_gpus() { return find_all_gpus().selectors; }

GpuTraces gpu_traces(const std::string& root) {
  const auto exists = [&](const char* path) { return ::access((root + path).c_str(), F_OK) == 0; };
  const auto nvml = nvml_library();
  const std::vector<FailingGpu> failing = nvml ? find_nvml().failing : std::vector<FailingGpu>();
  return {exists("/proc/driver/nvidia/version"), exists("/dev/nvidiactl"), exists("/dev/kfd"),
          nvml ? "" : nvml.error().message, failing.empty() ? "" : failing.front().error.message};
}

std::string why_no_gpu(const GpuTraces& traces) {
  if (!traces.failing.empty()) return traces.failing;
  if (traces.nvidia_node && !traces.nvml.empty()) {
    return fmt::format("{}; in a container, NVML comes with NVIDIA_DRIVER_CAPABILITIES=compute,utility", traces.nvml);
  }
  if (traces.nvidia_node) return "NVML shows no GPU";
  if (traces.nvidia_driver) {
    return "the NVIDIA driver is loaded, but no GPU is visible here (no /dev/nvidiactl); start the container with "
           "--gpus all (Kubernetes: a limit for nvidia.com/gpu)";
  }
  if (traces.amd_node) {
    return "this machine has an AMD GPU, and zeusd does not list it: AMD GPUs need zeusd 0.5 or later at its socket "
           "(ZEUSD_SOCK_PATH)";
  }
  return "this machine has no GPU driver (neither /proc/driver/nvidia nor /dev/kfd); where that is as it should be, "
         "choose the device none (PERSEUS_DEVICE=none)";
}

ControlPath control_path(const std::string& selector) {
  const auto gpu = open_gpu(selector);
  if (!gpu) return {"none", "", gpu.error().message};
  const GpuSelector split = split_selector(selector);
  const std::string kind(split.kind), which(split.which);
  if (kind == "simulated") return {"simulated", selector, "a simulated GPU sets its clock itself"};
  const auto conditions = (*gpu)->conditions();
  if (conditions && conditions->mig) {
    return {"none", "",
            std::string((*gpu)->identity().amd ? "the card is divided" : "MIG is on") +
                ": clocks, power limit and energy counter are those of the whole GPU, not of a slice"};
  }
  const bool root = geteuid() == 0, admin = has_sys_admin();
  if (kind == "zeusd") {
    const GpuIdentity& identity = (*gpu)->identity();
    if (!identity.amd) return {"zeusd", selector, "selected, and it answers"};
    if (!identity.by_daemon) return {"none", "", "zeusd does not offer gpu-control"};
    return {"zeusd", selector,
            "for programs that wait for their GPU (PERSEUS_SYNCHRONOUS=1): the client has no device time of ROCm, so "
            "PyTorch's computations are timed by the host's clock and run at the driver's clocks"};
  }
  if (admin) { return {"NVML", selector, root ? "this process is root" : "this process has CAP_SYS_ADMIN"}; }
  const std::string lacks = root ? "this process is root in a container without CAP_SYS_ADMIN"
                                 : "this process is neither root nor has CAP_SYS_ADMIN";
  const auto zeusd = open_gpu("zeusd:" + which);
  if (zeusd) return {"zeusd", "zeusd:" + which, lacks + ", and zeusd sets clocks for it"};
  return {"none", "", lacks + "; " + zeusd.error().message};
}

}  // namespace perseus::device
