#include "training/device/amdgpu_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

namespace perseus::device {
namespace {

namespace fs = std::filesystem;

fs::path sys() {
  const char* given = ::secure_getenv("PERSEUS_SYS");
  return given == nullptr || *given == '\0' ? "/sys" : given;
}

/// All partitions of a card are function 0 to the kernel.
fs::path folder_of(const PciBusId& gpu) {
  const fs::path devices = sys() / "bus/pci/devices";
  std::error_code none;
  fs::path own = devices / text_of(gpu);
  return fs::exists(own, none) ? own : devices / text_of({gpu.domain, gpu.bus, gpu.device});
}

/// The paths in a folder whose names begin like that; none if there is no such folder.
std::vector<fs::path> entries(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

struct KfdNode {
  int number = 0;
  PciBusId pci;
  int highest_mhz = 0;
};

/// GPUs only. A node of a GPU that this container does not have cannot be read.
std::vector<KfdNode> kfd_gpus() {
  std::vector<KfdNode> nodes;
  for (const fs::path& folder : entries(sys() / "class/kfd/kfd/topology/nodes", "")) {
    std::ifstream file(folder / "properties");
    std::map<std::string, std::uint64_t> properties;
    std::string key;
    for (std::uint64_t value = 0; file >> key >> value;) properties[key] = value;
    if (properties["simd_count"] == 0) continue;  // a processor
    const auto place = static_cast<std::uint32_t>(properties["location_id"] & 0xffffU);
    nodes.push_back({std::atoi(folder.filename().c_str()),
                     {static_cast<std::uint32_t>(properties["domain"]), place >> 8U, (place >> 3U) & 0x1fU, place & 7U},
                     static_cast<int>(properties["max_engine_clk_fcompute"])});
  }
  std::ranges::sort(nodes, {}, &KfdNode::number);
  return nodes;
}

DeviceError missing(const fs::path& file) {
  return {DeviceFault::not_supported, fmt::format("the amdgpu driver shows no clocks: {}", file.string())};
}

/// The levels of pp_dpm_sclk: "0: 500Mhz", "1: 2100Mhz *"; "S: 132Mhz" is sleep.
std::vector<int> levels_of(const fs::path& path) {
  std::vector<int> levels;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos || std::isdigit(static_cast<unsigned char>(line.front())) == 0) continue;
    if (const int mhz = std::atoi(line.c_str() + colon + 2); mhz > 0) levels.push_back(mhz);
  }
  return levels;
}

}  // namespace

std::vector<PciBusId> amd_gpus_in_hip_order() {
  const std::vector<KfdNode> nodes = kfd_gpus();
  std::vector<PciBusId> gpus;
  for (const KfdNode& node : nodes) {
    const auto same_card = [&](const auto& other) { return other.same_card(node.pci); };
    PciBusId gpu = node.pci;
    if (std::ranges::count_if(nodes, same_card, &KfdNode::pci) > 1) {
      gpu.function = static_cast<std::uint32_t>(std::ranges::count_if(gpus, same_card));
    }
    gpus.push_back(gpu);
  }
  return gpus;
}

bool is_amd_gpu(const PciBusId& gpu) {
  std::string vendor;
  std::ifstream(folder_of(gpu) / "vendor") >> vendor;
  return vendor == "0x1002";
}

std::string amd_device_node(const PciBusId& gpu) {
  const auto nodes = entries(folder_of(gpu) / "drm", "renderD");
  return nodes.empty() ? "" : "/dev/dri/" + nodes.front().filename().string();
}

DeviceResult<AmdClocks> amd_clocks(const PciBusId& gpu) {
  const fs::path file = folder_of(gpu) / "pp_dpm_sclk";
  const std::vector<int> levels = levels_of(file);
  if (levels.empty()) return missing(file);
  // Some drivers list the limits that are set now: the lowest is never raised here, and KFD keeps the highest.
  const int least = std::ranges::min(levels);
  int most = std::ranges::max(levels);
  for (const KfdNode& node : kfd_gpus()) {
    if (node.pci.same_card(gpu)) most = std::max(most, node.highest_mhz);
  }
  constexpr int step = 25, highest_plausible = 10'000;
  if (most <= least || most > highest_plausible) return missing(file);
  AmdClocks clocks{Megahertz(least), {Megahertz(most)}};
  for (int mhz = (most - 1) / step * step; mhz > least; mhz -= step) clocks.limits.emplace_back(mhz);
  return clocks;
}

DeviceResult<Megahertz> amd_clock_now(const PciBusId& gpu) {
  const fs::path folder = folder_of(gpu) / "hwmon";
  for (const fs::path& sensor : entries(folder, "hwmon")) {
    std::int64_t hertz = 0;
    if (std::ifstream(sensor / "freq1_input") >> hertz) return Megahertz(static_cast<int>(hertz / 1'000'000));
  }
  return missing(folder / "hwmon*/freq1_input");
}

}  // namespace perseus::device
