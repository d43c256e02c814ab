// Why this process finds no GPU, and what to change, in one clause for a log.
//
// Problem: in a container the usual reason is an option that is missing where the container is started, and neither
//          NVML nor CUDA names it.
// Input:   traces of drivers in /proc and /dev, NVML's answer.
// Output:  a clause: "this machine has no GPU driver (...)", "the container has no GPU: start it with --gpus all ...".
// Cost:    four file look-ups; loads NVML.
// Threads: any.
// Source:  NVIDIA Container Toolkit, "Driver capabilities" (utility mounts NVML).
#pragma once

#include <string>

namespace perseus::device {

struct GpuTraces {
  bool nvidia_driver = false;  ///< /proc/driver/nvidia: the kernel has the driver, also if a container hides its GPUs
  bool nvidia_node = false;    ///< /dev/nvidiactl
  bool amd_node = false;       ///< /dev/kfd
  std::string nvml;            ///< why NVML does not work; empty: it works
  std::string failing = {};    ///< why NVML does not count or name a GPU; empty: it does
};

/// `root`: where /proc and /dev are; empty: here.
GpuTraces gpu_traces(const std::string& root = {});

std::string why_no_gpu(const GpuTraces& traces);

}  // namespace perseus::device
