// GPUs as a roofline with a clock: compute speed, memory speed and power of a kernel.
//
// Problem: estimate time and energy of a layer at every clock without having the GPU.
// Model:   per kernel:
//            time(f)  = max(flops / (kMatmulEfficiency * peak * f/f_max), bytes / (kMemoryEfficiency * bandwidth))
//                       + link_bytes / link + network_bytes / network + launches * kLaunchLatency
//            power(f) = static + dynamic * f/f_max * (V(f)/V_max)^2 * min(1, compute share + kMemoryActivity *
//                       memory share); blocking power while it sends
//          V is constant up to the knee and linear from there. A layer whose mean power exceeds the limit runs as at
//          the highest clock within it, as the hardware does.
// Input:   a layer's kernels (planning/partitioner/layer_work.h).
// Output:  LayerCosts at the requested clocks.
// Errors:  an unknown name (lists the known ones).
// Cost:    O(kernels * clocks).
// Threads: pure functions.
// Source:  peaks, bandwidths, limits and clocks are from the vendor's data sheets; the rest are assumptions:
//          gpu_model.cpp has the sources, docs/partition.md the error of the estimates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/layer.h"
#include "planning/partitioner/layer_work.h"

namespace perseus::partitioner {

struct GpuModel {
  std::string_view name;
  Megahertz lowest, highest, step;  ///< SM clocks
  double tf32_flops_per_s;          ///< dense, at the highest clock
  double bf16_flops_per_s;
  double bytes_per_s;          ///< memory
  double link_bytes_per_s;     ///< to the other GPUs of its node, one direction
  double network_bytes_per_s;  ///< to other nodes, its share, one direction
  Watts power_limit;
  Watts static_power;
  Watts dynamic_power;   ///< at the highest clock and full load; static + dynamic may exceed the limit
  double voltage_knee;   ///< share of the highest clock up to which the voltage is lowest
  double voltage_floor;  ///< lowest voltage as a share of that at the highest clock
  Watts blocking_power;  ///< while waiting for another GPU
};

std::span<const GpuModel> known_gpus();
Result<GpuModel> gpu_named(std::string_view name);
/// The known GPU that a driver names so ("NVIDIA A100-SXM4-80GB"); nothing: another GPU.
std::optional<GpuModel> gpu_of_device(std::string_view device_name);
/// Of all known GPUs, separated by commas.
std::string gpu_names();

/// All clocks from `lowest` up, highest first.
std::vector<Megahertz> clocks_of(const GpuModel& gpu);

/// One cost per clock, in the order of `clocks`.
std::vector<model::LayerCost> costs_of(const LayerWork& work, const GpuModel& gpu, Precision precision,
                                       std::span<const Megahertz> clocks);

/// The layers with their costs at all clocks of `gpu`.
std::vector<model::Layer> layers_on(const std::vector<LayerWork>& work, const GpuModel& gpu, Precision precision);

}  // namespace perseus::partitioner
