// Host memory that the device may access, and the stream operations that write and wait for it.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "driver.h"

namespace perseus::simulated_cuda {
namespace {

/// On a device whose address space is not the host's, for memory that the program registered itself.
constexpr DevicePointer kDeviceOffset = 0x0100'0000'0000'0000;

struct HostMemories {
  std::mutex mutex;  // a leaf: no other lock is taken under it
  std::map<std::uintptr_t, HostMemory> by_address;
};

HostMemories& memories() {
  static auto* const only = new HostMemories;
  return *only;
}

/// The memory that contains it, or end(). Under the mutex.
auto containing(std::uintptr_t address) {
  auto& known = memories().by_address;
  auto found = known.upper_bound(address);
  if (found == known.begin()) return known.end();
  --found;
  return address < found->first + found->second.bytes ? found : known.end();
}

bool overlaps(std::uintptr_t address, std::size_t bytes) {
  const auto& known = memories().by_address;
  const auto next = known.lower_bound(address);
  return containing(address) != known.end() || (next != known.end() && next->first < address + bytes);
}

/// Its address on the device, or null. Under the mutex.
void* accessible(const void* address, int bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto found = containing(at);
  if (found == memories().by_address.end() || at + bytes > found->first + found->second.bytes) return nullptr;
  const HostMemory& memory = found->second;
  if (memory.pinned == nullptr)
    return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): a device pointer
  return memory.pinned + memory.pinned_offset + (at - found->first);
}

/// Another mapping of the same pages; of private memory there is none.
void pin(HostMemory& memory, std::uintptr_t address) {
  constexpr std::uintptr_t page = 4096;
  const std::uintptr_t first = address / page * page, end = (address + memory.bytes + page - 1) / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a device pointer
  void* const again = mremap(reinterpret_cast<void*>(first), 0, end - first, MREMAP_MAYMOVE);
  if (again == MAP_FAILED) return;
  memory.pinned = static_cast<std::byte*>(again);
  memory.pinned_bytes = end - first;
  memory.pinned_offset = address - first;
}

bool offset_needed(const HostMemory& memory) {
  return !memory.allocated && driver().knobs.get().host_pointer_is_device_pointer == 0;
}

int check_unsafe() {
  const std::lock_guard lock(driver().mutex);
  return check_unsafe_call();
}

int unregister(const char* function, void* address, bool allocated) {
  ContextHandle* context = nullptr;
  if (const int code = enter(function, context); code != 0) return code;
  if (const int code = check_unsafe(); code != 0) return code;
  {
    const std::lock_guard lock(memories().mutex);
    auto& known = memories().by_address;
    const auto found = known.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == known.end() || found->second.allocated != allocated) {
      return allocated ? kInvalidValue : kHostMemoryNotRegistered;
    }
    if (found->second.pinned != nullptr) munmap(found->second.pinned, found->second.pinned_bytes);
    known.erase(found);
  }
  if (allocated) std::free(address);
  return kSuccess;
}

int allocate(const char* function, void** address, std::size_t bytes) {
  ContextHandle* context = nullptr;
  if (const int code = enter(function, context); code != 0) return code;
  if (address == nullptr || bytes == 0) return kInvalidValue;
  if (const int code = check_unsafe(); code != 0) return code;
  const std::size_t page = 4096, whole = (bytes + page - 1) / page * page;
  void* const made = std::aligned_alloc(page, whole);
  if (made == nullptr) return kOutOfMemory;
  const std::lock_guard lock(memories().mutex);
  memories().by_address[reinterpret_cast<std::uintptr_t>(made)] = {whole, true, nullptr, 0, 0};
  *address = made;
  return kSuccess;
}

enum class Version { v1, v2 };

bool supported(Version version) {
  const Knobs& knobs = driver().knobs.get();
  return (version == Version::v1 ? knobs.stream_memory_operations_v1 : knobs.stream_memory_operations) != 0;
}

int access(const char* function, Version version, Operation::Kind kind, CudaStream stream, DevicePointer pointer,
           std::uint64_t value, int bytes, unsigned flags) {
  ContextHandle* context = nullptr;
  if (const int code = enter(function, context); code != 0) return code;
  if (!supported(version)) return kNotSupported;
  const bool known_flags = kind == Operation::Kind::write ? (flags & ~1U) == 0 : (flags & ~(3U | kWaitFlush)) == 0;
  if (!known_flags) return kInvalidValue;
  if ((flags & kWaitFlush) != 0 && kind == Operation::Kind::wait_value) return kNotSupported;
  void* const address = host_address(pointer);
  if (address == nullptr || pointer % static_cast<unsigned>(bytes) != 0) return kInvalidValue;
  Operation operation;
  operation.kind = kind;
  operation.address = address;
  operation.value = value;
  operation.bytes = bytes;
  operation.flags = flags;
  return submit(*context, stream, std::move(operation));
}

/// CUstreamBatchMemOpParams: a union of 6 64-bit words, as the ABI fixes it.
union BatchParameters {
  struct {
    std::uint32_t operation;
    DevicePointer address;
    std::uint64_t value;
    std::uint32_t flags;
    DevicePointer alias;
  } access;
  std::uint64_t words[6];
};
enum BatchOperation : std::uint32_t { kBatchWait32 = 1, kBatchWrite32 = 2, kBatchWait64 = 4, kBatchWrite64 = 5 };

