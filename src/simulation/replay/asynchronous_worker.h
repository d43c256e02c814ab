// A worker process of a training replay whose host runs ahead of its GPU, as with CUDA.
//
// The host enqueues a rank's iterations into a stream: waits for messages of peers, the computations between the
// hooks of the training framework, sends, the agreement at the end. Each of these calls returns at once. A separate
// thread (like NCCL's proxy) passes messages between the sockets and the stream, so that no host thread waits for a
// peer.
//
// Input:   as run_worker(); a CUDA device instead of a device that runs one computation at a time; how far ahead.
// Output:  as run_worker(), with the same reports: device times and energies do not depend on how far ahead the host
//          is. Worker 0 decides one iteration ahead about the next one, so that all follow a command after the same
//          iteration.
// Errors:  those of the links and of CUDA; a failure in one thread ends the others.
// Cost:    one more thread.
// Threads: hooks are called in the calling thread, in which the device's context is current.
// Source:  docs/simulated_gpu.md.
#pragma once

#include "base/result.h"
#include "simulation/replay/cuda_device.h"
#include "simulation/replay/worker.h"

namespace perseus::replay {

struct HostAhead {
  /// Maximum number of computations launched while a previous one has not ended: 1: one waits behind the running one.
  /// 0: no bound but the two below.
  int computations = 0;
  /// Maximum number of concurrent iterations.
  int iterations = 2;
};

Status run_asynchronous_worker(const WorkerOptions& options, const HostAhead& ahead, const RankScript& script,
                               PeerLinks& links, CudaDevice& device, WorkerClient& client);

}  // namespace perseus::replay
