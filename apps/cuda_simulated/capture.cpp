// Stream capture and graphs. A graph is replayed as one sequence, in the order in which it was captured.
#include <algorithm>
#include <utility>

#include "driver.h"

namespace perseus::simulated_cuda {
namespace {

thread_local int thread_mode = kCaptureGlobal;

bool is_memory_operation(const Operation& operation) {
  return operation.kind == Operation::Kind::write || operation.kind == Operation::Kind::wait_value;
}

/// Captures that have not ended.
std::vector<std::shared_ptr<Capture>> open_captures() {
  std::vector<std::shared_ptr<Capture>> open;
  Driver& d = driver();
  std::erase_if(d.captures, [](const auto& capture) { return capture.expired(); });
  for (const auto& weak : d.captures) {
    if (auto capture = weak.lock(); capture && capture->origin != nullptr) open.push_back(std::move(capture));
  }
  return open;
}

int instantiate(const char* function, CudaGraphExecutable* executable, CudaGraph graph) {
  ContextHandle* context = nullptr;
  if (const int code = enter(function, context); code != 0) return code;
  if (executable == nullptr) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  const GraphHandle* const found = find(d.graphs, graph);
  if (found == nullptr) return kInvalidValue;
  *executable = keep(d.executables, GraphExecutableHandle{context, found->operations});
  return kSuccess;
}

}  // namespace

Capture* capture_of(const StreamHandle& stream) { return stream.capture.get(); }

int check_implicit(ContextHandle& context, const StreamHandle& stream) {
  if (!stream.legacy) return kSuccess;
  for (const auto& capture : open_captures()) {
    for (const auto& [part, count] : capture->parts) {
      if (part->context == &context && part->flags == kStreamDefault) {
        capture->invalid = true;
        return kStreamCaptureImplicit;
      }
    }
  }
  return kSuccess;
}

int check_unsafe_call() {
  if (thread_mode == kCaptureRelaxed) return kSuccess;
  int result = kSuccess;
  for (const auto& capture : open_captures()) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool conflicts =
        own ? capture->mode != kCaptureRelaxed : thread_mode == kCaptureGlobal && capture->mode == kCaptureGlobal;
    if (!conflicts) continue;
    capture->invalid = true;
    result = kStreamCaptureUnsupported;
  }
  return result;
}

int capture_operation(StreamHandle& stream, const Operation& operation, bool& captured) {
  Capture* const capture = capture_of(stream);
  captured = capture != nullptr;
  if (!captured) return kSuccess;
  if (capture->invalid) return kStreamCaptureInvalidated;
  using Kind = Operation::Kind;
  const bool of_ours =
      operation.kind == Kind::tell || operation.kind == Kind::stamp || operation.kind == Kind::await_message;
  if (of_ours || (is_memory_operation(operation) && driver().knobs.get().capture_memory_operations == 0)) {
    capture->invalid = true;
    return kStreamCaptureUnsupported;
  }
  capture->operations.push_back(operation);
  ++capture->parts[&stream].recorded;
  return kSuccess;
}

PERSEUS_CUDA_API int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (const int code = enter("cuThreadExchangeStreamCaptureMode"); code != 0) return code;
  if (mode == nullptr || *mode < kCaptureGlobal || *mode > kCaptureRelaxed) return kInvalidValue;
  std::swap(thread_mode, *mode);
  return kSuccess;
}

PERSEUS_CUDA_API int cuStreamBeginCapture_v2(CudaStream handle, int mode) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuStreamBeginCapture_v2", context); code != 0) return code;
  if (mode < kCaptureGlobal || mode > kCaptureRelaxed) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  StreamHandle* const stream = find_stream(*context, handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->legacy) return kStreamCaptureUnsupported;
  if (stream->capture) return kIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->parts[stream] = {};
  stream->capture = capture;
  d.captures.push_back(capture);
  return kSuccess;
}

