// Devices, contexts, modules: cuInit, cuDevice*, cuCtx*, cuModule*, cuLaunchKernel.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "driver.h"
#include "simulation/simulated_gpu/find.h"

namespace perseus::simulated_cuda {
namespace {

/// A part of the PCI address "00000000:01:00.0".
int pci_part(const std::string& address, std::size_t from, std::size_t digits) {
  return static_cast<int>(std::strtol(address.substr(from, digits).c_str(), nullptr, 16));
}

/// Properties of the GPU itself come from its state file, with or without a context; nullopt: not one of those.
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

/// Properties that PERSEUS_SIMULATED_CUDA may change.
std::optional<int> chosen_attribute(const Knobs& knobs, int attribute) {
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

/// All other properties, the same for every simulated GPU.
int fixed_attribute(int attribute) {
  switch (attribute) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kWarpSize:
      return 32;
    case kMultiprocessorCount:
      return 108;
    case kComputeCapabilityMajor:
      return 8;
    case kCanMapHostMemory:
    case kUnifiedAddressing:
    case kStreamPrioritiesSupported:
      return 1;
    default:
      return 0;
  }
}

int attribute_of(const Device& device, const Knobs& knobs, int attribute, int& value) {
  constexpr int first = 1, last = 150;
  if (attribute < first || attribute > last) return kInvalidValue;
  std::optional<int> found = gpu_attribute(device, attribute);
  if (!found) found = chosen_attribute(knobs, attribute);
  value = found.value_or(fixed_attribute(attribute));
  return kSuccess;
}

Device* device_at(DeviceOrdinal ordinal) {
  Driver& d = driver();
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < d.devices.size() ? d.devices[ordinal].get() : nullptr;
}

/// Under the driver's mutex.
int make_context(DeviceOrdinal ordinal, bool primary, ContextHandle*& made) {
  Driver& d = driver();
  Device* const device = device_at(ordinal);
  if (device == nullptr) return kInvalidDevice;
  if (device->engine == nullptr) {
    const auto engine = Engine::start(device->path, d.knobs, {&read_host, &write_host});
    if (!engine) {
      std::fprintf(stderr, "simulated CUDA: %s\n", engine.error().message.c_str());
      return kUnknown;
    }
    device->engine = *engine;
  }
  auto context = std::make_unique<ContextHandle>();
  context->device = device;
  context->ordinal = ordinal;
  context->primary = primary;
  context->legacy = std::make_unique<StreamHandle>();
  context->legacy->context = context.get();
  context->legacy->legacy = true;
  context->legacy->stream = device->engine->make_stream(context.get(), true, false);
  made = context.get();
  d.contexts[made] = std::move(context);
  return kSuccess;
}

void end_context(ContextHandle& context) {
  Driver& d = driver();
  context.alive = false;
  context.engine().destroy_all(&context);
  std::erase_if(d.streams, [&](const auto& entry) { return entry.second->context == &context; });
  std::erase_if(d.events, [&](const auto& entry) { return entry.second->context == &context; });
  std::erase_if(d.modules, [&](const auto& entry) { return entry.second->context == &context; });
  std::erase_if(d.functions, [&](const auto& entry) { return entry.second->context == &context; });
}

int destroy_context(const char* function, CudaContext handle) {
  if (const int code = enter(function); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  ContextHandle* const context = find(d.contexts, handle);
  if (context == nullptr || !context->alive || context->primary) return kInvalidContext;
  end_context(*context);
  auto& stack = current_contexts();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
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

PERSEUS_CUDA_API int cuDevicePrimaryCtxRetain(CudaContext* context, DeviceOrdinal ordinal) {
  if (const int code = enter("cuDevicePrimaryCtxRetain"); code != 0) return code;
  if (context == nullptr) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  Device* const device = device_at(ordinal);
  if (device == nullptr) return kInvalidDevice;
  if (device->primary == nullptr) {
    if (const int code = make_context(ordinal, true, device->primary); code != 0) return code;
  }
  ++device->retained;
  *context = device->primary;
  return kSuccess;
}

PERSEUS_CUDA_API int cuDevicePrimaryCtxRelease_v2(DeviceOrdinal ordinal) {
  if (const int code = enter("cuDevicePrimaryCtxRelease_v2"); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  Device* const device = device_at(ordinal);
  if (device == nullptr) return kInvalidDevice;
  if (device->retained == 0) return kInvalidContext;
  if (--device->retained == 0) {
    end_context(*device->primary);
    device->primary = nullptr;
  }
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxCreate_v2(CudaContext* context, unsigned /*flags*/, DeviceOrdinal ordinal) {
  if (const int code = enter("cuCtxCreate_v2"); code != 0) return code;
  if (context == nullptr) return kInvalidValue;
  const std::lock_guard lock(driver().mutex);
  if (const int code = make_context(ordinal, false, *context); code != 0) return code;
  current_contexts().push_back(*context);
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxDestroy_v2(CudaContext context) { return destroy_context("cuCtxDestroy_v2", context); }

PERSEUS_CUDA_API int cuCtxGetCurrent(CudaContext* context) {
  if (const int code = enter("cuCtxGetCurrent"); code != 0) return code;
  if (context == nullptr) return kInvalidValue;
  *context = current_context();
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxSetCurrent(CudaContext handle) {
  if (const int code = enter("cuCtxSetCurrent"); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  auto& stack = current_contexts();
  if (handle == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return kSuccess;
  }
  ContextHandle* const context = find(d.contexts, handle);
  if (context == nullptr) return kInvalidContext;
  if (!context->alive) return kContextIsDestroyed;
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxPushCurrent_v2(CudaContext handle) {
  if (const int code = enter("cuCtxPushCurrent_v2"); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  ContextHandle* const context = find(d.contexts, handle);
  if (context == nullptr) return kInvalidContext;
  if (!context->alive) return kContextIsDestroyed;
  current_contexts().push_back(context);
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxPopCurrent_v2(CudaContext* context) {
  if (const int code = enter("cuCtxPopCurrent_v2"); code != 0) return code;
  auto& stack = current_contexts();
  if (stack.empty()) return kInvalidContext;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxGetDevice(DeviceOrdinal* device) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuCtxGetDevice", context); code != 0) return code;
  if (device == nullptr) return kInvalidValue;
  *device = context->ordinal;
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuCtxGetStreamPriorityRange", context); code != 0) return code;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}

PERSEUS_CUDA_API int cuCtxSynchronize() {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuCtxSynchronize", context); code != 0) return code;
  {
    const std::lock_guard lock(driver().mutex);
    if (const int code = check_unsafe_call(); code != 0) return code;
  }
  return context->engine().synchronize_all(context);
}

/// Accepts any image without compiling it.
PERSEUS_CUDA_API int cuModuleLoadData(CudaModule* module, const void* image) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuModuleLoadData", context); code != 0) return code;
  if (module == nullptr || image == nullptr) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  if (const int code = check_unsafe_call(); code != 0) return code;
  *module = keep(d.modules, ModuleHandle{context});
  return kSuccess;
}

PERSEUS_CUDA_API int cuModuleUnload(CudaModule module) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuModuleUnload", context); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  return d.modules.erase(module) == 1 ? kSuccess : kInvalidHandle;
}

/// A kernel is a computation of the simulated GPU, by its name.
PERSEUS_CUDA_API int cuModuleGetFunction(CudaFunction* function, CudaModule module, const char* name) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuModuleGetFunction", context); code != 0) return code;
  if (function == nullptr || name == nullptr) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  if (find(d.modules, module) == nullptr) return kInvalidHandle;
  const std::vector<std::string> names = context->engine().gpu().computations();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return kNotFound;
  *function = keep(d.functions, FunctionHandle{context, static_cast<int>(found - names.begin())});
  return kSuccess;
}

PERSEUS_CUDA_API int cuLaunchKernel(CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned /*shared_bytes*/,
                                    CudaStream stream, void** /*parameters*/, void** /*extra*/) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuLaunchKernel", context); code != 0) return code;
  for (const unsigned size : {grid_x, grid_y, grid_z, block_x, block_y, block_z}) {
    if (size == 0) return kInvalidValue;
  }
  Operation operation;
  operation.kind = Operation::Kind::kernel;
  {
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    const FunctionHandle* const found = find(d.functions, function);
    if (found == nullptr || found->context != context) return kInvalidHandle;
    operation.computation = found->computation;
  }
  return submit(*context, stream, std::move(operation));
}

}  // namespace perseus::simulated_cuda