int batch(const char* function, Version version, CudaStream stream, unsigned count, const BatchParameters* parameters,
          unsigned flags) {
  if (flags != 0 || count >= 256 || (count > 0 && parameters == nullptr)) return kInvalidValue;
  for (unsigned i = 0; i < count; ++i) {
    const auto& p = parameters[i].access;
    const bool wide = p.operation == kBatchWait64 || p.operation == kBatchWrite64;
    if (!wide && p.operation != kBatchWait32 && p.operation != kBatchWrite32) return kNotSupported;
    const bool is_write = p.operation == kBatchWrite32 || p.operation == kBatchWrite64;
    const int code = access(function, version, is_write ? Operation::Kind::write : Operation::Kind::wait_value, stream,
                            p.address, p.value, wide ? 8 : 4, p.flags);
    if (code != 0) return code;
  }
  return kSuccess;
}

}  // namespace

bool read_host(const void* address, int bytes, std::uint64_t& value) {
  const std::lock_guard lock(memories().mutex);
  const void* const at = accessible(address, bytes);
  if (at == nullptr) return false;
  value = bytes == 8 ? __atomic_load_n(static_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE)
                     : __atomic_load_n(static_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
  return true;
}

bool write_host(void* address, int bytes, std::uint64_t value) {
  const std::lock_guard lock(memories().mutex);
  void* const at = accessible(address, bytes);
  if (at == nullptr) return false;
  if (bytes == 8) {
    __atomic_store_n(static_cast<std::uint64_t*>(at), value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(static_cast<std::uint32_t*>(at), static_cast<std::uint32_t>(value), __ATOMIC_RELEASE);
  }
  return true;
}

void* host_address(DevicePointer pointer) {
  const std::lock_guard lock(memories().mutex);
  const bool far = pointer >= kDeviceOffset;
  const auto at = static_cast<std::uintptr_t>(far ? pointer - kDeviceOffset : pointer);
  const auto found = containing(at);
  if (found == memories().by_address.end() || offset_needed(found->second) != far) return nullptr;
  return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): a device pointer
}

PERSEUS_CUDA_API int cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuMemHostRegister_v2", context); code != 0) return code;
  if (driver().knobs.get().host_register == 0) return kNotSupported;
  if (address == nullptr || bytes == 0 || flags > 15) return kInvalidValue;
  if (const int code = check_unsafe(); code != 0) return code;
  const std::lock_guard lock(memories().mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (overlaps(at, bytes)) return kHostMemoryAlreadyRegistered;
  HostMemory registered;
  registered.bytes = bytes;
  pin(registered, at);
  memories().by_address[at] = registered;
  return kSuccess;
}
PERSEUS_CUDA_API int cuMemHostUnregister(void* address) { return unregister("cuMemHostUnregister", address, false); }

PERSEUS_CUDA_API int cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return flags > 7 ? kInvalidValue : allocate("cuMemHostAlloc", address, bytes);
}
PERSEUS_CUDA_API int cuMemAllocHost_v2(void** address, std::size_t bytes) {
  return allocate("cuMemAllocHost_v2", address, bytes);
}
PERSEUS_CUDA_API int cuMemFreeHost(void* address) { return unregister("cuMemFreeHost", address, true); }

PERSEUS_CUDA_API int cuMemHostGetDevicePointer_v2(DevicePointer* pointer, void* address, unsigned flags) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuMemHostGetDevicePointer_v2", context); code != 0) return code;
  if (pointer == nullptr || flags != 0) return kInvalidValue;
  const std::lock_guard lock(memories().mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto found = containing(at);
  if (found == memories().by_address.end()) return kInvalidValue;
  *pointer = at + (offset_needed(found->second) ? kDeviceOffset : 0);
  return kSuccess;
}

#define PERSEUS_MEMORY_OPERATIONS(suffix, version)                                                                    \
  PERSEUS_CUDA_API int cuStreamWriteValue32##suffix(CudaStream stream, DevicePointer address, std::uint32_t value,    \
                                                    unsigned flags) {                                                 \
    return access("cuStreamWriteValue32" #suffix, version, Operation::Kind::write, stream, address, value, 4, flags); \
  }                                                                                                                   \
  PERSEUS_CUDA_API int cuStreamWriteValue64##suffix(CudaStream stream, DevicePointer address, std::uint64_t value,    \
                                                    unsigned flags) {                                                 \
    return access("cuStreamWriteValue64" #suffix, version, Operation::Kind::write, stream, address, value, 8, flags); \
  }                                                                                                                   \
  PERSEUS_CUDA_API int cuStreamWaitValue32##suffix(CudaStream stream, DevicePointer address, std::uint32_t value,     \
                                                   unsigned flags) {                                                  \
    return access("cuStreamWaitValue32" #suffix, version, Operation::Kind::wait_value, stream, address, value, 4,     \
                  flags);                                                                                             \
  }                                                                                                                   \
  PERSEUS_CUDA_API int cuStreamWaitValue64##suffix(CudaStream stream, DevicePointer address, std::uint64_t value,     \
                                                   unsigned flags) {                                                  \
    return access("cuStreamWaitValue64" #suffix, version, Operation::Kind::wait_value, stream, address, value, 8,     \
                  flags);                                                                                             \
  }                                                                                                                   \
  PERSEUS_CUDA_API int cuStreamBatchMemOp##suffix(CudaStream stream, unsigned count, BatchParameters* parameters,     \
                                                  unsigned flags) {                                                   \
    return batch("cuStreamBatchMemOp" #suffix, version, stream, count, parameters, flags);                            \
  }

PERSEUS_MEMORY_OPERATIONS(, Version::v1)
PERSEUS_MEMORY_OPERATIONS(_v2, Version::v2)

}  // namespace perseus::simulated_cuda
