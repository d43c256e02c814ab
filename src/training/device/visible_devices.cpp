#include "training/device/visible_devices.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/split.h"
#include "training/device/amdgpu_files.h"
#include "training/device/gpu.h"
#include "training/device/open_gpu.h"
#include "training/device/pci_bus_id.h"

namespace perseus::device {
namespace {

constexpr std::array kLocalRankVariables = {
    "LOCAL_RANK",      "SLURM_LOCALID",    "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID", "PALS_LOCAL_RANKID"};

struct LocalRank {
  std::string variable;
  int number = 0;
};

std::optional<LocalRank> local_rank(const ReadVariable& variable) {
  for (const char* const name : kLocalRankVariables) {
    const char* const text = variable(name);
    if (text == nullptr) continue;
    const std::string_view value(text);
    int number = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (problem == std::errc() && end == value.data() + value.size() && number >= 0) return LocalRank{name, number};
  }
  return std::nullopt;
}

std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> entries = split(list, ',');
  std::ranges::transform(entries, entries.begin(), trimmed);
  return entries;
}

/// Parses an index as CUDA does: the digits at the begin of the entry; -1: none.
int index_of(std::string_view entry) {
  if (entry.starts_with('+')) entry.remove_prefix(1);
  int index = -1;
  const auto [end, problem] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  return problem == std::errc() ? index : -1;
}

/// CUDA's, or HIP's, devices in its own order, as far as known.
struct Visible {
  std::vector<const ListedGpu*> gpus;  ///< null: a GPU that NVML, or zeusd, does not show
  bool by_number = true;               ///< false: their number is known, but not which number is which
  std::string why_none;                ///< of an empty list
};

bool by_bus_id(std::vector<const ListedGpu*>& gpus) {
  std::vector<std::pair<PciBusId, const ListedGpu*>> placed;
  for (const ListedGpu* const gpu : gpus) {
    const auto id = parse_pci_bus_id(gpu->pci_bus_id);
    if (!id) return false;
    placed.emplace_back(*id, gpu);
  }
  std::ranges::sort(placed);
  std::ranges::transform(placed, gpus.begin(), &std::pair<PciBusId, const ListedGpu*>::second);
  return true;
}

Visible of_uuids(const std::vector<std::string_view>& entries, const std::vector<ListedGpu>& gpus) {
  Visible visible;
  for (const std::string_view entry : entries) {
    const ListedGpu* match = nullptr;
    int matches = 0;
    for (const ListedGpu& gpu : gpus) {
      if (!entry.starts_with("GPU-") || !gpu.uuid.starts_with(entry)) continue;
      match = &gpu;
      ++matches;
    }
    if (matches != 1) break;  // no such GPU, or the prefix of several
    if (std::ranges::find(visible.gpus, match) != visible.gpus.end()) return {};
    visible.gpus.push_back(match);
  }
  return visible;
}

std::vector<const ListedGpu*> of_indices(const std::vector<std::string_view>& entries,
                                         const std::vector<const ListedGpu*>& all) {
  std::vector<const ListedGpu*> visible;
  std::vector<int> indices;
  for (const std::string_view entry : entries) {
    const int index = index_of(entry);
    if (index < 0 || static_cast<std::size_t>(index) >= all.size()) break;
    if (std::ranges::find(indices, index) != indices.end()) return {};
    indices.push_back(index);
    visible.push_back(all[static_cast<std::size_t>(index)]);
  }
  return visible;
}

Visible visible_to_cuda(const std::vector<ListedGpu>& gpus, const CudaView& cuda, const ReadVariable& variable) {
  Visible visible;
  if (!cuda.bus_ids.empty()) {
    for (const std::string& bus_id : cuda.bus_ids) {
      const auto place = parse_pci_bus_id(bus_id);
      const auto gpu = std::ranges::find_if(
          gpus, [&](const ListedGpu& g) { return place && parse_pci_bus_id(g.pci_bus_id) == place; });
      visible.gpus.push_back(gpu == gpus.end() ? nullptr : &*gpu);
    }
    return visible;
  }
  const char* const order = variable("CUDA_DEVICE_ORDER");
  const bool pci_order = order != nullptr && std::string_view(order) == "PCI_BUS_ID";
  const char* const given = variable("CUDA_VISIBLE_DEVICES");
  for (const ListedGpu& gpu : gpus) visible.gpus.push_back(&gpu);
  visible.by_number = gpus.size() == 1 || (pci_order && by_bus_id(visible.gpus));
  if (given == nullptr) return visible;
  const std::string_view list = trimmed(given);
  const std::vector<std::string_view> entries = entries_of(list);
  if (list.starts_with("GPU-")) {
    visible = of_uuids(entries, gpus);
  } else {
    visible.gpus = of_indices(entries, visible.gpus);
  }
  if (visible.gpus.empty() && !list.empty() && list != "-1") {
    visible.why_none = fmt::format("CUDA_VISIBLE_DEVICES is '{}', in which CUDA finds no GPU of this machine", given);
  }
  return visible;
}

Visible visible_to_hip(const std::vector<ListedGpu>& gpus, const ReadVariable& variable) {
  Visible visible;
  for (const ListedGpu& gpu : gpus) {
    if (!gpu.hip_number) continue;
    visible.gpus.resize(std::max(visible.gpus.size(), *gpu.hip_number + 1));
    visible.gpus[*gpu.hip_number] = &gpu;
  }
  const char* const after = variable("HIP_VISIBLE_DEVICES") != nullptr ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
  for (const char* const name : {"ROCR_VISIBLE_DEVICES", after}) {
    const char* const given = variable(name);
    if (given == nullptr) continue;
    const std::string_view list = trimmed(given);
    if (list.find_first_not_of("0123456789, -") != std::string_view::npos) {
      return {{}, true, fmt::format("{} is '{}', and only numbers of GPUs are known here", name, given)};
    }
    visible.gpus = of_indices(entries_of(list), visible.gpus);
  }
  return visible;
}

DeviceChoice none(std::string why) { return {"", std::move(why)}; }

/// The MIG slice that CUDA_VISIBLE_DEVICES names; empty: none. CUDA shows a process the first one alone.
std::string visible_slice(const ReadVariable& variable) {
  const char* const given = variable("CUDA_VISIBLE_DEVICES");
  if (given == nullptr || !trimmed(given).starts_with("MIG-")) return "";
  return std::string(entries_of(trimmed(given)).front());
}

/// `amd`: zeusd lists the GPUs, and HIP numbers them; else NVML and CUDA.
DeviceChoice choose_for_rank(const std::vector<ListedGpu>& gpus, bool amd, const CudaView& cuda,
                             const ReadVariable& variable, const std::optional<int>& cuda_number) {
  if (const std::string slice = visible_slice(variable); !amd && cuda.bus_ids.empty() && !slice.empty()) {
    return {"nvml:" + slice, ""};  // its whole GPU, which is measured and not controlled
  }
  const std::string how_to_say =
      fmt::format("; set the option device (PERSEUS_DEVICE={}), or ", amd ? "zeusd:0000:43:00.0" : "nvml:GPU-...");
  const Visible visible = amd ? visible_to_hip(gpus, variable) : visible_to_cuda(gpus, cuda, variable);
  const std::size_t count = visible.gpus.size();
  if (count == 0) return none(visible.why_none);
  const std::optional<LocalRank> local = local_rank(variable);
  std::optional<std::size_t> number;
  std::string because;
  if (cuda_number) {
    number = static_cast<std::size_t>(*cuda_number);
    because = fmt::format("the program computes on cuda:{}", *cuda_number);
  } else if (const auto current = std::ranges::find(cuda.bus_ids, cuda.current); current != cuda.bus_ids.end()) {
    number = static_cast<std::size_t>(current - cuda.bus_ids.begin());
    because = fmt::format("this thread's CUDA context is on device {}", *number);
    const bool another =
        local && static_cast<std::size_t>(local->number) < count && static_cast<std::size_t>(local->number) != *number;
    if (another) {
      return none(fmt::format("{}, but {} is {}{}call cudaSetDevice before perseus_start", because, local->variable,
                              local->number, how_to_say));
    }
  } else if (count == 1) {
    number = 0;
    because = "one GPU is visible";
  } else if (local) {
    number = static_cast<std::size_t>(local->number);
    because = fmt::format("{} is {}", local->variable, local->number);
  } else {
    return none(
        fmt::format("which of the {} visible GPUs this rank computes on is not known{}LOCAL_RANK, or make one "
                    "GPU visible (CUDA_VISIBLE_DEVICES)",
                    count, how_to_say));
  }
  if (*number >= count) {
    return none(fmt::format("{}, but {} GPUs are visible{}make this rank's GPU visible", because, count, how_to_say));
  }
  if (!visible.by_number && (count > 1 || gpus.size() > 1)) {
    return none(fmt::format("{}, but CUDA's order of the {} GPUs is not known{}CUDA_DEVICE_ORDER=PCI_BUS_ID", because,
                            gpus.size(), how_to_say));
  }
  const ListedGpu* const gpu = visible.gpus[*number];
  if (gpu == nullptr && amd) return none(fmt::format("{}, and zeusd does not list that GPU", because));
  if (gpu == nullptr) return none(fmt::format("{} ({}), which NVML does not list", because, cuda.bus_ids[*number]));
  return {gpu->selector, ""};
}

DeviceChoice choose_simulated(const std::vector<ListedGpu>& gpus, const ReadVariable& variable, int rank) {
  const std::optional<LocalRank> local = local_rank(variable);
  const auto number = static_cast<std::size_t>(local ? local->number : rank);
  if (number < gpus.size()) return {gpus[number].selector, ""};
  return none(fmt::format("{} {}: there are {} simulated GPUs", local ? local->variable : "rank", number, gpus.size()));
}

}  // namespace

