// Contexts: cuDevicePrimaryCtx*, cuCtx*.
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "driver.h"

namespace perseus::simulated_cuda {
namespace {

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

}  // namespace

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

}  // namespace perseus::simulated_cuda
