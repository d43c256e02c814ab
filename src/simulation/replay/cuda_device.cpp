#include "simulation/replay/cuda_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace perseus::replay {

using namespace simulated_cuda;

struct CudaDevice::Functions {
  void* library = nullptr;
  int (*init)(unsigned) = nullptr;
  int (*retain)(simulated_cuda::CudaContext*, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*set_current)(simulated_cuda::CudaContext) = nullptr;
  int (*load_module)(simulated_cuda::CudaModule*, const void*) = nullptr;
  int (*get_function)(simulated_cuda::CudaFunction*, simulated_cuda::CudaModule, const char*) = nullptr;
  int (*create_stream)(simulated_cuda::CudaStream*, unsigned) = nullptr;
  int (*synchronize_stream)(simulated_cuda::CudaStream) = nullptr;
  int (*launch)(simulated_cuda::CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                simulated_cuda::CudaStream, void**, void**) = nullptr;
  int (*create_event)(simulated_cuda::CudaEvent*, unsigned) = nullptr;
  int (*record)(simulated_cuda::CudaEvent, simulated_cuda::CudaStream) = nullptr;
  int (*query)(simulated_cuda::CudaEvent) = nullptr;
  int (*synchronize_event)(simulated_cuda::CudaEvent) = nullptr;
  int (*await)(simulated_cuda::CudaStream, std::uint64_t, double) = nullptr;
  int (*tell)(simulated_cuda::CudaStream, simulated_cuda::ReachedFunction, void*) = nullptr;
  int (*stamp)(simulated_cuda::CudaStream, simulated_cuda::Stamp*) = nullptr;
  int (*deliver)(simulated_cuda::CudaContext, std::uint64_t, double) = nullptr;
  int (*abort)(simulated_cuda::CudaContext) = nullptr;

  std::string missing;
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  }
};

namespace {

Status done(const char* function, int code) {
  if (code == kSuccess) return Ok{};
  return Error{ErrorCode::unavailable, fmt::format("{}: CUDA error {}", function, code)};
}

}  // namespace

CudaDevice::CudaDevice(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}

CudaDevice::~CudaDevice() {
  if (context_ != nullptr) functions_->release(ordinal_);
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::open_process(const std::string& library, const std::string& gpu,
                                                             const std::map<int, std::string>& kernel_of) {
  setenv("PERSEUS_SIMULATED_GPUS", gpu.c_str(), 1);
  setenv("PERSEUS_CUDA", library.c_str(), 1);
  return open(library, 0, kernel_of);
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const std::string& library, int ordinal,
                                                     const std::map<int, std::string>& kernel_of) {
  auto f = std::make_unique<Functions>();
  f->library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (f->library == nullptr) return Error{ErrorCode::not_found, fmt::format("simulated CUDA driver: {}", dlerror())};
  f->find("cuInit", f->init);
  f->find("cuDevicePrimaryCtxRetain", f->retain);
  f->find("cuDevicePrimaryCtxRelease_v2", f->release);
  f->find("cuCtxSetCurrent", f->set_current);
  f->find("cuModuleLoadData", f->load_module);
  f->find("cuModuleGetFunction", f->get_function);
  f->find("cuStreamCreate", f->create_stream);
  f->find("cuStreamSynchronize", f->synchronize_stream);
  f->find("cuLaunchKernel", f->launch);
  f->find("cuEventCreate", f->create_event);
  f->find("cuEventRecord", f->record);
  f->find("cuEventQuery", f->query);
  f->find("cuEventSynchronize", f->synchronize_event);
  f->find(simulated_cuda::kStreamAwaitName, f->await);
  f->find(simulated_cuda::kStreamTellName, f->tell);
  f->find(simulated_cuda::kStreamStampName, f->stamp);
  f->find(simulated_cuda::kDeliverName, f->deliver);
  f->find(simulated_cuda::kAbortName, f->abort);
  if (!f->missing.empty()) {
    return Error{ErrorCode::not_found,
                 fmt::format("{}: not the simulated CUDA driver: it lacks {}", library, f->missing)};
  }
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(f)));
  const Functions& cu = *device->functions_;
  if (Status s = done("cuInit", cu.init(0)); !s) return s.error();
  simulated_cuda::CudaContext context = nullptr;
  if (Status s = done("cuDevicePrimaryCtxRetain", cu.retain(&context, ordinal)); !s) return s.error();
  device->context_ = context;
  device->ordinal_ = ordinal;
  if (Status s = done("cuCtxSetCurrent", cu.set_current(context)); !s) return s.error();
  simulated_cuda::CudaModule module = nullptr;
  if (Status s = done("cuModuleLoadData", cu.load_module(&module, "computations of a simulated GPU")); !s) {
    return s.error();
  }
  for (const auto& [type, name] : kernel_of) {
    simulated_cuda::CudaFunction function = nullptr;
    if (Status s = done("cuModuleGetFunction", cu.get_function(&function, module, name.c_str())); !s) return s.error();
    device->kernels_[type] = function;
  }
  if (Status s = done("cuStreamCreate", cu.create_stream(&device->stream_, kStreamNonBlocking)); !s) return s.error();
  return device;
}

Status CudaDevice::launch(int type) {
  return done("cuLaunchKernel", functions_->launch(kernels_.at(type), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr));
}
Status CudaDevice::await(std::uint64_t message, double latency_s) {
  return done(simulated_cuda::kStreamAwaitName, functions_->await(stream_, message, latency_s));
}
Status CudaDevice::tell(simulated_cuda::ReachedFunction reached, void* user) {
  return done(simulated_cuda::kStreamTellName, functions_->tell(stream_, reached, user));
}
Status CudaDevice::stamp(simulated_cuda::Stamp& stamp) {
  return done(simulated_cuda::kStreamStampName, functions_->stamp(stream_, &stamp));
}
Status CudaDevice::deliver(std::uint64_t message, double time_s) {
  return done(simulated_cuda::kDeliverName, functions_->deliver(context_, message, time_s));
}
void CudaDevice::abort() { functions_->abort(context_); }

Result<simulated_cuda::CudaEvent> CudaDevice::make_event() {
  simulated_cuda::CudaEvent event = nullptr;
  if (Status s = done("cuEventCreate", functions_->create_event(&event, kEventDisableTiming)); !s) return s.error();
  return event;
}
Status CudaDevice::record(simulated_cuda::CudaEvent event) {
  return done("cuEventRecord", functions_->record(event, stream_));
}
Status CudaDevice::wait(simulated_cuda::CudaEvent event) {
  return done("cuEventSynchronize", functions_->synchronize_event(event));
}
Result<bool> CudaDevice::is_done(simulated_cuda::CudaEvent event) {
  const int code = functions_->query(event);
  if (code == kNotReady) return false;
  if (Status s = done("cuEventQuery", code); !s) return s.error();
  return true;
}
Status CudaDevice::synchronize() { return done("cuStreamSynchronize", functions_->synchronize_stream(stream_)); }

}  // namespace perseus::replay