std::vector<ListedGpu> list_gpus() {
  std::vector<ListedGpu> gpus;
  const std::vector<PciBusId> hip_order = amd_gpus_in_hip_order();
  for (const std::string& selector : find_gpus()) {
    gpus.push_back({selector, "", ""});
    if (const auto gpu = open_gpu(selector)) {
      gpus.back().uuid = (*gpu)->identity().uuid;
      gpus.back().pci_bus_id = (*gpu)->identity().pci_bus_id;
    }
    const auto place = parse_pci_bus_id(split_selector(selector).which);
    const auto found = place ? std::ranges::find(hip_order, *place) : hip_order.end();
    if (found != hip_order.end()) gpus.back().hip_number = static_cast<std::size_t>(found - hip_order.begin());
  }
  return gpus;
}

CudaView look_at_cuda() {
  const char* const given = std::getenv("PERSEUS_CUDA");
  void* const library = ::dlopen(given != nullptr && *given != '\0' ? given : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return {};
  int (*get_count)(int*) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*get_bus_id)(char*, int, int) = nullptr;
  int (*get_current)(int*) = nullptr;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  const bool found = find("cuDeviceGetCount", get_count) && find("cuDeviceGet", get_device) &&
                     find("cuDeviceGetPCIBusId", get_bus_id) && find("cuCtxGetDevice", get_current);
  CudaView view;
  const auto bus_id = [&](int device) {
    std::array<char, 32> text{};
    return get_bus_id(text.data(), static_cast<int>(text.size()) - 1, device) == 0 ? std::string(text.data()) : "";
  };
  int count = 0;
  if (found && get_count(&count) == 0) {  // fails where the program has not called cuInit
    for (int number = 0; number < count; ++number) {
      int device = 0;
      view.bus_ids.push_back(get_device(&device, number) == 0 ? bus_id(device) : "");
    }
    int device = 0;
    if (get_current(&device) == 0) view.current = bus_id(device);
  }
  ::dlclose(library);  // releases this dlopen() alone
  return view;
}

DeviceChoice choose_device(const std::vector<ListedGpu>& gpus, const CudaView& cuda, const ReadVariable& variable,
                           const DeviceRequest& request) {
  const auto of_kind = [&](std::string_view kind) {
    std::vector<ListedGpu> some;
    std::ranges::copy_if(gpus, std::back_inserter(some),
                         [&](const ListedGpu& gpu) { return gpu.selector.starts_with(kind); });
    return some;
  };
  if (const auto nvidia = of_kind("nvml:"); !nvidia.empty()) {
    return choose_for_rank(nvidia, false, cuda, variable, request.cuda_number);
  }
  if (const auto amd = of_kind("zeusd:"); !amd.empty()) {
    return choose_for_rank(amd, true, {}, variable, request.cuda_number);
  }
  if (const auto simulated = of_kind("simulated:"); !simulated.empty()) {
    return choose_simulated(simulated, variable, request.cuda_number.value_or(request.rank));
  }
  return none("");
}

}  // namespace perseus::device
