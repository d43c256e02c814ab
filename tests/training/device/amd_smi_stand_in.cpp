#include "amd_smi_stand_in.h"

#include <algorithm>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

AmdStandIn state;
int gpus[2];
int a_socket;

int index_of(void* gpu) { return gpu == &gpus[0] ? 0 : 1; }

int begin(const char* function) {
  state.calls.emplace_back(function);
  return state.fails.empty() || state.fails == function ? state.status : 0;
}

}  // namespace

EXPORT AmdStandIn* amd_stand_in() { return &state; }

EXPORT int amdsmi_init(std::uint64_t flags) { return flags == 2 ? 0 : 1; }
EXPORT int amdsmi_get_socket_handles(std::uint32_t* count, void** sockets) {
  *count = 1;
  if (sockets != nullptr) sockets[0] = &a_socket;
  return 0;
}
EXPORT int amdsmi_get_processor_handles(void* socket, std::uint32_t* count, void** processors) {
  if (socket != &a_socket) return 1;
  *count = 2;
  if (processors != nullptr) {
    processors[0] = &gpus[0];
    processors[1] = &gpus[1];
  }
  return 0;
}
EXPORT int amdsmi_get_gpu_device_bdf(void* gpu, std::uint64_t* bdf) {
  *bdf = (std::uint64_t{1} << 16U) | (index_of(gpu) == 0 ? 0x4300U : 0x8308U);  // 1:43:00.0 and 1:83:01.0
  return 0;
}
EXPORT int amdsmi_get_gpu_device_uuid(void* gpu, unsigned* size, char* uuid) {
  std::strncpy(uuid, index_of(gpu) == 0 ? "a5ff74a1-0000" : "a5ff74a1-0001", *size);
  return 0;
}
EXPORT int amdsmi_get_gpu_asic_info(void*, void* info) {
  std::strcpy(static_cast<char*>(info), "AMD Instinct MI300X");
  return 0;
}
EXPORT int amdsmi_get_gpu_driver_info(void*, void* info) {
  std::strcpy(static_cast<char*>(info), "simulated 6.8");
  return 0;
}
EXPORT int amdsmi_get_energy_count(void*, std::uint64_t* accumulator, float* resolution_uj, std::uint64_t* at_ns) {
  *accumulator = state.accumulator;
  *resolution_uj = 15.3F;
  *at_ns = 1;
  return begin("amdsmi_get_energy_count");
}
EXPORT int amdsmi_get_clock_info(void* gpu, std::uint32_t type, void* info) {
  if (type != 0) return 1;
  std::uint32_t values[8] = {static_cast<std::uint32_t>(state.limit_max_mhz[index_of(gpu)]), 500, 1700};
  std::memcpy(info, values, sizeof values);
  return begin("amdsmi_get_clock_info");
}
EXPORT int amdsmi_get_power_info(void*, void* info) {
#if AMD_STAND_IN_ABI == 24
  const std::uint32_t values[2] = {state.power_w, state.average_power_w};
#else
  const std::uint32_t values[4] = {0, 0, state.power_w, state.average_power_w};  // socket power: 64 bits
#endif
  std::memcpy(info, values, sizeof values);
  return begin("amdsmi_get_power_info");
}
EXPORT int amdsmi_get_power_cap_info(void*, std::uint32_t, void* info) {
  const std::uint64_t values[5] = {state.power_cap_uw, 750'000'000, 0, 100'000'000, 750'000'000};
  std::memcpy(info, values, sizeof values);
  return begin("amdsmi_get_power_cap_info");
}
EXPORT int amdsmi_set_power_cap(void*, std::uint32_t sensor, std::uint64_t cap_uw) {
  if (const int failed = begin("amdsmi_set_power_cap"); failed != 0) return failed;
  if (sensor != 0 || cap_uw < 100'000'000 || cap_uw > 750'000'000) return 1;
  state.power_cap_uw = cap_uw;
  return 0;
}
EXPORT int amdsmi_set_gpu_clk_limit(void* gpu, std::uint32_t type, std::uint32_t limit, std::uint64_t mhz) {
  if (type != 0) return 1;
  const int failed = begin("amdsmi_set_gpu_clk_limit");
  if (failed != 0) return failed;
  std::uint64_t& least = state.limit_min_mhz[index_of(gpu)];
  std::uint64_t& most = state.limit_max_mhz[index_of(gpu)];
  if (mhz < 500 || mhz > 1700 || (limit == 0 ? mhz > most : mhz < least)) return 1;
  (limit == 0 ? least : most) = mhz;
  return 0;
}
EXPORT int amdsmi_set_gpu_perf_level(void* gpu, std::uint32_t level) {
  const int failed = begin("amdsmi_set_gpu_perf_level");
  if (failed != 0 || level != 0) return failed;
  state.limit_min_mhz[index_of(gpu)] = 500;
  state.limit_max_mhz[index_of(gpu)] = 1700;
  ++state.resets[index_of(gpu)];
  return 0;
}
