// The objects behind the handles of the simulated CUDA driver, and the checks that every call performs.
//
// Input:   $PERSEUS_SIMULATED_GPUS: the GPUs (simulation/simulated_gpu/find.h); $PERSEUS_SIMULATED_CUDA: knobs.
// Output:  contexts, streams, events, graphs as the CUDA driver API defines them.
// Errors:  codes of the CUDA driver API.
// Threads: any; `mutex` guards every object here. No thread waits for the device while it holds it.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "simulation/simulated_cuda/engine.h"

#define PERSEUS_CUDA_API extern "C" __attribute__((visibility("default")))

namespace perseus::simulated_cuda {

struct Device {
  std::string path;
  Engine* engine = nullptr;  ///< from the first context on
  ContextHandle* primary = nullptr;
  int retained = 0;
};

/// Operations that are recorded, not executed.
struct Capture {
  StreamHandle* origin = nullptr;
  int mode = kCaptureGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<Operation> operations;
  /// The participating streams -> number of operations and events that each has recorded, and of those that were
  /// joined.
  struct Part {
    int recorded = 0, joined = 0;
  };
  std::map<StreamHandle*, Part> parts;
};

struct ContextHandle {
  Device* device = nullptr;
  DeviceOrdinal ordinal = 0;
  bool primary = false;
  bool alive = true;
  std::unique_ptr<StreamHandle> legacy;
  std::map<std::thread::id, std::unique_ptr<StreamHandle>> per_thread;
  [[nodiscard]] Engine& engine() const { return *device->engine; }
};

struct StreamHandle {
  ContextHandle* context = nullptr;
  unsigned flags = kStreamDefault;
  int priority = 0;
  bool legacy = false;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Capture> capture;
};

struct EventHandle {
  ContextHandle* context = nullptr;
  unsigned flags = kEventDefault;
  std::shared_ptr<EventRecord> record;    ///< the latest; null: none yet
  std::shared_ptr<EventRecord> external;  ///< the record node in a graph that stands for it
  std::shared_ptr<Capture> capture;       ///< last recorded in it
  StreamHandle* captured_in = nullptr;
  int captured_at = 0;
};

struct ModuleHandle {
  ContextHandle* context = nullptr;
};
struct FunctionHandle {
  ContextHandle* context = nullptr;
  int computation = 0;
};
struct GraphHandle {
  std::vector<Operation> operations;
};
struct GraphExecutableHandle {
  ContextHandle* context = nullptr;  ///< the context of the first launch
  std::vector<Operation> operations;
};

struct HostMemory {
  std::size_t bytes = 0;
  bool allocated = false;  ///< by the driver; else registered
  /// Registered shared memory is mapped a second time: as with pinned pages, it stays when the program unmaps it.
  std::byte* pinned = nullptr;
  std::size_t pinned_bytes = 0;
  std::size_t pinned_offset = 0;
};

/// Lives as long as the process.
struct Driver {
  std::mutex mutex;
  pid_t process = 0;  ///< the process that initialized it; 0: none
  KnobBoard knobs;
  std::vector<std::unique_ptr<Device>> devices;
  // Handles that are valid.
  std::unordered_map<const void*, std::unique_ptr<ContextHandle>> contexts;  ///< destroyed ones too
  std::unordered_map<const void*, std::unique_ptr<StreamHandle>> streams;
  std::unordered_map<const void*, std::unique_ptr<EventHandle>> events;
  std::unordered_map<const void*, std::unique_ptr<ModuleHandle>> modules;
  std::unordered_map<const void*, std::unique_ptr<FunctionHandle>> functions;
  std::unordered_map<const void*, std::unique_ptr<GraphHandle>> graphs;
  std::unordered_map<const void*, std::unique_ptr<GraphExecutableHandle>> executables;
  std::vector<std::weak_ptr<Capture>> captures;
};

Driver& driver();
/// The device of that number, or null.
Device* device_at(DeviceOrdinal ordinal);

template <class Handle>
Handle* find(const std::unordered_map<const void*, std::unique_ptr<Handle>>& handles, const Handle* handle) {
  const auto found = handles.find(handle);
  return found == handles.end() ? nullptr : found->second.get();
}

template <class Handle>
Handle* keep(std::unordered_map<const void*, std::unique_ptr<Handle>>& handles, Handle made) {
  auto owned = std::make_unique<Handle>(std::move(made));
  Handle* const handle = owned.get();
  handles[handle] = std::move(owned);
  return handle;
}

/// Stack of the contexts that are current in the calling thread; the last one is in force.
std::vector<ContextHandle*>& current_contexts();
/// The one in force, or null.
ContextHandle* current_context();

/// The checks at the begin of every call; 0: continue.
int enter(const char* function);
/// Likewise, for calls that need a current context.
int enter(const char* function, ContextHandle*& context);

/// The stream of that handle in that context (NULL and the two special handles included), or null.
StreamHandle* find_stream(ContextHandle& context, CudaStream handle);

// ---- Capture. Under the driver's mutex.

/// The capture that the stream takes part in, or null.
Capture* capture_of(const StreamHandle& stream);
/// kStreamCaptureImplicit, and invalidates: the legacy stream would wait for a stream that is captured.
int check_implicit(ContextHandle& context, const StreamHandle& stream);
/// Calls that may wait or allocate are unsafe while streams are captured; see cuThreadExchangeStreamCaptureMode.
int check_unsafe_call();
/// Records the operation if a capture of the stream runs (captured = true), else leaves it to the caller.
int capture_operation(StreamHandle& stream, const Operation& operation, bool& captured);

/// Passes the operation to the engine's stream or to the capture. Takes the driver's mutex.
int submit(ContextHandle& context, CudaStream stream, Operation operation);

// ---- Host memory of the device.

bool read_host(const void* address, int bytes, std::uint64_t& value);
bool write_host(void* address, int bytes, std::uint64_t value);
/// The host's address of a device pointer; null: none.
void* host_address(DevicePointer pointer);

}  // namespace perseus::simulated_cuda
