// Streams, events, host functions.
#include <algorithm>

#include "driver.h"

namespace perseus::simulated_cuda {
namespace {

int create_stream(const char* function, CudaStream* stream, unsigned flags, int priority) {
  ContextHandle* context = nullptr;
  if (const int code = enter(function, context); code != 0) return code;
  if (stream == nullptr || flags > kStreamNonBlocking) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  StreamHandle made;
  made.context = context;
  made.flags = flags;
  made.priority = priority;
  made.stream = context->engine().make_stream(context, false, flags == kStreamDefault);
  *stream = keep(d.streams, std::move(made));
  return kSuccess;
}

/// Checks for calls that query or wait for a stream; returns the stream, if no capture of it runs.
int idle_stream(ContextHandle& context, CudaStream handle, std::shared_ptr<Stream>& stream, bool may_wait) {
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  const StreamHandle* const found = find_stream(context, handle);
  if (found == nullptr) return kInvalidHandle;
  if (const int code = check_implicit(context, *found); code != 0) return code;
  if (Capture* const capture = capture_of(*found); capture != nullptr) {
    capture->invalid = true;
    return kStreamCaptureUnsupported;
  }
  if (may_wait) {
    if (const int code = check_unsafe_call(); code != 0) return code;
  }
  stream = found->stream;
  return kSuccess;
}

template <class Value, class Member>
int get(const char* function, CudaStream handle, Value* value, Member StreamHandle::*member) {
  ContextHandle* context = nullptr;
  if (const int code = enter(function, context); code != 0) return code;
  if (value == nullptr) return kInvalidValue;
  const std::lock_guard lock(driver().mutex);
  const StreamHandle* const stream = find_stream(*context, handle);
  if (stream == nullptr) return kInvalidHandle;
  *value = stream->*member;
  return kSuccess;
}

int record(const char* function, CudaEvent handle, CudaStream stream_handle, unsigned flags) {
  ContextHandle* context = nullptr;
  if (const int code = enter(function, context); code != 0) return code;
  if (flags > kRecordExternal) return kInvalidValue;
  Driver& d = driver();
  auto made = std::make_shared<EventRecord>();
  Operation operation;
  operation.kind = Operation::Kind::record;
  operation.record = made;
  {
    const std::lock_guard lock(d.mutex);
    EventHandle* const event = find(d.events, handle);
    StreamHandle* const stream = find_stream(*context, stream_handle);
    if (event == nullptr || stream == nullptr || event->context != stream->context) return kInvalidHandle;
    if (const int code = check_implicit(*context, *stream); code != 0) return code;
    if (Capture* const capture = capture_of(*stream); capture != nullptr && flags == kRecordDefault) {
      // No node: it stands for the previously captured work, for streams of the same capture to wait for.
      if (capture->invalid) return kStreamCaptureInvalidated;
      event->capture = stream->capture;
      event->captured_in = stream;
      event->captured_at = ++capture->parts[stream].recorded;
      event->record = nullptr;
      return kSuccess;
    }
    event->capture.reset();
    if (capture_of(*stream) != nullptr) {
      event->external = made;  // a node, which records at each launch
    } else {
      event->record = made;
    }
  }
  return submit(*context, stream_handle, std::move(operation));
}

/// The event's latest record, for a call that queries or waits; null: it was never recorded.
int latest(ContextHandle& context, CudaEvent handle, std::shared_ptr<EventRecord>& found) {
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  const EventHandle* const event = find(d.events, handle);
  if (event == nullptr || event->context->device != context.device) return kInvalidHandle;
  if (event->capture) {
    event->capture->invalid = true;
    return kCapturedEvent;
  }
  if (const int code = check_unsafe_call(); code != 0) return code;
  found = event->record;
  return kSuccess;
}

}  // namespace

PERSEUS_CUDA_API int cuStreamCreate(CudaStream* stream, unsigned flags) {
  return create_stream("cuStreamCreate", stream, flags, 0);
}
PERSEUS_CUDA_API int cuStreamCreateWithPriority(CudaStream* stream, unsigned flags, int priority) {
  return create_stream("cuStreamCreateWithPriority", stream, flags, priority);
}

PERSEUS_CUDA_API int cuStreamDestroy_v2(CudaStream handle) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuStreamDestroy_v2", context); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  StreamHandle* const stream = find(d.streams, handle);
  if (stream == nullptr) return kInvalidHandle;
  if (Capture* const capture = capture_of(*stream); capture != nullptr) capture->invalid = true;
  stream->context->engine().destroy(*stream->stream);
  d.streams.erase(handle);
  return kSuccess;
}

PERSEUS_CUDA_API int cuStreamGetCtx(CudaStream handle, CudaContext* owner) {
  return get("cuStreamGetCtx", handle, owner, &StreamHandle::context);
}

PERSEUS_CUDA_API int cuStreamGetFlags(CudaStream handle, unsigned* flags) {
  return get("cuStreamGetFlags", handle, flags, &StreamHandle::flags);
}

PERSEUS_CUDA_API int cuStreamGetPriority(CudaStream handle, int* priority) {
  return get("cuStreamGetPriority", handle, priority, &StreamHandle::priority);
}

