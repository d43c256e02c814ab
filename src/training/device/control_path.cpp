#include "training/device/control_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "training/device/open_gpu.h"

namespace perseus::device {
namespace {

bool has_sys_admin() {
  if (geteuid() == 0) {
    std::ifstream map("/proc/self/uid_map");
    std::uint64_t inside = 0, outside = 0, count = 0;
    // Root of a separate user namespace is not root to the driver.
    if (map >> inside >> outside >> count && (outside != 0 || count < 0xffffffff)) return false;
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::uint64_t sys_admin = std::uint64_t{1} << 21U;
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) & sys_admin) != 0;
  }
  return false;
}

}  // namespace

ControlPath control_path(const std::string& selector) {
  const auto gpu = open_gpu(selector);
  if (!gpu) return {"none", "", gpu.error().message};
  const GpuSelector split = split_selector(selector);
  const std::string kind(split.kind), which(split.which);
  if (kind == "simulated") return {"simulated", selector, "a simulated GPU sets its clock itself"};
  const auto conditions = (*gpu)->conditions();
  if (conditions && conditions->mig) {
    return {"none", "",
            std::string((*gpu)->identity().amd ? "the card is divided" : "MIG is on") +
                ": clocks, power limit and energy counter are those of the whole GPU, not of a slice"};
  }
  const bool root = geteuid() == 0, admin = has_sys_admin();
  if (kind == "zeusd") {
    const GpuIdentity& identity = (*gpu)->identity();
    if (!identity.amd) return {"zeusd", selector, "selected, and it answers"};
    if (!identity.by_daemon) return {"none", "", "zeusd does not offer gpu-control"};
    return {"zeusd", selector,
            "for programs that wait for their GPU (PERSEUS_SYNCHRONOUS=1): the client has no device time of ROCm, so "
            "PyTorch's computations are timed by the host's clock and run at the driver's clocks"};
  }
  if (admin) { return {"NVML", selector, root ? "this process is root" : "this process has CAP_SYS_ADMIN"}; }
  const std::string lacks = root ? "this process is root in a container without CAP_SYS_ADMIN"
                                 : "this process is neither root nor has CAP_SYS_ADMIN";
  const auto zeusd = open_gpu("zeusd:" + which);
  if (zeusd) return {"zeusd", "zeusd:" + which, lacks + ", and zeusd sets clocks for it"};
  return {"none", "", lacks + "; " + zeusd.error().message};
}

}  // namespace perseus::device
