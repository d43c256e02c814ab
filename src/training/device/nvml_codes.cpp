#include "training/device/nvml_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace perseus::device {
namespace {

struct Row {
  int code;
  DeviceFault fault;
  std::string_view words;
};

constexpr std::array<Row, 28> kRows{{
    {1, DeviceFault::no_driver, "the library is not initialized"},
    {2, DeviceFault::not_supported, "invalid argument"},
    {3, DeviceFault::not_supported, "not supported"},
    {4, DeviceFault::no_permission, "no permission"},
    {6, DeviceFault::not_supported, "not found"},
    {7, DeviceFault::not_supported, "the buffer is too small"},
    {8, DeviceFault::lost, "a power cable is not connected"},
    {9, DeviceFault::no_driver, "the driver is not loaded"},
    {10, DeviceFault::busy, "time-out"},
    {11, DeviceFault::lost, "an interrupt problem"},
    {12, DeviceFault::no_driver, "the library is not found"},
    {13, DeviceFault::not_supported, "the library has no such function"},
    {14, DeviceFault::not_supported, "the infoROM is corrupted"},
    {15, DeviceFault::lost, "the GPU is lost"},
    {16, DeviceFault::lost, "the GPU must be reset"},
    {17, DeviceFault::no_permission, "blocked by the operating system"},
    {18, DeviceFault::no_driver,
     "library and driver are of different versions: no new process can use the GPU until the driver is loaded again or "
     "the machine boots"},
    {19, DeviceFault::busy, "in use"},
    {20, DeviceFault::busy, "out of memory"},
    {21, DeviceFault::busy, "no data"},
    {23, DeviceFault::busy, "out of resources"},
    {24, DeviceFault::bad_clock, "the clock is not supported"},
    {25, DeviceFault::not_supported, "another version of a structure"},
    {26, DeviceFault::not_supported, "deprecated"},
    {27, DeviceFault::busy, "not ready"},
    {28, DeviceFault::no_driver, "no GPU found"},
    {29, DeviceFault::busy, "invalid state"},
    {999, DeviceFault::busy, "unknown error"},
}};

constexpr std::string_view kHowToGetTheRight =
    "; clocks need root or CAP_SYS_ADMIN: setcap cap_sys_admin+ep perseus-clockd, or a container with --cap-add "
    "SYS_ADMIN, or zeusd (the device zeusd:...)";

const Row* row_of(int code) {
  const auto* found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.code == code; });
  return found == kRows.end() ? nullptr : found;
}

}  // namespace

DeviceFault fault_of_nvml(int code, bool sets_clock) {
  if (sets_clock && code == nvml_code::kInvalidArgument) return DeviceFault::bad_clock;
  const Row* row = row_of(code);
  return row == nullptr ? DeviceFault::busy : row->fault;
}

std::string_view nvml_words(int code) {
  const Row* row = row_of(code);
  return row == nullptr ? "an error that this program does not know" : row->words;
}

DeviceError nvml_error(std::string_view function, std::string_view gpu, int code, bool sets_clock) {
  const DeviceFault fault = fault_of_nvml(code, sets_clock);
  const bool lacks_right = sets_clock && fault == DeviceFault::no_permission;
  return {fault, fmt::format("{} of {}: {} (NVML {}){}", function, gpu, nvml_words(code), code,
                             lacks_right ? kHowToGetTheRight : "")};
}

}  // namespace perseus::device
