#include "training/device/missing_gpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include "training/device/backends.h"
#include "training/device/nvml_library.h"

namespace perseus::device {

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

}  // namespace perseus::device
