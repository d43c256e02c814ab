#include "planning/partitioner/gpu_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/split.h"

namespace perseus::partitioner {
namespace {

// Assumed for all GPUs; docs/partition.md compares the results with measurements.
constexpr double kMatmulEfficiency = 0.8;
constexpr double kMemoryEfficiency = 0.8;
constexpr double kMemoryActivity = 0.7;  ///< dynamic power of a kernel that only moves bytes; compute-bound is 1
constexpr Seconds kLaunchLatency{5e-6};

// Figures of each GPU, in the order of GpuModel's fields, with their sources:
//   clocks       A40, A100: the paper, section 6.2, and its profiles (every 15 MHz). H100, H200: 1980 MHz as the paper
//                quotes NVIDIA's white paper. Lowest clock and step of Hopper, and all of Blackwell's but the 1965 MHz
//                that its driver lists: assumed.
//   peaks        SMs * FLOPs per clock and SM * highest clock, dense. A40: 84 * 1024; A100: 108 * 2048; H100, H200:
//                132 * 4096; B200: 148 * 8192 for bf16, half of it for tf32. The data sheets' 149.7, 312, 989 and 2250
//                TFLOPS are the same at the clock that they state peaks at: 1740, 1410, 1830 and 1856 MHz.
//   memory       data sheets: 696, 1935 (80 GB), 2039 (80 GB), 3350, 4800, 8000 GB/s.
//   link         one direction. PCIe 4.0 x16: 32 GB/s; NVLink 3, 4 and 5: half of the data sheets' 600, 900, 1800 GB/s.
//   network      a share of the node's, one direction, data sheets: DGX A100 has 200 Gb/s a GPU, DGX H100, H200 and
//                B200 400 Gb/s; A40 (100 Gb/s) and A100-PCIe (as SXM): assumed.
//   power limit  data sheets; A100-SXM: 500 W, since the published profile draws up to 480 W where the data sheet has
//                400.
//   power        static and dynamic power, voltage knee and floor: assumed. A40, A100: estimated by hand with the
//                published profiles as a guide; the others: A100's shape, scaled to their limit.
//   blocking     A40, A100-SXM: published with the profiles (70.38, 83.64 W); the others: assumed.
constexpr std::array kGpus = {
    GpuModel{"A40", Megahertz(210), Megahertz(1740), Megahertz(15), 74.8e12, 149.7e12, 696e9, 32e9, 12.5e9, Watts(300),
             Watts(90), Watts(280), 0.63, 0.80, Watts(70.38)},
    GpuModel{"A100-PCIe", Megahertz(210), Megahertz(1410), Megahertz(15), 156e12, 312e12, 1935e9, 32e9, 25e9,
             Watts(300), Watts(60), Watts(360), 0.79, 0.86, Watts(75)},
    GpuModel{"A100-SXM", Megahertz(210), Megahertz(1410), Megahertz(15), 156e12, 312e12, 2039e9, 300e9, 25e9,
             Watts(500), Watts(60), Watts(500), 0.79, 0.86, Watts(83.64)},
    GpuModel{"H100-SXM", Megahertz(345), Megahertz(1980), Megahertz(15), 535.3e12, 1070.6e12, 3350e9, 450e9, 50e9,
             Watts(700), Watts(105), Watts(725), 0.70, 0.80, Watts(140)},
    GpuModel{"H200-SXM", Megahertz(345), Megahertz(1980), Megahertz(15), 535.3e12, 1070.6e12, 4800e9, 450e9, 50e9,
             Watts(700), Watts(105), Watts(725), 0.70, 0.80, Watts(140)},
    GpuModel{"B200-SXM", Megahertz(345), Megahertz(1965), Megahertz(15), 1191e12, 2382e12, 8000e9, 900e9, 50e9,
             Watts(1000), Watts(150), Watts(1036), 0.70, 0.80, Watts(200)},
};

/// How drivers name these GPUs: a word for the model, and one that begins like the form ("SXM4") or not like another.
struct DeviceWords {
  std::string_view name, model, form, other_form;
};
constexpr std::array kDevices = {
    DeviceWords{"A40", "a40", "", ""},          DeviceWords{"A100-PCIe", "a100", "pcie", ""},
    DeviceWords{"A100-SXM", "a100", "sxm", ""}, DeviceWords{"H100-SXM", "h100", "hbm3", ""},
    DeviceWords{"H200-SXM", "h200", "", "nvl"}, DeviceWords{"B200-SXM", "b200", "", ""},
};

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

struct TimeEnergy {
  Seconds time;
  Joules energy;
};

class Roofline {
 public:
  Roofline(const GpuModel& gpu, Precision precision)
      : gpu_(gpu), peak_(precision == Precision::tf32 ? gpu.tf32_flops_per_s : gpu.bf16_flops_per_s) {}