PERSEUS_CUDA_API int cuStreamEndCapture(CudaStream handle, CudaGraph* graph) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuStreamEndCapture", context); code != 0) return code;
  if (graph == nullptr) return kInvalidValue;
  *graph = nullptr;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  StreamHandle* const stream = find_stream(*context, handle);
  if (stream == nullptr) return kInvalidHandle;
  if (!stream->capture) return kIllegalState;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) return kStreamCaptureUnmatched;
  if (capture->mode != kCaptureRelaxed && capture->thread != std::this_thread::get_id()) {
    return kStreamCaptureWrongThread;
  }
  const bool joined = std::ranges::all_of(capture->parts, [&](const auto& entry) {
    return entry.first == stream || entry.second.joined == entry.second.recorded;
  });
  for (auto& [address, other] : d.streams) {
    if (other->capture == capture) other->capture.reset();
  }
  stream->capture.reset();
  capture->origin = nullptr;
  if (capture->invalid) return kStreamCaptureInvalidated;
  if (!joined) return kStreamCaptureUnjoined;
  *graph = keep(d.graphs, GraphHandle{capture->operations});
  return kSuccess;
}

PERSEUS_CUDA_API int cuStreamIsCapturing(CudaStream handle, int* status) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuStreamIsCapturing", context); code != 0) return code;
  if (status == nullptr) return kInvalidValue;
  const std::lock_guard lock(driver().mutex);
  const StreamHandle* const stream = find_stream(*context, handle);
  if (stream == nullptr) return kInvalidHandle;
  // This query is an error for the legacy stream during the capture of a blocking stream, but the capture survives.
  if (stream->legacy) {
    for (const auto& capture : open_captures()) {
      for (const auto& [part, count] : capture->parts) {
        if (part->context == context && part->flags == kStreamDefault) return kStreamCaptureImplicit;
      }
    }
  }
  *status = !stream->capture ? kCaptureNone : stream->capture->invalid ? kCaptureInvalidated : kCaptureActive;
  return kSuccess;
}

PERSEUS_CUDA_API int cuGraphInstantiateWithFlags(CudaGraphExecutable* executable, CudaGraph graph,
                                                 unsigned long long /*flags*/) {
  return instantiate("cuGraphInstantiateWithFlags", executable, graph);
}
PERSEUS_CUDA_API int cuGraphInstantiate_v2(CudaGraphExecutable* executable, CudaGraph graph, void** /*error_node*/,
                                           char* /*log*/, std::size_t /*log_bytes*/) {
  return instantiate("cuGraphInstantiate_v2", executable, graph);
}

/// The number of nodes; the nodes themselves have no handles here.
PERSEUS_CUDA_API int cuGraphGetNodes(CudaGraph graph, void** nodes, std::size_t* count) {
  if (const int code = enter("cuGraphGetNodes"); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  const GraphHandle* const found = find(d.graphs, graph);
  if (found == nullptr || count == nullptr) return kInvalidValue;
  if (nodes != nullptr) return kNotSupported;
  *count = found->operations.size();
  return kSuccess;
}

PERSEUS_CUDA_API int cuGraphLaunch(CudaGraphExecutable executable, CudaStream handle) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuGraphLaunch", context); code != 0) return code;
  Driver& d = driver();
  std::vector<Operation> operations;
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(d.mutex);
    const GraphExecutableHandle* const found = find(d.executables, executable);
    StreamHandle* const into = find_stream(*context, handle);
    if (found == nullptr) return kInvalidValue;
    if (into == nullptr) return kInvalidHandle;
    if (const int code = check_implicit(*context, *into); code != 0) return code;
    for (const Operation& operation : found->operations) {
      bool captured = false;
      if (const int code = capture_operation(*into, operation, captured); code != 0) return code;
    }
    if (capture_of(*into) != nullptr) return kSuccess;  // a child graph
    operations = found->operations;
    for (Operation& operation : operations) {
      if (operation.kind != Operation::Kind::record) continue;
      // Each launch records the event anew.
      const std::shared_ptr<EventRecord> before = operation.record;
      operation.record = std::make_shared<EventRecord>();
      for (auto& [address, event] : d.events) {
        if (event->external == before) event->record = operation.record;
      }
    }
    stream = into->stream;
  }
  return context->engine().enqueue(*stream, operations);
}

PERSEUS_CUDA_API int cuGraphExecDestroy(CudaGraphExecutable executable) {
  if (const int code = enter("cuGraphExecDestroy"); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  return d.executables.erase(executable) == 1 ? kSuccess : kInvalidValue;
}

PERSEUS_CUDA_API int cuGraphDestroy(CudaGraph graph) {
  if (const int code = enter("cuGraphDestroy"); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  return d.graphs.erase(graph) == 1 ? kSuccess : kInvalidValue;
}

}  // namespace perseus::simulated_cuda
