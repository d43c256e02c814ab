// The simulated GPU of a worker, behind the CUDA driver's functions: a context, a stream, a kernel per computation
// type.
//
// Input:   the library (apps/cuda_simulated) by its path, the GPU by its state file, the kernels' names.
// Output:  launches and waits on one stream, as a training framework enqueues them. The context is current in the
//          thread that opened it.
// Errors:  unavailable naming the function and its code.
// Cost:    some microseconds a call; a launch waits while the driver's queue is full.
// Threads: deliver() and abort(): any; all others: the thread that opened it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "simulation/simulated_cuda/extension.h"

namespace perseus::replay {

class CudaDevice {
 public:
  /// Sets $PERSEUS_SIMULATED_GPUS and $PERSEUS_CUDA, so that other users of CUDA in this process get the same device.
  static Result<std::unique_ptr<CudaDevice>> open_process(const std::string& library, const std::string& gpu,
                                                          const std::map<int, std::string>& kernel_of);
  /// The `ordinal`-th GPU of $PERSEUS_SIMULATED_GPUS. kernel_of: type of the DAG -> name of the kernel.
  static Result<std::unique_ptr<CudaDevice>> open(const std::string& library, int ordinal,
                                                  const std::map<int, std::string>& kernel_of);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice();

  [[nodiscard]] void* stream() const { return stream_; }
  Status launch(int type);
  Status await(std::uint64_t message, double latency_s);
  Status tell(simulated_cuda::ReachedFunction reached, void* user);
  Status stamp(simulated_cuda::Stamp& stamp);
  Status deliver(std::uint64_t message, double time_s);
  void abort();

  /// An event without timing.
  Result<simulated_cuda::CudaEvent> make_event();
  Status record(simulated_cuda::CudaEvent event);
  Status wait(simulated_cuda::CudaEvent event);
  Result<bool> is_done(simulated_cuda::CudaEvent event);
  Status synchronize();

 private:
  struct Functions;
  explicit CudaDevice(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
  simulated_cuda::CudaContext context_ = nullptr;
  simulated_cuda::CudaStream stream_ = nullptr;
  std::map<int, simulated_cuda::CudaFunction> kernels_;
  int ordinal_ = 0;
};

}  // namespace perseus::replay
