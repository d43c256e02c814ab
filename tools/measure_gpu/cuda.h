// CUDA driver API for measurements: functions found at run time, one GPU, streams, events and kernels that spin.
//
// Input:   $PERSEUS_CUDA, else libcuda.so.1; the ordinal of a visible GPU.
// Output:  a current context; the client's own function table (training/client/cuda_driver.h) beside the rest.
// Errors:  NoGpu if there is no driver or no GPU; CudaFailure naming the call and CUDA's error.
// Threads: any thread that called make_current().
// Source:  CUDA driver API 11.4 to 13.0.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "training/client/cuda_driver.h"

namespace perseus::measure {

struct NoGpu : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct CudaFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Stream = void*;
using Event = void*;

class Cuda {
 public:
  explicit Cuda(int ordinal);
  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;

  /// The function of that name; null if the driver lacks it.
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  /// Calls a function whose parameters have exactly the types of the arguments; returns CUDA's code.
  template <class... Arguments>
  int code(const char* name, Arguments... arguments) const {
    const auto function = find<int (*)(Arguments...)>(name);
    if (function == nullptr) throw CudaFailure(std::string("the driver has no ") + name);
    return function(arguments...);
  }
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    check(code(name, arguments...), name);
  }
  void check(int code, const char* name) const;
  [[nodiscard]] std::string name_of(int code) const;

  void make_current() const;
  [[nodiscard]] Stream make_stream() const;
  [[nodiscard]] Event make_event(unsigned flags = 0) const;
  void record(Event event, Stream stream) const { check(client_->event_record(event, stream), "cuEventRecord"); }
  void synchronize(Stream stream) const { check(synchronize_(stream), "cuStreamSynchronize"); }
  [[nodiscard]] double elapsed_us(Event from, Event to) const;

  /// A kernel of one thread that runs for that time. A simulated GPU has only some durations; the nearest one runs.
  void spin(Stream stream, double microseconds) const;
  /// A kernel of one thread that runs for that number of SM clock cycles; on a simulated GPU: 20 us.
  void spin_cycles(Stream stream, std::uint64_t cycles) const;

  [[nodiscard]] const std::shared_ptr<const client::CudaDriver>& client() const { return client_; }
  [[nodiscard]] bool simulated() const { return simulated_; }
  [[nodiscard]] const std::string& gpu_name() const { return gpu_name_; }
  [[nodiscard]] const std::string& pci_bus_id() const { return pci_bus_id_; }
  [[nodiscard]] int driver_version() const { return driver_version_; }
  [[nodiscard]] int attribute(int number) const;

 private:
  [[nodiscard]] void* symbol(const char* name) const;
  void launch(void* function, Stream stream, std::uint64_t parameter) const;

  void* library_ = nullptr;
  std::shared_ptr<const client::CudaDriver> client_;
  int (*synchronize_)(void*) = nullptr;
  int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                 void**) = nullptr;
  int device_ = 0, driver_version_ = 0;
  bool simulated_ = false;
  std::string gpu_name_, pci_bus_id_;
  void *context_ = nullptr, *spin_ = nullptr, *spin_cycles_ = nullptr;
  std::map<double, void*> simulated_spins_;  ///< by microseconds
};

}  // namespace perseus::measure
