#include "replay/cuda_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace perseus {

using namespace cuda;

struct CudaDevice::Functions {
  void* library = nullptr;
  int (*init)(unsigned) = nullptr;
  int (*retain)(CudaContext*, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*set_current)(CudaContext) = nullptr;
  int (*load_module)(CudaModule*, const void*) = nullptr;
  int (*get_function)(CudaFunction*, CudaModule, const char*) = nullptr;
  int (*create_stream)(CudaStream*, unsigned) = nullptr;
  int (*synchronize_stream)(CudaStream) = nullptr;
  int (*launch)(CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CudaStream, void**,
                void**) = nullptr;
  int (*create_event)(CudaEvent*, unsigned) = nullptr;
  int (*record)(CudaEvent, CudaStream) = nullptr;
  int (*query)(CudaEvent) = nullptr;
  int (*synchronize_event)(CudaEvent) = nullptr;
  int (*await)(CudaStream, std::uint64_t, double) = nullptr;
  int (*tell)(CudaStream, ReachedFunction, void*) = nullptr;
  int (*stamp)(CudaStream, Stamp*) = nullptr;
  int (*deliver)(CudaContext, std::uint64_t, double) = nullptr;
  int (*abort)(CudaContext) = nullptr;

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
  f->find(kStreamAwaitName, f->await);
  f->find(kStreamTellName, f->tell);
  f->find(kStreamStampName, f->stamp);
  f->find(kDeliverName, f->deliver);
  f->find(kAbortName, f->abort);
  if (!f->missing.empty()) {
    return Error{ErrorCode::not_found,
                 fmt::format("{}: not the simulated CUDA driver: it lacks {}", library, f->missing)};
  }
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(f)));
  const Functions& cu = *device->functions_;
  if (Status s = done("cuInit", cu.init(0)); !s) return s.error();
  CudaContext context = nullptr;
  if (Status s = done("cuDevicePrimaryCtxRetain", cu.retain(&context, ordinal)); !s) return s.error();
  device->context_ = context;
  device->ordinal_ = ordinal;
  if (Status s = done("cuCtxSetCurrent", cu.set_current(context)); !s) return s.error();
  CudaModule module = nullptr;
  if (Status s = done("cuModuleLoadData", cu.load_module(&module, "computations of a simulated GPU")); !s) {
    return s.error();
  }
  for (const auto& [type, name] : kernel_of) {
    CudaFunction function = nullptr;
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
  return done(kStreamAwaitName, functions_->await(stream_, message, latency_s));
}
Status CudaDevice::tell(ReachedFunction reached, void* user) {
  return done(kStreamTellName, functions_->tell(stream_, reached, user));
}
Status CudaDevice::stamp(Stamp& stamp) { return done(kStreamStampName, functions_->stamp(stream_, &stamp)); }
Status CudaDevice::deliver(std::uint64_t message, double time_s) {
  return done(kDeliverName, functions_->deliver(context_, message, time_s));
}
void CudaDevice::abort() { functions_->abort(context_); }

Result<CudaEvent> CudaDevice::make_event() {
  CudaEvent event = nullptr;
  if (Status s = done("cuEventCreate", functions_->create_event(&event, kEventDisableTiming)); !s) return s.error();
  return event;
}
Status CudaDevice::record(CudaEvent event) { return done("cuEventRecord", functions_->record(event, stream_)); }
Status CudaDevice::wait(CudaEvent event) { return done("cuEventSynchronize", functions_->synchronize_event(event)); }
Result<bool> CudaDevice::is_done(CudaEvent event) {
  const int code = functions_->query(event);
  if (code == kNotReady) return false;
  if (Status s = done("cuEventQuery", code); !s) return s.error();
  return true;
}
Status CudaDevice::synchronize() { return done("cuStreamSynchronize", functions_->synchronize_stream(stream_)); }

}  // namespace perseus
