// Functions of the CUDA driver that the client calls, found at run time.
//
// Output:  function pointers; optional ones are null in old drivers.
// Errors:  load() names the missing library or function.
// Cost:    one dlopen per process; the library is never closed.
// Threads: any; the functions are CUDA's.
// Source:  CUDA driver API: event, stream, execution control and stream memory operations. $PERSEUS_CUDA names a
//          library to use instead of libcuda.so.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace perseus::client {

struct CudaDriver {
  static constexpr int kSuccess = 0, kInvalidContext = 201, kNotReady = 600, kAlreadyRegistered = 712;
  static constexpr unsigned kEventDefault = 0, kEventDisableTiming = 2;
  static constexpr unsigned kStreamNonBlocking = 1;
  static constexpr int kCaptureRelaxed = 2;
  static constexpr unsigned kRegisterPortable = 1, kRegisterDeviceMap = 2;

  static Result<std::shared_ptr<const CudaDriver>> load();
  /// True if this process computes on GPUs, hence asynchronously: it has loaded the CUDA driver or HIP.
  static bool asynchronous_here();
  static bool hip_here();

  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*event_elapsed)(float*, void*, void*) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*context_current)(void**) = nullptr;
  int (*context_set)(void*) = nullptr;
  // Optional.
  int (*is_capturing)(void*, int*) = nullptr;
  int (*exchange_capture_mode)(int*) = nullptr;
  int (*write_value)(void*, std::uint64_t, std::uint32_t, unsigned) = nullptr;
  int (*host_register)(void*, std::size_t, unsigned) = nullptr;
  int (*host_device_pointer)(std::uint64_t*, void*, unsigned) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_wait_event)(void*, void*, unsigned) = nullptr;
  int (*launch_host_function)(void*, void (*)(void*), void*) = nullptr;

  /// This thread has a context: one that has called no function of a runtime has none.
  [[nodiscard]] bool has_context() const {
    void* context = nullptr;
    return context_current(&context) == kSuccess && context != nullptr;
  }
  /// A call returned that code only because this thread has no context: it may get one.
  [[nodiscard]] bool only_lacks_context(int code) const { return code == kInvalidContext && !has_context(); }
  /// True if a graph capture of that stream runs, or if the driver cannot tell: record nothing on it.
  [[nodiscard]] bool capturing(void* stream) const {
    int status = 0;
    return is_capturing != nullptr && (is_capturing(stream, &status) != kSuccess || status != 0);
  }
  /// For a thread of the client: makes the context current; its queries do not break captures of other threads.
  void enter(void* context) const {
    context_set(context);
    int mode = kCaptureRelaxed;
    if (exchange_capture_mode != nullptr) exchange_capture_mode(&mode);
  }
};

}  // namespace perseus::client
