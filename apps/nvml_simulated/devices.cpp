#include "devices.h"

#include <algorithm>
#include <cstdlib>

#include "device/nvml_codes.h"
#include "simulated_gpu/find.h"

namespace perseus::nvml_simulated {

int Devices::begin() {
  const std::lock_guard lock(mutex_);
  if (users_ == 0) {
    if (std::getenv("PERSEUS_SIMULATED_GPUS") == nullptr) return nvml_code::driver_not_loaded;
    listed_.clear();
    for (const std::string& path : simulated_gpu_files()) {
      auto place = std::ranges::find_if(known_, [&](const auto& device) { return device->path == path; });
      if (place == known_.end()) {
        known_.push_back(std::make_unique<SimulatedDevice>(SimulatedDevice{path, nullptr}));
        place = std::prev(known_.end());
      }
      // Again at each begin: another GPU may have been made under the name.
      auto driver = SimulatedDriver::attach(path);
      (*place)->driver = driver ? std::move(*driver) : nullptr;
      listed_.push_back(place->get());
    }
    for (SimulatedDevice* device : listed_) {
      const int code = device->driver ? device->driver->fault("nvmlInit_v2") : nvml_code::success;
      if (code != nvml_code::success) return code;
    }
  }
  ++users_;
  return nvml_code::success;
}

int Devices::end() {
  const std::lock_guard lock(mutex_);
  if (users_ == 0) return nvml_code::uninitialised;
  --users_;
  return nvml_code::success;
}

bool Devices::begun() {
  const std::lock_guard lock(mutex_);
  return users_ > 0;
}

std::vector<SimulatedDevice*> Devices::list() {
  const std::lock_guard lock(mutex_);
  return listed_;
}

SimulatedDevice* Devices::find(nvml::Device handle) {
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find_if(listed_, [&](SimulatedDevice* device) { return device->handle() == handle; });
  return place == listed_.end() ? nullptr : *place;
}

int Devices::fault(const char* function) {
  for (const SimulatedDevice* device : list()) {
    const int code = device->driver ? device->driver->fault(function) : nvml_code::success;
    if (code != nvml_code::success) return code;
  }
  return nvml_code::success;
}

Devices& devices() {
  static auto* const all = new Devices;
  return *all;
}

}  // namespace perseus::nvml_simulated
