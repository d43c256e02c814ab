// NVML's functions about energy, power and power limits over simulated GPUs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "nvml_call.h"

using namespace perseus;
using namespace perseus::nvml_simulated;

namespace {

unsigned milliwatts(Watts power) { return static_cast<unsigned>(std::lround(power.value() * 1000)); }
unsigned long long millijoules(Joules energy) { return static_cast<unsigned long long>(energy.value() * 1000); }
long long unix_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

unsigned least_limit_mw(const simulated_gpu::SimulatedDriver& gpu) { return milliwatts(gpu.power_limit_range().first); }
unsigned most_limit_mw(const simulated_gpu::SimulatedDriver& gpu) { return milliwatts(gpu.power_limit_range().second); }

int set_limit(simulated_gpu::SimulatedDriver& gpu, unsigned limit_mw) {
  return gpu.set_power_limit(Watts(limit_mw / 1000.0));
}

void put_number(device::nvml::FieldValue& field, unsigned number) {
  field.valueType = device::nvml::type_uint;
  field.value.ui = number;
}
void put_number(device::nvml::FieldValue& field, unsigned long long number) {
  field.valueType = device::nvml::type_ull;
  field.value.ull = number;
}

void fill(simulated_gpu::SimulatedDriver& gpu, device::nvml::FieldValue& field) {
  const unsigned scope = field.scopeId;
  field.timestamp = unix_us();
  field.latencyUsec = 0;
  field.nvmlReturn = kSuccess;
  field.value.ull = 0;
  switch (field.fieldId) {
    case device::nvml::field_total_energy:
    case device::nvml::field_energy:
      put_number(field, millijoules(gpu.counter()));
      break;
    case device::nvml::field_power_average:
      put_number(field, milliwatts(gpu.average_power()));
      break;
    case device::nvml::field_power_instant:
      put_number(field, milliwatts(gpu.power()));
      break;
    case device::nvml::field_power_min_limit:
      put_number(field, least_limit_mw(gpu));
      break;
    case device::nvml::field_power_max_limit:
      put_number(field, most_limit_mw(gpu));
      break;
    case device::nvml::field_power_default_limit:
      put_number(field, milliwatts(gpu.default_power_limit()));
      break;
    case device::nvml::field_power_current_limit:
    case device::nvml::field_power_requested_limit:
      put_number(field, milliwatts(gpu.power_limit()));
      break;
    case device::nvml::field_time_below_power_cap:
      put_number(field, static_cast<unsigned long long>(gpu.power_capped_for().value() * 1e9));
      break;
    case device::nvml::field_power_smoothing:
      put_number(field, gpu.power_smoothing() ? 1U : 0U);
      break;
    default:
      field.nvmlReturn = device::nvml_code::kNotSupported;
  }
  const bool has_scope = field.fieldId == device::nvml::field_energy ||
                         field.fieldId == device::nvml::field_power_average ||
                         field.fieldId == device::nvml::field_power_instant;
  if (has_scope && scope != device::nvml::scope_gpu) field.nvmlReturn = device::nvml_code::kNotSupported;
}

}  // namespace

NVML_API int nvmlDeviceGetTotalEnergyConsumption(device::nvml::Device device, unsigned long long* energy_mj) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(energy_mj, millijoules(gpu.counter())); });
}
NVML_API int nvmlDeviceGetPowerUsage(device::nvml::Device device, unsigned* power_mw) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(power_mw, milliwatts(gpu.average_power())); });
}
NVML_API int nvmlDeviceGetFieldValues(device::nvml::Device device, int count, device::nvml::FieldValue* fields) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (count < 1 || fields == nullptr) return device::nvml_code::kInvalidArgument;
    for (int i = 0; i < count; ++i) fill(gpu, fields[i]);
    return kSuccess;
  });
}
NVML_API int nvmlDeviceGetSamples(device::nvml::Device device, int type, unsigned long long after_us, int* value_type,
                                  unsigned* count, device::nvml::Sample* samples) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    constexpr int total_power = 0, room = 120;
    if (type != total_power) return device::nvml_code::kNotSupported;
    if (count == nullptr || value_type == nullptr) return device::nvml_code::kInvalidArgument;
    *value_type = device::nvml::type_uint;
    std::vector<device::nvml::Sample> list;
    const double to_unix_s = static_cast<double>(unix_us()) * 1e-6 - gpu.now_s();
    for (const auto& [end_s, power] : gpu.power_samples(Seconds(0.02), room)) {
      device::nvml::Sample sample{static_cast<unsigned long long>((end_s + to_unix_s) * 1e6), {}};
      sample.value.ui = milliwatts(power);
      if (sample.timeStampUs > after_us) list.push_back(sample);
    }
    if (samples == nullptr) {
      *count = room;
      return kSuccess;
    }
    if (list.empty()) return device::nvml_code::kNotFound;
    return put(list, count, samples);
  });
}
NVML_API int nvmlDeviceGetPowerManagementLimit(device::nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(limit_mw, milliwatts(gpu.power_limit())); });
}
NVML_API int nvmlDeviceGetEnforcedPowerLimit(device::nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(limit_mw, milliwatts(gpu.power_limit())); });
}
NVML_API int nvmlDeviceGetPowerManagementDefaultLimit(device::nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) {
    return put(limit_mw, milliwatts(gpu.default_power_limit()));
  });
}
NVML_API int nvmlDeviceGetPowerManagementLimitConstraints(device::nvml::Device device, unsigned* least_mw,
                                                          unsigned* most_mw) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) {
    return std::max(put(least_mw, least_limit_mw(gpu)), put(most_mw, most_limit_mw(gpu)));
  });
}
NVML_API int nvmlDeviceGetPowerManagementMode(device::nvml::Device device, int* mode) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return put(mode, 1); });
}
NVML_API int nvmlDeviceSetPowerManagementLimit(device::nvml::Device device, unsigned limit_mw) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return set_limit(gpu, limit_mw); });
}
NVML_API int nvmlDeviceSetPowerManagementLimit_v2(device::nvml::Device device, device::nvml::PowerValue* limit) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    constexpr unsigned version = 0x0200000C;
    constexpr int other_version = 25;
    if (limit == nullptr) return device::nvml_code::kInvalidArgument;
    if (limit->version != version) return other_version;
    if (limit->powerScope != device::nvml::scope_gpu) return device::nvml_code::kNotSupported;
    return set_limit(gpu, limit->powerValueMw);
  });
}
