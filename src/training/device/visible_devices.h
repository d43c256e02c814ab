// Finds the GPU that a rank computes on, where no option names it.
//
// The rules, in this order:
//   1. The GPU of the calling thread's CUDA context, if libcuda is initialized in this process.
//   2. The rank's device number on its host (LOCAL_RANK, SLURM_LOCALID, OMPI_COMM_WORLD_LOCAL_RANK,
//      MV2_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, PALS_LOCAL_RANKID), counted among the visible devices.
//   3. The only visible device.
// The visible devices are those of an initialized libcuda, else those of CUDA_VISIBLE_DEVICES, read as CUDA reads it:
// the list ends at its first invalid entry, a repeated entry makes it empty, "" and "-1" hide every GPU, and of MIG
// slices only the first is visible. CUDA counts by PCI bus id only with CUDA_DEVICE_ORDER=PCI_BUS_ID; otherwise its
// numbers do not identify NVML's GPUs. HIP numbers the GPUs of KFD's nodes that ROCR_VISIBLE_DEVICES leaves, of which
// HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES, leaves some.
// Where the rules contradict each other or leave more than one GPU, the result is none: a GPU of another job must not
// be set.
//
// Input:   the machine's GPUs, libcuda's view, the environment.
// Output:  a selector for open_gpu(), or why there is none.
// Cost:    list_gpus() opens every GPU once; the rest none. libcuda is neither loaded nor initialized.
// Threads: any; look_at_cuda() reports the context of its calling thread.
// Source:  CUDA C++ Programming Guide, "CUDA Environment Variables"; ROCm documentation, "GPU isolation techniques".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace perseus::device {

struct ListedGpu {
  std::string selector, uuid, pci_bus_id;
  std::optional<std::size_t> hip_number = {};  ///< of an AMD GPU, before any variable hides some
};
/// Every GPU that this machine shows, in the order of find_gpus().
std::vector<ListedGpu> list_gpus();

/// The GPUs of an initialized libcuda, by PCI bus id.
struct CudaView {
  std::vector<std::string> bus_ids;  ///< by CUDA's device number; empty: not initialized
  std::string current;               ///< of the calling thread's context; empty: none
};
/// libcuda ($PERSEUS_CUDA, else libcuda.so.1) if this process has loaded it.
CudaView look_at_cuda();

/// The value of an environment variable; null: not set.
using ReadVariable = std::function<const char*(const char* name)>;

struct DeviceChoice {
  std::string selector;  ///< empty: none
  std::string why_not;   ///< empty with an empty selector: this machine has no GPU, or hides all of them
};

struct DeviceRequest {
  std::optional<int> cuda_number;  ///< given by the program ("cuda:1"): CUDA's number among the visible devices
  int rank = 0;                    ///< counts simulated GPUs where no variable gives the rank on this host
};
DeviceChoice choose_device(const std::vector<ListedGpu>& gpus, const CudaView& cuda, const ReadVariable& variable,
                           const DeviceRequest& request);

}  // namespace perseus::device