PERSEUS_CUDA_API int cuStreamQuery(CudaStream handle) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuStreamQuery", context); code != 0) return code;
  std::shared_ptr<Stream> stream;
  if (const int code = idle_stream(*context, handle, stream, true); code != 0) return code;
  return context->engine().query(*stream);
}

PERSEUS_CUDA_API int cuStreamSynchronize(CudaStream handle) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuStreamSynchronize", context); code != 0) return code;
  std::shared_ptr<Stream> stream;
  if (const int code = idle_stream(*context, handle, stream, true); code != 0) return code;
  return context->engine().synchronize(*stream);
}

PERSEUS_CUDA_API int cuEventCreate(CudaEvent* event, unsigned flags) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuEventCreate", context); code != 0) return code;
  if (event == nullptr || flags > 7) return kInvalidValue;
  if ((flags & kEventInterprocess) != 0 && (flags & kEventDisableTiming) == 0) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  EventHandle made;
  made.context = context;
  made.flags = flags;
  *event = keep(d.events, std::move(made));
  return kSuccess;
}

PERSEUS_CUDA_API int cuEventDestroy_v2(CudaEvent event) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuEventDestroy_v2", context); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  return d.events.erase(event) == 1 ? kSuccess : kInvalidHandle;
}

PERSEUS_CUDA_API int cuEventRecord(CudaEvent event, CudaStream stream) {
  return record("cuEventRecord", event, stream, kRecordDefault);
}
PERSEUS_CUDA_API int cuEventRecordWithFlags(CudaEvent event, CudaStream stream, unsigned flags) {
  return record("cuEventRecordWithFlags", event, stream, flags);
}

PERSEUS_CUDA_API int cuEventQuery(CudaEvent handle) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuEventQuery", context); code != 0) return code;
  std::shared_ptr<EventRecord> found;
  if (const int code = latest(*context, handle, found); code != 0) return code;
  return found ? context->engine().query(*found) : kSuccess;
}

PERSEUS_CUDA_API int cuEventSynchronize(CudaEvent handle) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuEventSynchronize", context); code != 0) return code;
  std::shared_ptr<EventRecord> found;
  if (const int code = latest(*context, handle, found); code != 0) return code;
  return found ? context->engine().synchronize(*found) : kSuccess;
}

PERSEUS_CUDA_API int cuEventElapsedTime(float* milliseconds, CudaEvent from, CudaEvent to) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuEventElapsedTime", context); code != 0) return code;
  if (milliseconds == nullptr) return kInvalidValue;
  Driver& d = driver();
  std::shared_ptr<EventRecord> first, second;
  {
    const std::lock_guard lock(d.mutex);
    const EventHandle* const a = find(d.events, from);
    const EventHandle* const b = find(d.events, to);
    if (a == nullptr || b == nullptr || a->context != b->context) return kInvalidHandle;
    if (((a->flags | b->flags) & kEventDisableTiming) != 0) return kInvalidHandle;
    if (a->capture || b->capture) return kCapturedEvent;
    if (!a->record || !b->record) return kInvalidHandle;
    first = a->record;
    second = b->record;
  }
  return context->engine().elapsed_ms(*first, *second, *milliseconds);
}

PERSEUS_CUDA_API int cuStreamWaitEvent(CudaStream stream_handle, CudaEvent handle, unsigned flags) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuStreamWaitEvent", context); code != 0) return code;
  if (flags > 1) return kInvalidValue;
  Driver& d = driver();
  Operation operation;
  operation.kind = Operation::Kind::wait_event;
  {
    const std::lock_guard lock(d.mutex);
    const EventHandle* const event = find(d.events, handle);
    StreamHandle* const stream = find_stream(*context, stream_handle);
    if (event == nullptr || stream == nullptr) return kInvalidHandle;
    Capture* const own = capture_of(*stream);
    if (event->capture) {
      // The stream joins the capture, or two captures would be merged.
      if (event->capture->invalid) return kStreamCaptureInvalidated;
      if (stream->legacy) return kStreamCaptureImplicit;
      if (own != nullptr && stream->capture != event->capture) {
        own->invalid = event->capture->invalid = true;
        return kStreamCaptureIsolation;
      }
      Capture& capture = *event->capture;
      stream->capture = event->capture;
      ++capture.parts[stream].recorded;
      capture.parts[event->captured_in].joined = std::max(capture.parts[event->captured_in].joined, event->captured_at);
      return kSuccess;
    }
    if (own != nullptr && flags == 0 && event->record) {
      own->invalid = true;
      return kStreamCaptureIsolation;
    }
    if (!event->record) return kSuccess;  // nothing was recorded: nothing to wait for
    operation.record = event->record;
  }
  return submit(*context, stream_handle, std::move(operation));
}

PERSEUS_CUDA_API int cuLaunchHostFunc(CudaStream stream, HostFunction function, void* user) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuLaunchHostFunc", context); code != 0) return code;
  if (driver().knobs.get().host_functions == 0) return kNotSupported;
  if (function == nullptr) return kInvalidValue;
  Operation operation;
  operation.kind = Operation::Kind::host_function;
  operation.function = function;
  operation.user = user;
  return submit(*context, stream, std::move(operation));
}

}  // namespace perseus::simulated_cuda
