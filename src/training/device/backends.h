// The kinds of GPU behind training/device/gpu.h: one opener and one finder each.
//
// Input:   the part of a selector after the kind: "0" of "nvml:0".
// Output:  the GPU; the selectors of all GPUs of that kind.
// Errors:  as open_gpu(); a finder without a driver finds nothing.
// Cost:    loads a library, at most once a process.
// Threads: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulation/simulated_gpu/simulated_gpu.h"
#include "training/device/gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::device {

DeviceResult<std::unique_ptr<Gpu>> open_nvml(const std::string& which);
FoundGpus find_nvml();

DeviceResult<std::unique_ptr<Gpu>> open_zeusd(const std::string& which);
/// AMD GPUs that zeusd lists; queries it only if this machine has one.
std::vector<std::string> find_amd();

DeviceResult<std::unique_ptr<Gpu>> open_simulated(const std::string& path,
                                                  simulated_gpu::SimulatedGpu::TimeSource now = {});
/// $PERSEUS_SIMULATED_GPUS: state files, or folders of them, separated by colons.
std::vector<std::string> find_simulated();

}  // namespace perseus::device
