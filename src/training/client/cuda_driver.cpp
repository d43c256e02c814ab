#include "training/client/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

namespace perseus::client {
namespace {

std::string library_name() {
  const char* const given = std::getenv("PERSEUS_CUDA");
  return given != nullptr && *given != '\0' ? given : "libcuda.so.1";
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/// Only if the program has loaded it already: it is neither loaded nor initialized here.
bool loaded(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library != nullptr) ::dlclose(library);  // releases this dlopen() alone
  return library != nullptr;
}

}  // namespace

Result<std::shared_ptr<const CudaDriver>> CudaDriver::load() {
  const std::string name = library_name();
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{ErrorCode::unavailable, fmt::format("no CUDA: {}", ::dlerror())};
  auto driver = std::make_shared<CudaDriver>();
  if (!find(library, "cuEventCreate", driver->event_create) || !find(library, "cuEventRecord", driver->event_record) ||
      !find(library, "cuEventQuery", driver->event_query) ||
      !find(library, "cuEventElapsedTime", driver->event_elapsed) ||
      !find(library, "cuEventDestroy_v2", driver->event_destroy) ||
      !find(library, "cuCtxGetCurrent", driver->context_current) ||
      !find(library, "cuCtxSetCurrent", driver->context_set)) {
    return Error{ErrorCode::unavailable, fmt::format("{} lacks functions for events", name)};
  }
  find(library, "cuStreamIsCapturing", driver->is_capturing);
  find(library, "cuThreadExchangeStreamCaptureMode", driver->exchange_capture_mode);
  // The first version needs a setting of the kernel module, the second (CUDA 11.7) does not.
  if (!find(library, "cuStreamWriteValue32_v2", driver->write_value)) {
    find(library, "cuStreamWriteValue32", driver->write_value);
  }
  find(library, "cuMemHostRegister_v2", driver->host_register);
  find(library, "cuMemHostGetDevicePointer_v2", driver->host_device_pointer);
  find(library, "cuStreamCreate", driver->stream_create);
  find(library, "cuStreamWaitEvent", driver->stream_wait_event);
  find(library, "cuLaunchHostFunc", driver->launch_host_function);
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

bool CudaDriver::asynchronous_here() {
  // On any thread: programs that compute on GPUs load the driver, NVML does not.
  return hip_here() || loaded(library_name().c_str());
}

bool CudaDriver::hip_here() {
  for (const char* const hip : {"libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"}) {
    if (loaded(hip)) return true;
  }
  return false;
}

}  // namespace perseus::client
