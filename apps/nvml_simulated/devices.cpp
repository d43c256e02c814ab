#include "devices.h"

#include <algorithm>
#include <cstdlib>

#include "simulation/simulated_gpu/find.h"
#include "training/device/nvml_codes.h"

namespace perseus::nvml_simulated {

int Devices::begin() {
  const std::lock_guard lock(mutex_);
  if (users_ == 0) {
    if (std::getenv("PERSEUS_SIMULATED_GPUS") == nullptr) return device::nvml_code::kDriverNotLoaded;
    listed_.clear();
    for (const std::string& path : simulated_gpu::simulated_gpu_files()) {
      auto place = std::ranges::find_if(known_, [&](const auto& device) { return device->path == path; });
      if (place == known_.end()) {
        known_.push_back(std::make_unique<NvmlDevice>(NvmlDevice{path, nullptr}));
        place = std::prev(known_.end());
      }
      // Attach again at each begin: another GPU may have been created under the name.
      auto driver = simulated_gpu::SimulatedDriver::attach(path);
      (*place)->driver = driver ? std::move(*driver) : nullptr;
      listed_.push_back(place->get());
    }
    for (NvmlDevice* device : listed_) {
      const int code = device->driver ? device->driver->fault("nvmlInit_v2") : device::nvml_code::kSuccess;
      if (code != device::nvml_code::kSuccess) return code;
    }
  }
  ++users_;
  return device::nvml_code::kSuccess;
}

int Devices::end() {
  const std::lock_guard lock(mutex_);
  if (users_ == 0) return device::nvml_code::kUninitialized;
  --users_;
  return device::nvml_code::kSuccess;
}

bool Devices::begun() {
  const std::lock_guard lock(mutex_);
  return users_ > 0;
}

std::vector<NvmlDevice*> Devices::list() {
  const std::lock_guard lock(mutex_);
  return listed_;
}

NvmlDevice* Devices::find(device::nvml::Device handle) {
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find_if(listed_, [&](NvmlDevice* device) { return device->handle() == handle; });
  return place == listed_.end() ? nullptr : *place;
}

int Devices::fault(const char* function) {
  for (const NvmlDevice* device : list()) {
    const int code = device->driver ? device->driver->fault(function) : device::nvml_code::kSuccess;
    if (code != device::nvml_code::kSuccess) return code;
  }
  return device::nvml_code::kSuccess;
}

Devices& devices() {
  static auto* const all = new Devices;
  return *all;
}

}  // namespace perseus::nvml_simulated
