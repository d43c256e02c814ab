// The GPUs behind the look-alike of NVML: those that $PERSEUS_SIMULATED_GPUS names, between init and shutdown.
//
// Input: the environment, at each first nvmlInit. Output: handles; one stays valid, and names the same GPU, as long as
// the process lives. Errors: a file that is no GPU's counts, as a GPU that is lost. Cost: a lock. Threads: any.
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
  int begin();  ///< an NVML code
  int end();
  [[nodiscard]] bool begun();
  std::vector<NvmlDevice*> list();
  /// Of that handle; null: it is none.
  NvmlDevice* find(device::nvml::Device handle);
  /// Of a function that is about no GPU: that of any.
  int fault(const char* function);

 private:
  std::mutex mutex_;
  int users_ = 0;
  std::vector<std::unique_ptr<NvmlDevice>> known_;
  std::vector<NvmlDevice*> listed_;
};

/// One for the process, never destroyed: threads may call NVML while it ends.
Devices& devices();

}  // namespace perseus::nvml_simulated
