// The GPUs of the simulated NVML library: those in $PERSEUS_SIMULATED_GPUS, between init and shutdown.
//
// Input:   the environment, at each first nvmlInit.
// Output:  handles; a handle stays valid, and identifies the same GPU, as long as the process lives.
// Errors:  a file that is no simulated GPU counts as a lost GPU.
// Cost:    a lock.
// Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simulation/simulated_gpu/simulated_driver.h"
#include "training/device/nvml_abi.h"

namespace perseus::nvml_simulated {

struct NvmlDevice {
  std::string path;
  std::unique_ptr<simulated_gpu::SimulatedDriver> driver;  ///< none: lost
  device::nvml::Device handle() { return reinterpret_cast<device::nvml::Device>(this); }
};

class Devices {
 public:
  int begin();  ///< returns an NVML code
  int end();
  [[nodiscard]] bool begun();
  std::vector<NvmlDevice*> list();
  /// The device of that handle; null: invalid handle.
  NvmlDevice* find(device::nvml::Device handle);
  /// Injected fault of a function without a GPU argument: that of any GPU.
  int fault(const char* function);

 private:
  std::mutex mutex_;
  int users_ = 0;
  std::vector<std::unique_ptr<NvmlDevice>> known_;
  std::vector<NvmlDevice*> listed_;
};

/// One instance for the process, never destroyed: threads may call NVML while the process ends.
Devices& devices();

}  // namespace perseus::nvml_simulated
