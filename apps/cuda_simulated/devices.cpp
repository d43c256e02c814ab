// The driver and its devices: cuInit, cuDriverGetVersion, cuDeviceGet*.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "driver.h"
#include "simulation/simulated_gpu/find.h"

namespace perseus::simulated_cuda {
namespace {

/// A part of the PCI address "00000000:01:00.0".
int pci_part(const std::string& address, std::size_t from, std::size_t digits) {
  return static_cast<int>(std::strtol(address.substr(from, digits).c_str(), nullptr, 16));
}

/// A property of the GPU itself, from its state file, with or without a context.
std::optional<int> gpu_attribute(const Device& device, int attribute) {
  const auto gpu = simulated_gpu::SimulatedGpu::attach(device.path);
  const std::string pci = gpu ? (*gpu)->pci_bus_id() : "00000000:00:00.0";
  switch (attribute) {
    case kClockRate:
      return gpu ? 1000 * (*gpu)->clock().value() : 0;
    case kPciDomainId:
      return pci_part(pci, 0, 8);
    case kPciBusId:
      return pci_part(pci, 9, 2);
    case kPciDeviceId:
      return pci_part(pci, 12, 2);
    default:
      return std::nullopt;
  }
}

/// A capability that a knob switches.
std::optional<int> knob_attribute(const Knobs& knobs, int attribute) {
  switch (attribute) {
    case kCanUseHostPointerForRegisteredMemory:
      return knobs.host_pointer_is_device_pointer != 0;
    case kCanUseStreamMemoryOperationsV1:
    case kCanUse64BitStreamMemoryOperationsV1:
    case kCanUseStreamWaitValueNorV1:
      return knobs.stream_memory_operations_v1 != 0;
    case kHostRegisterSupported:
      return knobs.host_register != 0;
    case kCanUse64BitStreamMemoryOperations:
    case kCanUseStreamWaitValueNor:
      return knobs.stream_memory_operations != 0;
    default:
      return std::nullopt;
  }
}

/// Properties that every simulated GPU has; 0 for attributes that are not simulated.
std::optional<int> fixed_attribute(int attribute) {
  switch (attribute) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kWarpSize:
      return 32;
    case kMultiprocessorCount:
      return 108;
    case kCanMapHostMemory:
    case kUnifiedAddressing:
    case kStreamPrioritiesSupported:
      return 1;
    case kComputeCapabilityMajor:
      return 8;
    case kComputeCapabilityMinor:
    case kConcurrentKernels:
    case kCanFlushRemoteWrites:
      return 0;
    default:
      if (attribute < 1 || attribute > 150) return std::nullopt;
      return 0;
  }
}

int attribute_of(const Device& device, const Knobs& knobs, int attribute, int& value) {
  std::optional<int> found = gpu_attribute(device, attribute);
  if (!found) found = knob_attribute(knobs, attribute);
  if (!found) found = fixed_attribute(attribute);
  if (!found) return kInvalidValue;
  value = *found;
  return kSuccess;
}

/// "GPU-xxxxxxxx-xxxx-..." as 16 bytes.
void uuid_bytes(const std::string& uuid, char* bytes) {
  std::string digits;
  for (const char c : uuid.substr(uuid.starts_with("GPU-") ? 4 : 0)) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
  }
  digits.resize(32, '0');
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
}

int device_uuid(const char* function, char* uuid, DeviceOrdinal ordinal) {
  if (const int code = enter(function); code != 0) return code;
  if (uuid == nullptr) return kInvalidValue;
  const Device* const device = device_at(ordinal);
  if (device == nullptr) return kInvalidDevice;
  const auto gpu = simulated_gpu::SimulatedGpu::attach(device->path);
  if (!gpu) return kUnknown;
  uuid_bytes((*gpu)->uuid(), uuid);
  return kSuccess;
}

}  // namespace

Device* device_at(DeviceOrdinal ordinal) {
  Driver& d = driver();
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < d.devices.size() ? d.devices[ordinal].get() : nullptr;
}

