#include "client/cuda_events.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace perseus::client {
namespace {

constexpr int cuda_success = 0, cuda_not_ready = 600;
constexpr unsigned event_default = 0;

}  // namespace

struct CudaEvents::Library {
  void* handle = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*event_elapsed)(float*, void*, void*) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*context_current)(void**) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;  ///< missing in old drivers

  template <class Function>
  bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
  }
};

CudaEvents::CudaEvents(std::unique_ptr<Library> library) : library_(std::move(library)) {}

/// The context may be gone by now, and the events with it: they are left to the driver then.
CudaEvents::~CudaEvents() {
  void* context = nullptr;
  if (failed() || library_->context_current(&context) != cuda_success || context != context_) return;
  for (void* const event : events_) library_->event_destroy(event);
}

Result<std::unique_ptr<CudaEvents>> CudaEvents::open(void* stream, std::size_t events) {
  const char* const given = std::getenv("PERSEUS_CUDA");
  const char* const name = given != nullptr && *given != '\0' ? given : "libcuda.so.1";
  auto library = std::make_unique<Library>();
  // Never closed: drivers do not like to be unloaded.
  library->handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return Error{ErrorCode::unavailable, fmt::format("no CUDA: {}", ::dlerror())};
  if (!library->find("cuEventCreate", library->event_create) ||
      !library->find("cuEventRecord", library->event_record) || !library->find("cuEventQuery", library->event_query) ||
      !library->find("cuEventElapsedTime", library->event_elapsed) ||
      !library->find("cuEventDestroy_v2", library->event_destroy) ||
      !library->find("cuCtxGetCurrent", library->context_current) ||
      !library->find("cuCtxSetCurrent", library->context_set)) {
    return Error{ErrorCode::unavailable, fmt::format("{} lacks functions for events", name)};
  }
  library->find("cuStreamIsCapturing", library->is_capturing);
  std::unique_ptr<CudaEvents> made(new CudaEvents(std::move(library)));
  const int current = made->library_->context_current(&made->context_);
  if (current != cuda_success || made->context_ == nullptr) {
    return Error{ErrorCode::unavailable, fmt::format("this thread has no CUDA context (cuCtxGetCurrent: {})", current)};
  }
  made->stream_ = stream;
  for (std::size_t i = 0; i < events; ++i) {
    void* event = nullptr;
    if (const int code = made->library_->event_create(&event, event_default); code != cuda_success) {
      return Error{ErrorCode::unavailable, fmt::format("cuEventCreate: error {}", code)};
    }
    made->events_.push_back(event);
  }
  return made;
}

std::uint64_t CudaEvents::mark() {
  if (failed() || next_ - free_before_.load(std::memory_order_acquire) >= events_.size()) return 0;
  int capturing = 0;
  if (library_->is_capturing != nullptr &&
      (library_->is_capturing(stream_, &capturing) != cuda_success || capturing != 0)) {
    return 0;
  }
  if (library_->event_record(event(next_), stream_) != cuda_success) {
    failed_.store(true, std::memory_order_release);
    return 0;
  }
  return next_++;
}

bool CudaEvents::finished(const Step& step) {
  if (failed()) return true;
  if (!std::exchange(context_set_, true)) library_->context_set(context_);
  std::uint64_t last = std::max(step.begin_mark, step.end_mark);
  for (std::size_t i = 0; i < step.count; ++i) last = std::max(last, step.computations[i].end);
  if (last == 0) return true;
  const int code = library_->event_query(event(last));
  if (code != cuda_success && code != cuda_not_ready) failed_.store(true, std::memory_order_release);
  return code != cuda_not_ready;
}

double CudaEvents::elapsed_s(std::uint64_t from, std::uint64_t to) {
  float milliseconds = 0;
  if (library_->event_elapsed(&milliseconds, event(from), event(to)) != cuda_success) {
    failed_.store(true, std::memory_order_release);
  }
  return static_cast<double>(milliseconds) * 1e-3;
}

Step CudaEvents::on_host(const Step& step) {
  Step result = step;
  if (step.begin_mark == 0 || step.end_mark == 0) result.clean = false;
  if (step.begin_mark == 0 || failed()) {
    result.count = 0;
    result.begin_mark = step.begin_ns;
    result.end_mark = step.end_ns;
    result.clean = false;
    return result;
  }
  const double enqueued_s = static_cast<double>(step.begin_ns) * 1e-9;
  if (base_ != 0) base_s_ += elapsed_s(base_, step.begin_mark);
  base_ = step.begin_mark;
  if (!std::exchange(has_offset_, true)) offset_s_ = enqueued_s - base_s_;
  offset_s_ = std::max(offset_s_, enqueued_s - base_s_);
  const auto host_ns = [&](std::uint64_t mark) {
    const double since = mark == 0 ? 0 : elapsed_s(step.begin_mark, mark);
    if (mark == 0) result.clean = false;
    return static_cast<std::uint64_t>((offset_s_ + base_s_ + since) * 1e9);
  };
  for (std::size_t i = 0; i < step.count; ++i) {
    Computation& c = result.computations[i];
    c.begin = host_ns(c.begin);
    c.end = host_ns(c.end);
  }
  result.begin_ns = result.begin_mark = host_ns(step.begin_mark);
  if (step.end_mark != 0) result.end_ns = result.end_mark = host_ns(step.end_mark);
  return result;
}

void CudaEvents::release(const Step& step) {
  // The step's first event stays: the next step's time is counted from it.
  if (step.begin_mark != 0) free_before_.store(step.begin_mark, std::memory_order_release);
}

}  // namespace perseus::client
