#include "driver.h"

#include <cstdlib>
#include <ctime>

namespace perseus::simulated_cuda {
namespace {

thread_local std::vector<ContextHandle*> thread_contexts;

void spend(double us) {
  if (us <= 0) return;
  timespec time{static_cast<time_t>(us * 1e-6), static_cast<long>(us * 1e3) % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace

Driver& driver() {
  static auto* const only = new Driver;  // never destroyed: threads use it until the process ends
  return *only;
}

std::vector<ContextHandle*>& current_contexts() { return thread_contexts; }

ContextHandle* current_context() { return thread_contexts.empty() ? nullptr : thread_contexts.back(); }

int enter(const char* function) {
  if (Engine::in_host_function()) return kNotPermitted;
  Driver& d = driver();
  spend(d.knobs.get().call_us);
  if (const int code = d.knobs.fault(function); code != 0) return code;
  // A forked child cannot use what its parent has initialized.
  return d.process == getpid() ? kSuccess : kNotInitialized;
}

int enter(const char* function, ContextHandle*& context) {
  if (const int code = enter(function); code != 0) return code;
  context = current_context();
  if (context == nullptr) return kInvalidContext;
  if (!context->alive) return kContextIsDestroyed;
  return context->engine().failure();
}

StreamHandle* find_stream(ContextHandle& context, CudaStream handle) {
  Driver& d = driver();
  if (handle == nullptr || handle == kStreamLegacy) return context.legacy.get();
  if (handle == kStreamPerThread) {
    std::unique_ptr<StreamHandle>& own = context.per_thread[std::this_thread::get_id()];
    if (!own) {
      own = std::make_unique<StreamHandle>();
      own->context = &context;
      own->stream = context.engine().make_stream(&context, false, true);
    }
    return own.get();
  }
  StreamHandle* const found = find(d.streams, handle);
  return found != nullptr && found->context->device == context.device ? found : nullptr;
}

int submit(ContextHandle& context, CudaStream handle, Operation operation) {
  Driver& d = driver();
  std::shared_ptr<Stream> stream;
  Engine* engine = nullptr;
  {
    const std::lock_guard lock(d.mutex);
    StreamHandle* const found = find_stream(context, handle);
    if (found == nullptr) return kInvalidHandle;
    if (const int code = check_implicit(context, *found); code != 0) return code;
    bool captured = false;
    if (const int code = capture_operation(*found, operation, captured); code != 0 || captured) return code;
    stream = found->stream;
    engine = &found->context->engine();
  }
  return engine->enqueue(*stream, std::move(operation));  // may wait
}

}  // namespace perseus::simulated_cuda
