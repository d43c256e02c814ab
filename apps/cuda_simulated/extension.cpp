// What no real driver has: simulated_cuda/extension.h.
#include "simulated_cuda/extension.h"

#include <cstdio>

#include "driver.h"

using namespace perseus::cuda;

PERSEUS_CUDA_API int perseus_simulated_stream_await(CudaStream stream, std::uint64_t message, double latency_s) {
  ContextHandle* context = nullptr;
  if (const int code = enter(kStreamAwaitName, context); code != 0) return code;
  Operation operation;
  operation.kind = Operation::Kind::await_message;
  operation.message = message;
  operation.latency_s = latency_s;
  return submit(*context, stream, std::move(operation));
}

PERSEUS_CUDA_API int perseus_simulated_stream_tell(CudaStream stream, ReachedFunction reached, void* user) {
  ContextHandle* context = nullptr;
  if (const int code = enter(kStreamTellName, context); code != 0) return code;
  if (reached == nullptr) return kInvalidValue;
  Operation operation;
  operation.kind = Operation::Kind::tell;
  operation.reached = reached;
  operation.user = user;
  return submit(*context, stream, std::move(operation));
}

PERSEUS_CUDA_API int perseus_simulated_stream_stamp(CudaStream stream, Stamp* stamp) {
  ContextHandle* context = nullptr;
  if (const int code = enter(kStreamStampName, context); code != 0) return code;
  if (stamp == nullptr) return kInvalidValue;
  Operation operation;
  operation.kind = Operation::Kind::stamp;
  operation.stamp = stamp;
  return submit(*context, stream, std::move(operation));
}

PERSEUS_CUDA_API int perseus_simulated_deliver(CudaContext handle, std::uint64_t message, double time_s) {
  Driver& d = driver();
  Engine* engine = nullptr;
  {
    const std::lock_guard lock(d.mutex);
    const ContextHandle* const context = find(d.contexts, handle);
    if (context == nullptr) return kInvalidContext;
    engine = &context->engine();
  }
  return engine->deliver(message, time_s);
}

PERSEUS_CUDA_API int perseus_simulated_abort(CudaContext handle) {
  Driver& d = driver();
  Engine* engine = nullptr;
  {
    const std::lock_guard lock(d.mutex);
    const ContextHandle* const context = find(d.contexts, handle);
    if (context == nullptr) return kInvalidContext;
    engine = &context->engine();
  }
  engine->fail(kLaunchFailed);
  return kSuccess;
}

PERSEUS_CUDA_API int perseus_simulated_configure(const char* knobs) {
  auto parsed = parse_knobs(knobs == nullptr ? "" : knobs);
  if (!parsed) {
    std::fprintf(stderr, "%s\n", parsed.error().message.c_str());
    return kInvalidValue;
  }
  driver().knobs.set(*std::move(parsed));
  return kSuccess;
}
