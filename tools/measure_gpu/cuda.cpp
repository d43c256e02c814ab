#include "cuda.h"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

namespace perseus::measure {
namespace {

/// A kernel that runs until that timer has advanced by `duration`.
std::string kernel(const std::string& name, const std::string& timer) {
  return ".visible .entry " + name + R"((.param .u64 duration)
{
  .reg .u64 %duration, %start, %now;
  .reg .pred %more;
  ld.param.u64 %duration, [duration];
  mov.u64 %start, )" +
         timer + R"(;
again:
  mov.u64 %now, )" +
         timer + R"(;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %more, %now, %duration;
  @%more bra again;
  ret;
}
)";
}

/// spin: for so many ns. spin_cycles: for so many cycles of the SM.
std::string kernels() {
  return "\n.version 6.0\n.target sm_50\n.address_size 64\n\n" + kernel("spin", "%globaltimer") + "\n" +
         kernel("spin_cycles", "%clock64");
}

/// Kernels that a simulated GPU may have: "spin_20" runs for 20 us.
constexpr std::array kSimulatedMicroseconds{20, 200, 1000, 5000, 20000, 40000};

}  // namespace

Cuda::Cuda(int ordinal) {
  auto loaded = client::CudaDriver::load();
  if (!loaded) throw NoGpu(loaded.error().message);
  client_ = *loaded;
  const char* const given = std::getenv("PERSEUS_CUDA");
  library_ = ::dlopen(given != nullptr && *given != '\0' ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (const int result = code("cuInit", 0U); result != 0) throw NoGpu("cuInit: " + name_of(result));
  int count = 0;
  call("cuDeviceGetCount", &count);
  if (ordinal >= count) {
    throw NoGpu("no GPU " + std::to_string(ordinal) + "; GPUs visible to CUDA: " + std::to_string(count));
  }
  simulated_ = symbol("perseus_simulated_configure") != nullptr;
  synchronize_ = find<decltype(synchronize_)>("cuStreamSynchronize");
  launch_ = find<decltype(launch_)>("cuLaunchKernel");
  call("cuDriverGetVersion", &driver_version_);
  call("cuDeviceGet", &device_, ordinal);
  std::array<char, 256> text{};
  call("cuDeviceGetName", text.data(), static_cast<int>(text.size()), device_);
  gpu_name_ = text.data();
  call("cuDeviceGetPCIBusId", text.data(), static_cast<int>(text.size()), device_);
  pci_bus_id_ = text.data();
  call("cuDevicePrimaryCtxRetain", &context_, device_);
  make_current();

  void* module = nullptr;
  call("cuModuleLoadData", &module, static_cast<const void*>(kernels().c_str()));
  if (!simulated_) {
    call("cuModuleGetFunction", &spin_, module, "spin");
    call("cuModuleGetFunction", &spin_cycles_, module, "spin_cycles");
    // The driver loads kernels when they are first launched.
    spin(nullptr, 1);
    spin_cycles(nullptr, 1);
    synchronize(nullptr);
    return;
  }
  for (const int microseconds : kSimulatedMicroseconds) {
    void* function = nullptr;
    const std::string name = "spin_" + std::to_string(microseconds);
    if (code("cuModuleGetFunction", &function, module, name.c_str()) == 0) simulated_spins_[microseconds] = function;
  }
  if (simulated_spins_.empty()) throw NoGpu("the simulated GPU has no computation named spin_20, spin_200, ...");
}

void* Cuda::symbol(const char* name) const { return ::dlsym(library_, name); }

std::string Cuda::name_of(int code) const {
  const char* name = nullptr;
  const auto get = find<int (*)(int, const char**)>("cuGetErrorName");
  if (get != nullptr && get(code, &name) == 0 && name != nullptr) return name;
  return "error " + std::to_string(code);
}

void Cuda::check(int code, const char* name) const {
  if (code != 0) throw CudaFailure(std::string(name) + ": " + name_of(code));
}

void Cuda::make_current() const { call("cuCtxSetCurrent", context_); }

Stream Cuda::make_stream() const {
  Stream stream = nullptr;
  call("cuStreamCreate", &stream, client::CudaDriver::kStreamNonBlocking);
  return stream;
}

Event Cuda::make_event(unsigned flags) const {
  Event event = nullptr;
  call("cuEventCreate", &event, flags);
  return event;
}

double Cuda::elapsed_us(Event from, Event to) const {
  float milliseconds = 0;
  check(client_->event_elapsed(&milliseconds, from, to), "cuEventElapsedTime");
  return 1000.0 * milliseconds;
}

void Cuda::launch(void* function, Stream stream, std::uint64_t parameter) const {
  std::array<void*, 1> parameters{&parameter};
  check(launch_(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr), "cuLaunchKernel");
}

void Cuda::spin(Stream stream, double microseconds) const {
  if (!simulated_) return launch(spin_, stream, static_cast<std::uint64_t>(1000 * microseconds));
  const auto* nearest = &*simulated_spins_.begin();
  for (const auto& known : simulated_spins_) {
    if (std::abs(known.first - microseconds) < std::abs(nearest->first - microseconds)) nearest = &known;
  }
  launch(nearest->second, stream, 0);
}

void Cuda::spin_cycles(Stream stream, std::uint64_t cycles) const {
  simulated_ ? spin(stream, 20) : launch(spin_cycles_, stream, cycles);
}

int Cuda::attribute(int number) const {
  int value = 0;
  return code("cuDeviceGetAttribute", &value, number, device_) == 0 ? value : -1;
}

}  // namespace perseus::measure
