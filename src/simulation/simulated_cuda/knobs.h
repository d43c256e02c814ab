// Deviations of the simulated CUDA driver from ideal behavior: removed abilities, delays, errors.
//
//   PERSEUS_SIMULATED_CUDA=stream_memory_operations=0,visible_after_us=500,fail=cuEventQuery:999:2
//
// Input:   "name=value,name=value"; the names are the table in knobs.cpp.
// Output:  Knobs.
// Errors:  usage naming the invalid part and the allowed values.
// Threads: parse: any. fault(): any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace perseus::simulated_cuda {

struct CudaFault {
  std::string function;
  int code = 0;
  int times = -1;  ///< number of calls that still fail; -1: all
  int after = 0;   ///< number of calls that still succeed before
};

struct Knobs {
  double stream_memory_operations = 1;     ///< the _v2 functions; 0: CUDA_ERROR_NOT_SUPPORTED
  double stream_memory_operations_v1 = 0;  ///< the functions without _v2, and attributes 92 to 94
  double capture_memory_operations =
      0;                      ///< 1: writes and waits become nodes of a graph; 0: they invalidate the capture
  double host_functions = 1;  ///< 0: cuLaunchHostFunc returns CUDA_ERROR_NOT_SUPPORTED
  double host_register = 1;   ///< 0: cuMemHostRegister returns CUDA_ERROR_NOT_SUPPORTED
  double host_pointer_is_device_pointer = 1;  ///< 0: registered memory has another address on the device
  double launch_queue = 1024;                 ///< operations of a stream; further launches make the host wait
  double launch_latency_us = 2;               ///< from a launch into an empty stream to the start of the kernel
  double visible_after_us = 2;                ///< from an event or a write on the device to its visibility on the host
  double host_function_after_us = 5;          ///< from the stream's arrival to the call of a host function
  double call_us = 0;                         ///< duration of every call
  double event_resolution_us = 0.5;
  double driver_version = 12040;
  std::vector<CudaFault> faults;
};

Result<Knobs> parse_knobs(std::string_view text);

/// The knobs in force. get() and fault() cost next to nothing: every call of the driver uses them.
class KnobBoard {
 public:
  KnobBoard() { set({}); }
  /// Valid permanently.
  [[nodiscard]] const Knobs& get() const { return *in_force_.load(std::memory_order_acquire); }
  void set(Knobs knobs);
  /// The injected return code of this call of that function; 0: none.
  int fault(std::string_view function);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Knobs>> all_;  ///< all that were ever set
  std::atomic<const Knobs*> in_force_{nullptr};
  std::vector<CudaFault> faults_;  ///< those in force, with their remaining counts
};

}  // namespace perseus::simulated_cuda
