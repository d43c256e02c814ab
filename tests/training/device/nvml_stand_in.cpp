#include "nvml_stand_in.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "training/device/nvml_abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace perseus::device::nvml;

constexpr int success = 0, invalid_argument = 2, not_found = 6, insufficient_size = 7;

NvmlStandIn state;
NvmlHold hold;
int the_card, the_slice;

Device handle(int& gpu) { return reinterpret_cast<Device>(&gpu); }

void hang_if_asked(const char* function) {
  const char* const held = hold.function;
  if (held == nullptr || std::strcmp(held, function) != 0) return;
  ++hold.calls;
  while (hold.function != nullptr) usleep(1000);
}

template <class T>
int give(const std::vector<T>& values, unsigned* count, T* list) {
  const unsigned room = std::exchange(*count, static_cast<unsigned>(values.size()));
  if (list == nullptr || room < values.size()) return insufficient_size;
  std::ranges::copy(values, list);
  return success;
}

int give(const char* text, char* into, unsigned size) {
  if (std::strlen(text) >= size) return insufficient_size;
  std::strcpy(into, text);
  return success;
}

}  // namespace

EXPORT NvmlStandIn* nvml_stand_in() { return &state; }
EXPORT NvmlHold* nvml_hold() { return &hold; }

EXPORT int nvmlInit_v2() {
  hang_if_asked("nvmlInit_v2");
  return success;
}
EXPORT int nvmlShutdown() { return success; }
EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) { return give("570.124.06", text, size); }
EXPORT int nvmlSystemGetNVMLVersion(char* text, unsigned size) { return give("12.570.124.06", text, size); }
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return success;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index != 0) return invalid_argument;
  *device = state.slice ? handle(the_slice) : handle(the_card);
  return success;
}
EXPORT int nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  return give(device == handle(the_slice) ? "MIG-slice" : "GPU-card", text, size);
}
EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  const bool slice = std::strcmp(uuid, "MIG-slice") == 0;
  if (!slice && std::strcmp(uuid, "GPU-card") != 0) return not_found;
  *device = slice ? handle(the_slice) : handle(the_card);
  return success;
}
EXPORT int nvmlDeviceGetMinorNumber(Device, unsigned* minor) {
  *minor = 3;  // in a container with one GPU of the host's
  return success;
}
EXPORT int nvmlDeviceIsMigDeviceHandle(Device device, unsigned* is) {
  *is = device == handle(the_slice) ? 1 : 0;
  return success;
}
EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device, Device* card) {
  *card = handle(the_card);
  return success;
}
EXPORT int nvmlDeviceGetMigMode(Device, unsigned* now, unsigned* pending) {
  *now = state.mig_now;
  *pending = state.mig_pending;
  return success;
}
EXPORT int nvmlDeviceGetFieldValues(Device, int count, FieldValue* fields) {
  hang_if_asked("nvmlDeviceGetFieldValues");
  for (FieldValue* field = fields; field != fields + count; ++field) {
    const bool other_scope = state.only_module && field->scopeId != scope_module;
    field->nvmlReturn = other_scope ? invalid_argument : state.field_code;
    field->valueType = type_uint;
    field->value.ui = field->fieldId == field_power_instant ? 500'000 : 1;
  }
  return success;
}
EXPORT int nvmlDeviceGetPowerUsage(Device, unsigned* milliwatts) {
  *milliwatts = 42'000;
  return success;
}
EXPORT int nvmlDeviceGetSupportedMemoryClocks(Device, unsigned* count, unsigned* mhz) {
  if (state.list_code != success) return state.list_code;
  return state.lists_none ? give<unsigned>({}, count, mhz) : give<unsigned>({1593, 2619, 405}, count, mhz);
}
EXPORT int nvmlDeviceGetMinMaxClockOfPState(Device, int, int, unsigned* least_mhz, unsigned* most_mhz) {
  *least_mhz = 345;
  *most_mhz = 1980;
  return state.range_code;
}
EXPORT int nvmlDeviceGetMaxClockInfo(Device, int, unsigned* mhz) {
  *mhz = 1500;
  return state.range_code == 3 ? success : state.range_code;
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) {
  *milliwatts = state.limit_mw;
  return success;
}
EXPORT int nvmlDeviceGetSupportedGraphicsClocks(Device, unsigned memory_mhz, unsigned* count, unsigned* mhz) {
  hang_if_asked("nvmlDeviceGetSupportedGraphicsClocks");
  if (memory_mhz == 2619) return give<unsigned>({1200, 1410, 1410, 900}, count, mhz);
  if (memory_mhz == 1593) return give<unsigned>({1300, 1100}, count, mhz);
  return memory_mhz == 405 ? give<unsigned>({210}, count, mhz) : not_found;
}
EXPORT int nvmlDeviceGetClockInfo(Device, int type, unsigned* mhz) {
  hang_if_asked("nvmlDeviceGetClockInfo");
  *mhz = type == clock_sm ? 1410 : type == clock_graphics ? 1395 : state.memory_mhz;
  return success;
}
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(Device, unsigned long long* reasons) {
  hang_if_asked("nvmlDeviceGetCurrentClocksEventReasons");
  *reasons = state.reasons;
  return success;
}
EXPORT int nvmlDeviceSetGpuLockedClocks(Device, unsigned lowest_mhz, unsigned highest_mhz) {
  ++state.lock_calls;
  if (const int code = std::exchange(state.lock_code, success); code != success) return code;
  if (lowest_mhz != highest_mhz) return invalid_argument;
  state.locked_mhz = lowest_mhz;
  return success;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(Device, unsigned* count, ProcessInfo* processes) {
  const auto own = static_cast<unsigned>(getpid()), parent = static_cast<unsigned>(getppid());
  std::vector<ProcessInfo> all{{own, 0, 0, 0}, {parent, 0, 0, 0}, {0x7fffffff, 0, 0, 0}};
  if (state.computes != 0) all.push_back({state.computes, 0, 0, 0});
  return give(all, count, processes);
}
