// The files in which the Linux driver of AMD GPUs shows every user what zeusd does not: clocks, and the order of HIP.
//
// Input:   $PERSEUS_SYS in tests, else /sys.
// Output:  PCI bus ids, clocks of the shader engines.
// Errors:  not_supported: the driver lacks a file.
// Cost:    some files a call.
// Threads: any.
// Source:  Linux documentation of amdgpu (pp_dpm_sclk, hwmon freq1_input) and of KFD's topology.
#pragma once

#include <string>
#include <vector>

#include "training/device/gpu.h"
#include "training/device/pci_bus_id.h"

namespace perseus::device {

/// The GPUs that this process may use, in the order in which HIP numbers them: that of KFD's nodes. The partitions of a
/// card are functions 0, 1, ... of its bus id.
std::vector<PciBusId> amd_gpus_in_hip_order();

bool is_amd_gpu(const PciBusId& gpu);
/// The file whose permissions guard it ("/dev/dri/renderD128"); empty: not known.
std::string amd_device_node(const PciBusId& gpu);

/// Highest first, every 25 MHz: AMD's driver takes any clock above the lowest one as the limit.
struct AmdClocks {
  Megahertz lowest;
  std::vector<Megahertz> limits;
};
DeviceResult<AmdClocks> amd_clocks(const PciBusId& gpu);
DeviceResult<Megahertz> amd_clock_now(const PciBusId& gpu);

}  // namespace perseus::device
