// Functions that the simulated CUDA driver has and no real driver has: messages between processes, exact stamps,
// knobs.
//
// A training replay needs the equivalent of NCCL's kernels: a stream that waits for a peer process without the host
// waiting, and continues at the device time at which the peer was done.
//
//   perseus_simulated_stream_await(stream, message, latency_s);  // the stream waits for deliver(message, ...)
//   cuLaunchKernel(...);                                         // then runs, at the peer's device time + latency
//   perseus_simulated_stream_tell(stream, reached, user);        // reached(user, device time): send it to the peer
//
// Input:   streams and contexts as for any function of the driver; device times are CLOCK_MONOTONIC seconds.
// Output:  error codes as for any function of the driver.
// Threads: any. `reached` runs on the device's thread: it delays all later work if it blocks; of the driver, it may
//          only call perseus_simulated_deliver().
#pragma once

#include "simulation/simulated_cuda/driver_api.h"

namespace perseus::simulated_cuda {

/// State of a stream when it reached a position. Plain data, written by the device.
struct Stamp {
  double time_s;                           ///< device time at which all previous work was done
  double energy_j;                         ///< of the GPU since its creation, until then
  double start_s, end_s, kernel_energy_j;  ///< of the stream's last kernel
  int kernel_clock_mhz;                    ///< the GPU's clock when that kernel was done
  double made_up_s;  ///< total: how late the simulation noticed that a kernel could start, without effect on any time
  double lost_s;     ///< total: the same, where it was too late to compensate
  double starved_s;  ///< total: how long kernels could have started but were not launched yet
};

/// What a GPU's file has recorded.
struct GpuRecord {
  double energy_j;           ///< since its creation, until the moment that was asked for
  double remembered_from_s;  ///< energies of moments before this one are wrong
  double power_limit_w;      ///< now
  int clock_mhz;             ///< now
  int locked;                ///< 1: its clock is locked and was not given back
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
inline constexpr const char* kReadGpuName = "perseus_simulated_read_gpu";

}  // namespace perseus::simulated_cuda

extern "C" {
/// The stream waits for that message; it continues at the message's device time plus the latency, or later.
int perseus_simulated_stream_await(perseus::simulated_cuda::CudaStream stream, std::uint64_t message, double latency_s);
/// Calls `reached` once the stream gets there; the stream does not wait for its return.
int perseus_simulated_stream_tell(perseus::simulated_cuda::CudaStream stream,
                                  perseus::simulated_cuda::ReachedFunction reached, void* user);
/// Once the stream gets there, sends 16 bytes to that connected socket: the message and the device time (a double),
/// for perseus_simulated_deliver() in the peer's process. For callers whose functions must not run on the device's
/// thread.
int perseus_simulated_stream_send(perseus::simulated_cuda::CudaStream stream, int socket, std::uint64_t message);
/// Writes *stamp once the stream gets there; valid after any synchronization with a later position of the stream.
int perseus_simulated_stream_stamp(perseus::simulated_cuda::CudaStream stream, perseus::simulated_cuda::Stamp* stamp);
/// A message with that device time has arrived. Each is awaited once; it may arrive before the stream awaits it.
int perseus_simulated_deliver(perseus::simulated_cuda::CudaContext context, std::uint64_t message, double time_s);
/// The device fails as after a fault: drops all work, and every call returns CUDA_ERROR_LAUNCH_FAILED from now on. No
/// `reached` runs any more when it returns.
int perseus_simulated_abort(perseus::simulated_cuda::CudaContext context);
/// Replaces the knobs of $PERSEUS_SIMULATED_CUDA (docs/simulated_gpu.md). CUDA_ERROR_INVALID_VALUE: invalid text.
int perseus_simulated_configure(const char* knobs);
/// Creates the file of a simulated GPU. The description has lines "NAME VALUE" (blocking_power_w, switch_latency_s,
/// counter_refresh_s) and lines "KERNEL MHZ SECONDS WATTS"; each kernel has all clocks. CUDA_ERROR_INVALID_VALUE:
/// standard error gives the reason.
int perseus_simulated_make_gpu(const char* path, const char* description);
/// Reads the file of a simulated GPU, in any process and without a context: a meter that asks no client.
/// at_s: a moment of the recent past. CUDA_ERROR_INVALID_VALUE: standard error gives the reason.
int perseus_simulated_read_gpu(const char* path, double at_s, perseus::simulated_cuda::GpuRecord* record);
}