PERSEUS_CUDA_API int cuInit(unsigned flags) {
  if (Engine::in_host_function()) return kNotPermitted;
  if (flags != 0) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  if (d.process == getpid()) return d.knobs.fault("cuInit");
  if (d.process != 0) return kNotInitialized;  // a forked child
  const char* const text = std::getenv("PERSEUS_SIMULATED_CUDA");
  auto knobs = parse_knobs(text == nullptr ? "" : text);
  if (!knobs) {
    std::fprintf(stderr, "%s\n", knobs.error().message.c_str());
    return kInvalidValue;
  }
  d.knobs.set(*std::move(knobs));
  if (const int code = d.knobs.fault("cuInit"); code != 0) return code;
  for (const std::string& file : simulated_gpu::simulated_gpu_files()) {
    d.devices.push_back(std::make_unique<Device>());
    d.devices.back()->path = file;
  }
  if (d.devices.empty()) return kNoDevice;
  d.process = getpid();
  return kSuccess;
}

PERSEUS_CUDA_API int cuDriverGetVersion(int* version) {
  if (version == nullptr) return kInvalidValue;
  *version = static_cast<int>(driver().knobs.get().driver_version);
  return kSuccess;
}

PERSEUS_CUDA_API int cuDeviceGetCount(int* count) {
  if (const int code = enter("cuDeviceGetCount"); code != 0) return code;
  if (count == nullptr) return kInvalidValue;
  *count = static_cast<int>(driver().devices.size());
  return kSuccess;
}

PERSEUS_CUDA_API int cuDeviceGet(DeviceOrdinal* device, int ordinal) {
  if (const int code = enter("cuDeviceGet"); code != 0) return code;
  if (device == nullptr) return kInvalidValue;
  if (device_at(ordinal) == nullptr) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

PERSEUS_CUDA_API int cuDeviceGetName(char* name, int bytes, DeviceOrdinal ordinal) {
  if (const int code = enter("cuDeviceGetName"); code != 0) return code;
  if (name == nullptr || bytes < 1) return kInvalidValue;
  if (device_at(ordinal) == nullptr) return kInvalidDevice;
  std::snprintf(name, static_cast<std::size_t>(bytes), "Perseus simulated GPU (no real device)");
  return kSuccess;
}

PERSEUS_CUDA_API int cuDeviceGetAttribute(int* value, int attribute, DeviceOrdinal ordinal) {
  if (const int code = enter("cuDeviceGetAttribute"); code != 0) return code;
  if (value == nullptr) return kInvalidValue;
  const Device* const device = device_at(ordinal);
  if (device == nullptr) return kInvalidDevice;
  return attribute_of(*device, driver().knobs.get(), attribute, *value);
}

PERSEUS_CUDA_API int cuDeviceGetPCIBusId(char* text, int bytes, DeviceOrdinal ordinal) {
  if (const int code = enter("cuDeviceGetPCIBusId"); code != 0) return code;
  if (text == nullptr || bytes < 1) return kInvalidValue;
  const Device* const device = device_at(ordinal);
  if (device == nullptr) return kInvalidDevice;
  const auto gpu = simulated_gpu::SimulatedGpu::attach(device->path);
  if (!gpu) return kUnknown;
  // CUDA's domain has four digits, NVML's eight.
  const std::string address = (*gpu)->pci_bus_id();
  if (static_cast<std::size_t>(bytes) < address.size() - 3) return kInvalidValue;
  std::snprintf(text, static_cast<std::size_t>(bytes), "%s", address.substr(4).c_str());
  return kSuccess;
}

PERSEUS_CUDA_API int cuDeviceGetUuid(char* uuid, DeviceOrdinal device) {
  return device_uuid("cuDeviceGetUuid", uuid, device);
}
PERSEUS_CUDA_API int cuDeviceGetUuid_v2(char* uuid, DeviceOrdinal device) {
  return device_uuid("cuDeviceGetUuid_v2", uuid, device);
}

}  // namespace perseus::simulated_cuda