  [[nodiscard]] TimeEnergy run(const std::vector<Kernel>& kernels, double clock_share) const {
    const double voltage =
        std::max(gpu_.voltage_floor, 1 - (1 - clock_share) * (1 - gpu_.voltage_floor) / (1 - gpu_.voltage_knee));
    const Watts dynamic = gpu_.dynamic_power * (clock_share * voltage * voltage);
    TimeEnergy sum;
    for (const Kernel& kernel : kernels) {
      const Seconds compute(kernel.flops / (kMatmulEfficiency * kernel.speed * peak_ * clock_share));
      const Seconds memory(kernel.bytes / (kMemoryEfficiency * gpu_.bytes_per_s));
      const Seconds link(kernel.link_bytes / gpu_.link_bytes_per_s + kernel.network_bytes / gpu_.network_bytes_per_s);
      const Seconds busy = std::max(compute, memory);
      const Seconds time = busy + link + kernel.launches * kLaunchLatency;
      // Busy seconds at full dynamic power; the two overlap, so together they are at most the kernel's.
      const Seconds active = std::min(busy, compute + kMemoryActivity * memory);
      sum.time += time;
      sum.energy += gpu_.static_power * (time - link) + gpu_.blocking_power * link + dynamic * active;
    }
    return sum;
  }

 private:
  const GpuModel& gpu_;
  double peak_;
};

}  // namespace

std::span<const GpuModel> known_gpus() { return kGpus; }

Result<GpuModel> gpu_named(std::string_view name) {
  for (const GpuModel& gpu : kGpus) {
    if (lower(gpu.name) == lower(name)) return gpu;
  }
  return Error{ErrorCode::usage, fmt::format("unknown GPU '{}'; allowed: {}", name.substr(0, 64), gpu_names())};
}

std::optional<GpuModel> gpu_of_device(std::string_view device_name) {
  std::string words = lower(device_name);
  std::ranges::replace(words, '-', ' ');
  const std::vector<std::string_view> parts = split(words, ' ');
  const auto has = [&](std::string_view begin) {
    return std::ranges::any_of(parts, [&](std::string_view part) { return part.starts_with(begin); });
  };
  for (const DeviceWords& gpu : kDevices) {
    const bool is_it = std::ranges::find(parts, gpu.model) != parts.end() && (gpu.form.empty() || has(gpu.form)) &&
                       (gpu.other_form.empty() || !has(gpu.other_form));
    if (is_it) return *gpu_named(gpu.name);
  }
  return std::nullopt;
}

std::string gpu_names() {
  std::vector<std::string_view> names;
  for (const GpuModel& gpu : kGpus) names.emplace_back(gpu.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Megahertz> clocks_of(const GpuModel& gpu) {
  std::vector<Megahertz> clocks;
  for (int clock = gpu.highest.value(); clock >= gpu.lowest.value(); clock -= gpu.step.value()) {
    clocks.emplace_back(clock);
  }
  return clocks;
}

std::vector<model::LayerCost> costs_of(const LayerWork& work, const GpuModel& gpu, Precision precision,
                                       std::span<const Megahertz> clocks) {
  const Roofline roofline(gpu, precision);
  // The instruction at the highest clock from `clock` down that keeps within the power limit.
  const auto run = [&](const std::vector<Kernel>& kernels, Megahertz clock) {
    for (int mhz = clock.value();; mhz -= gpu.step.value()) {
      const TimeEnergy ran = roofline.run(kernels, static_cast<double>(mhz) / gpu.highest.value());
      if (ran.time == Seconds(0) || ran.energy / ran.time <= gpu.power_limit) return ran;
      if (mhz - gpu.step.value() < gpu.lowest.value()) return ran;
    }
  };
  std::vector<model::LayerCost> costs;
  costs.reserve(clocks.size());
  for (const Megahertz clock : clocks) {
    const TimeEnergy forward = run(work.forward, clock);
    const TimeEnergy backward = run(work.backward, clock);
    costs.push_back({clock, forward.time, backward.time, forward.energy, backward.energy});
  }
  return costs;
}

std::vector<model::Layer> layers_on(const std::vector<LayerWork>& work, const GpuModel& gpu, Precision precision) {
  const std::vector<Megahertz> clocks = clocks_of(gpu);
  std::vector<model::Layer> layers;
  layers.reserve(work.size());
  for (const LayerWork& layer : work)
    layers.push_back({layer.name, layer.kind, costs_of(layer, gpu, precision, clocks)});
  return layers;
}

}  // namespace perseus::partitioner
