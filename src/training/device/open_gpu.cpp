#include "training/device/open_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "training/device/backends.h"
#include "training/device/nvml_library.h"

namespace perseus::device {

DeviceResult<std::unique_ptr<Gpu>> open_gpu(const std::string& selector) {
  const auto [kind, part] = split_selector(selector);
  const std::string which(part);
  if (kind == "nvml" && !which.empty()) return open_nvml(which);
  if (kind == "zeusd" && !which.empty()) return open_zeusd(which);
  if (kind == "simulated" && !which.empty()) return open_simulated(which);
  return DeviceError{
      DeviceFault::not_supported,
      fmt::format("'{}' names no GPU; allowed: nvml:WHICH and zeusd:WHICH, where WHICH is an index, a UUID "
                  "or a PCI bus id, and simulated:PATH; for a rank also zeusd:",
                  selector)};
}

std::string stable_selector(const GpuIdentity& gpu, const std::string& selector) {
  const auto [kind, which] = split_selector(selector);
  if ((kind == "nvml" || kind == "zeusd") && !stable_id(gpu).empty()) {
    return fmt::format("{}:{}", kind, stable_id(gpu));
  }
  if (kind != "simulated") return selector;
  char* resolved = ::realpath(std::string(which).c_str(), nullptr);
  if (resolved == nullptr) return selector;
  std::string result = fmt::format("{}:{}", kind, resolved);
  std::free(resolved);
  return result;
}

FoundGpus find_all_gpus() {
  FoundGpus found = find_nvml();
  std::ranges::move(find_amd(), std::back_inserter(found.selectors));
  // If the simulated NVML is loaded, the simulated GPUs are in the list already.
  const auto nvml = nvml_library();
  if (!nvml || !(*nvml)->simulated) std::ranges::move(find_simulated(), std::back_inserter(found.selectors));
  return found;
}

std::vector<std::string> find_gpus() { return find_all_gpus().selectors; }

}  // namespace perseus::device
