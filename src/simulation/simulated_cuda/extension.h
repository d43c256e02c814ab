// Functions that the simulated CUDA driver has and no real driver has: messages between processes, exact stamps, knobs.
//
// A training replay needs what NCCL does with kernels: a stream that waits for a peer process without the host waiting,
// and continues at the device time at which the peer was done.
//
//     perseus_simulated_stream_await(stream, message, latency_s);  // the stream waits for deliver(message, ...)
//     cuLaunchKernel(...);                                         // then runs, at the peer's device time + latency
//     perseus_simulated_stream_tell(stream, reached, user);        // reached(user, device time): send it to the peer
//
// Input:   streams and contexts as any function of the driver takes them; device times are CLOCK_MONOTONIC seconds.
// Output:  error codes as any function of the driver returns them.
// Threads: any. `reached` runs on the device's thread: it delays everything behind it if it blocks; of the driver, it
//          may only call perseus_simulated_deliver().
#pragma once

#include "simulation/simulated_cuda/driver_api.h"

namespace perseus::simulated_cuda {

/// Where a stream was when it reached a place. Plain data, written by the device.
struct Stamp {
  double time_s;                           ///< device time at which everything before was done
  double energy_j;                         ///< of the GPU since it was made, until then
  double start_s, end_s, kernel_energy_j;  ///< of the stream's last kernel
  int kernel_clock_mhz;                    ///< that the GPU had when that kernel was done
  double made_up_s;  ///< in all: how late the simulation noticed that a kernel could start, without effect on any time
  double lost_s;     ///< in all: the same, where it was too late to have no effect
  double starved_s;  ///< in all: how long kernels could have started but were not launched yet
};

using ReachedFunction = void (*)(void* user, double time_s);

/// The names under which the library exports them.
inline constexpr const char* kStreamAwaitName = "perseus_simulated_stream_await";
inline constexpr const char* kStreamTellName = "perseus_simulated_stream_tell";
inline constexpr const char* kStreamSendName = "perseus_simulated_stream_send";
inline constexpr const char* kStreamStampName = "perseus_simulated_stream_stamp";
inline constexpr const char* kDeliverName = "perseus_simulated_deliver";
inline constexpr const char* kAbortName = "perseus_simulated_abort";
inline constexpr const char* kConfigureName = "perseus_simulated_configure";
inline constexpr const char* kMakeGpuName = "perseus_simulated_make_gpu";

}  // namespace perseus::simulated_cuda

extern "C" {
/// The stream waits for that message; it then is where the message was made plus the latency, or later.
int perseus_simulated_stream_await(perseus::simulated_cuda::CudaStream stream, std::uint64_t message, double latency_s);
/// Calls `reached` once the stream gets there; the stream does not wait for its return.
int perseus_simulated_stream_tell(perseus::simulated_cuda::CudaStream stream,
                                  perseus::simulated_cuda::ReachedFunction reached, void* user);
/// Once the stream gets there, sends 16 bytes to that connected socket: the message and the device time (a double), for
/// perseus_simulated_deliver() in the peer's process. For callers whose functions may not run on the device's thread.
int perseus_simulated_stream_send(perseus::simulated_cuda::CudaStream stream, int socket, std::uint64_t message);
/// Writes *stamp once the stream gets there; valid after any synchronization with a later place of the stream.
int perseus_simulated_stream_stamp(perseus::simulated_cuda::CudaStream stream, perseus::simulated_cuda::Stamp* stamp);
/// A message that was made at that device time is here. Each is awaited once; it may come before it is awaited.
int perseus_simulated_deliver(perseus::simulated_cuda::CudaContext context, std::uint64_t message, double time_s);
/// The device fails as it does after a fault: work is dropped, every call returns CUDA_ERROR_LAUNCH_FAILED from now on.
/// No `reached` runs any more when it returns.
int perseus_simulated_abort(perseus::simulated_cuda::CudaContext context);
/// Replaces the knobs of $PERSEUS_SIMULATED_CUDA (docs/simulated_gpu.md). CUDA_ERROR_INVALID_VALUE: not understood.
int perseus_simulated_configure(const char* knobs);
/// Makes the file of a simulated GPU. The description has lines "NAME VALUE" (blocking_power_w, switch_latency_s,
/// counter_refresh_s) and lines "KERNEL MHZ SECONDS WATTS"; each kernel has all clocks. CUDA_ERROR_INVALID_VALUE:
/// standard error says why.
int perseus_simulated_make_gpu(const char* path, const char* description);
}
