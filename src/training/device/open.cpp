#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "training/device/backends.h"
#include "training/device/gpu.h"
#include "training/device/nvml_library.h"

namespace perseus::device {

DeviceResult<std::unique_ptr<Gpu>> open_gpu(const std::string& selector) {
  const std::size_t colon = std::min(selector.find(':'), selector.size());
  const std::string kind = selector.substr(0, colon);
  const std::string which = selector.substr(std::min(colon + 1, selector.size()));
  if (kind == "nvml" && !which.empty()) return open_nvml(which);
  if (kind == "zeusd" && !which.empty()) return open_zeusd(which);
  if (kind == "amdsmi" && !which.empty()) return open_amd(which);
  if (kind == "simulated" && !which.empty()) return open_simulated(which);
  return DeviceError{DeviceFault::not_supported,
                     fmt::format("'{}' names no GPU; allowed: nvml:WHICH, zeusd:WHICH and amdsmi:WHICH, where WHICH "
                                 "is an index, a UUID or a PCI bus id, and simulated:PATH",
                                 selector)};
}

DeviceStatus Gpu::limit_clock(Megahertz lowest, Megahertz highest) {
  return DeviceError{DeviceFault::not_supported,
                     fmt::format("cannot limit the clock of {} to [{}, {}] MHz: not supported by its driver",
                                 stable_id(identity()), lowest.value(), highest.value())};
}

std::string stable_selector(const GpuIdentity& gpu, const std::string& selector) {
  const std::size_t colon = std::min(selector.find(':'), selector.size());
  const std::string_view kind = std::string_view(selector).substr(0, colon);
  if ((kind == "nvml" || kind == "zeusd") && !stable_id(gpu).empty()) {
    return fmt::format("{}:{}", kind, stable_id(gpu));
  }
  if (kind == "amdsmi" && !gpu.pci_bus_id.empty()) return fmt::format("{}:{}", kind, gpu.pci_bus_id);
  if (kind != "simulated") return selector;
  char* resolved = ::realpath(selector.c_str() + std::min(colon + 1, selector.size()), nullptr);
  if (resolved == nullptr) return selector;
  std::string result = fmt::format("{}:{}", kind, resolved);
  std::free(resolved);
  return result;
}

std::vector<std::string> find_failing_gpus() { return find_failing_nvml(); }

std::vector<std::string> find_gpus() {
  std::vector<std::string> selectors = find_nvml();
  std::ranges::move(find_amd(), std::back_inserter(selectors));
  // If the simulated NVML is loaded, the simulated GPUs are in the list already.
  const auto nvml = nvml_library();
  if (!nvml || !(*nvml)->simulated) std::ranges::move(find_simulated(), std::back_inserter(selectors));
  return selectors;
}

}  // namespace perseus::device
