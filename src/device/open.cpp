#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "device/backends.h"
#include "device/gpu.h"
#include "device/nvml_library.h"

namespace perseus {

DeviceResult<std::unique_ptr<Gpu>> open_gpu(const std::string& selector) {
  const std::size_t colon = std::min(selector.find(':'), selector.size());
  const std::string kind = selector.substr(0, colon);
  const std::string which = selector.substr(std::min(colon + 1, selector.size()));
  if (kind == "nvml" && !which.empty()) return open_nvml(which);
  if (kind == "zeusd" && !which.empty()) return open_zeusd(which);
  if (kind == "amdsmi" && !which.empty()) return open_amd(which);
  if (kind == "simulated" && !which.empty()) return open_simulated(which);
  return DeviceError{DeviceFault::not_supported,
                     fmt::format("'{}' names no GPU; allowed are nvml:WHICH, zeusd:WHICH and amdsmi:WHICH, where WHICH "
                                 "is an index, a UUID or a PCI bus id, and simulated:PATH",
                                 selector)};
}

std::vector<std::string> find_gpus() {
  std::vector<std::string> selectors = find_nvml();
  std::ranges::move(find_amd(), std::back_inserter(selectors));
  // Through the look-alike of NVML, the simulated ones are in the list already.
  const auto nvml = nvml_library();
  if (!nvml || !(*nvml)->simulated) std::ranges::move(find_simulated(), std::back_inserter(selectors));
  return selectors;
}

}  // namespace perseus
