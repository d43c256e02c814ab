// Opens and finds GPUs by their selectors.
//
// Input:   selectors: KIND:WHICH.
// Output:  a GPU behind the interface of training/device/gpu.h.
// Errors:  no_driver, not_supported, lost: see open_gpu().
// Threads: as the drivers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "training/device/gpu.h"

namespace perseus::device {

struct GpuSelector {
  std::string_view kind, which;  ///< of nvml:0: "nvml", "0"; without a colon: all of it and nothing
};
inline GpuSelector split_selector(std::string_view selector) {
  const std::size_t colon = selector.find(':');
  if (colon == std::string_view::npos) return {selector, {}};
  return {selector.substr(0, colon), selector.substr(colon + 1)};
}

/// A selector of the same GPU in any container and working directory: nvml:0 becomes nvml:GPU-..., simulated:gpu an
/// absolute path.
std::string stable_selector(const GpuIdentity& gpu, const std::string& selector);

/// Opens the GPU that `selector` names:
///     nvml:0  nvml:GPU-uuid  nvml:0000:01:00.0    NVML (the library: $PERSEUS_NVML, else libnvidia-ml.so.1)
///                                                 Without NVML's permission, sets through zeusd if that runs.
///     zeusd:<same as nvml>                        reads by NVML, sets through zeusd ($ZEUSD_SOCK_PATH); an AMD GPU
///                                                 (its index in zeusd, or its bus id) reads through zeusd too
///     simulated:PATH                              the state file of a simulated GPU, see
///                                                 simulation/simulated_gpu/simulated_gpu.h
/// Returns no_driver, not_supported for an unknown kind (the message lists them), lost for no such GPU.
DeviceResult<std::unique_ptr<Gpu>> open_gpu(const std::string& selector);

struct FailingGpu {
  std::string selector;  ///< without WHICH: the driver does not count its GPUs
  DeviceError error;
};
struct FoundGpus {
  std::vector<std::string> selectors;  ///< the real ones first
  std::vector<FailingGpu> failing;     ///< that the driver counts but cannot name (lost, no permission)
};
FoundGpus find_all_gpus();
/// FoundGpus::selectors.
std::vector<std::string> find_gpus();

/// Why this process finds no GPU, and what to change, in one clause for a log.
/// Problem: in a container the usual reason is an option that is missing where the container is started, and neither
///          NVML nor CUDA names it.
/// Input:   traces of drivers in /proc and /dev, NVML's answer.
/// Output:  a clause: "this machine has no GPU driver (...)", "the container has no GPU: start it with --gpus all ...".
struct GpuTraces {
  bool nvidia_driver = false;  ///< /proc/driver/nvidia: the kernel has the driver, also if a container hides its GPUs
  bool nvidia_node = false;    ///< /dev/nvidiactl
  bool amd_node = false;       ///< /dev/kfd
  std::string nvml;            ///< why NVML does not work; empty: it works
  std::string failing = {};    ///< why NVML does not count or name a GPU; empty: it does
};

/// `root`: where /proc and /dev are; empty: here.
GpuTraces gpu_traces(const std::string& root = {});

std::string why_no_gpu(const GpuTraces& traces);

/// Determines how this process can set the clock of a GPU: directly, through zeusd, or not at all. Sets nothing.
/// Problem: NVML reveals whether it may set clocks only when one is set, and that must not happen just to find out.
/// Input:   a selector.
/// Output:  the selector to control the GPU through, and the reason; for NVML it follows from the privileges of this
///          process: root or CAP_SYS_ADMIN. A helper with other privileges than this process decides anew.
struct ControlPath {
  std::string kind;      ///< "NVML", "zeusd", "simulated", "none"
  std::string selector;  ///< to pass to open_gpu(); empty: none
  std::string why;
};

ControlPath control_path(const std::string& selector);

}  // namespace perseus::device
