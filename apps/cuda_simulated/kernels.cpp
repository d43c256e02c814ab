// Modules and the kernels in them: cuModule*, cuLaunchKernel.
#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "driver.h"

namespace perseus::simulated_cuda {
/// Accepts any image without compiling it.
PERSEUS_CUDA_API int cuModuleLoadData(CudaModule* module, const void* image) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuModuleLoadData", context); code != 0) return code;
  if (module == nullptr || image == nullptr) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  if (const int code = check_unsafe_call(); code != 0) return code;
  *module = keep(d.modules, ModuleHandle{context});
  return kSuccess;
}

PERSEUS_CUDA_API int cuModuleUnload(CudaModule module) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuModuleUnload", context); code != 0) return code;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  return d.modules.erase(module) == 1 ? kSuccess : kInvalidHandle;
}

/// A kernel is a computation of the simulated GPU, by its name.
PERSEUS_CUDA_API int cuModuleGetFunction(CudaFunction* function, CudaModule module, const char* name) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuModuleGetFunction", context); code != 0) return code;
  if (function == nullptr || name == nullptr) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  if (find(d.modules, module) == nullptr) return kInvalidHandle;
  const std::vector<std::string> names = context->engine().gpu().computations();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return kNotFound;
  *function = keep(d.functions, FunctionHandle{context, static_cast<int>(found - names.begin())});
  return kSuccess;
}

PERSEUS_CUDA_API int cuLaunchKernel(CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned /*shared_bytes*/,
                                    CudaStream stream, void** /*parameters*/, void** /*extra*/) {
  ContextHandle* context = nullptr;
  if (const int code = enter("cuLaunchKernel", context); code != 0) return code;
  for (const unsigned size : {grid_x, grid_y, grid_z, block_x, block_y, block_z}) {
    if (size == 0) return kInvalidValue;
  }
  Operation operation;
  operation.kind = Operation::Kind::kernel;
  {
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    const FunctionHandle* const found = find(d.functions, function);
    if (found == nullptr || found->context != context) return kInvalidHandle;
    operation.computation = found->computation;
  }
  return submit(*context, stream, std::move(operation));
}

}  // namespace perseus::simulated_cuda
