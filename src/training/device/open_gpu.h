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

}  // namespace perseus::device
