// cuGetProcAddress: finds the function of a name (without its version) for the CUDA version of the program.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "driver.h"

namespace perseus::simulated_cuda {
namespace {

struct Versioned {
  const char* name;
  int since;           ///< CUDA version
  const char* suffix;  ///< of the exported symbol
};

constexpr Versioned kVersioned[] = {
    {"cuStreamWriteValue32", 11070, "_v2"},
    {"cuStreamWriteValue64", 11070, "_v2"},
    {"cuStreamWaitValue32", 11070, "_v2"},
    {"cuStreamWaitValue64", 11070, "_v2"},
    {"cuStreamBatchMemOp", 11070, "_v2"},
    {"cuStreamDestroy", 4000, "_v2"},
    {"cuEventDestroy", 4000, "_v2"},
    {"cuMemHostRegister", 6050, "_v2"},
    {"cuMemHostGetDevicePointer", 3020, "_v2"},
    {"cuMemAllocHost", 3020, "_v2"},
    {"cuCtxCreate", 3020, "_v2"},
    {"cuCtxDestroy", 4000, "_v2"},
    {"cuCtxPushCurrent", 4000, "_v2"},
    {"cuCtxPopCurrent", 4000, "_v2"},
    {"cuDevicePrimaryCtxRelease", 11000, "_v2"},
    {"cuStreamBeginCapture", 10010, "_v2"},
    {"cuDeviceGetUuid", 11040, "_v2"},
    {"cuGraphInstantiate", 12000, "WithFlags"},
    {"cuGraphInstantiate", 11000, "_v2"},
    {"cuGetProcAddress", 12000, "_v2"},
};

int look_up(const char* name, void** function, int version, int* status) {
  enum Status : int { kFound = 0, kUnknownSymbol = 1, kTooOld = 2 };
  if (name == nullptr || function == nullptr) return kInvalidValue;
  std::string symbol = name;
  for (const Versioned& known : kVersioned) {
    if (std::strcmp(known.name, name) == 0 && version >= known.since) {
      symbol += known.suffix;
      break;
    }
  }
  // Path of this library, wherever it was loaded from.
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&look_up), &self);
  void* const library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = library != nullptr && symbol.starts_with("cu") ? dlsym(library, symbol.c_str()) : nullptr;
  if (library != nullptr) dlclose(library);
  if (status != nullptr) *status = *function != nullptr ? kFound : kUnknownSymbol;
  return *function != nullptr ? kSuccess : kNotFound;
}

}  // namespace

PERSEUS_CUDA_API int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t /*flags*/) {
  return look_up(name, function, version, nullptr);
}
PERSEUS_CUDA_API int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t /*flags*/,
                                         int* status) {
  return look_up(name, function, version, status);
}

}  // namespace perseus::simulated_cuda
