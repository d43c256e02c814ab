// The part of NVML's binary interface that this system calls: types, sizes, numbers.
//
// Problem: NVML's header is not available at build time, and its library only at run time. Units are NVML's (mW, mJ,
//          us): only nvml_gpu.cpp converts them. Names are NVML's too, so that they can be looked up.
// Source:  NVML API 13, x86-64 and AArch64; sizes checked below against those that NVIDIA's header gives.
#pragma once

namespace perseus::device::nvml {

using Device = struct OpaqueDevice*;

union Value {
  double d;
  int si;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  long long sll;
  unsigned short us;
};
enum ValueType {
  type_double = 0,
  type_uint = 1,
  type_ulong = 2,
  type_ull = 3,
  type_sll = 4,
  type_int = 5,
  type_us = 6
};

struct FieldValue {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  int valueType;
  int nvmlReturn;  ///< return code of this field alone
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

struct Sample {
  unsigned long long timeStampUs;
  Value value;
};
static_assert(sizeof(Sample) == 16);

struct PciInfo {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
static_assert(sizeof(PciInfo) == 68);

/// nvmlProcessInfo_v2_t, which the _v2 and _v3 calls fill.
struct ProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
static_assert(sizeof(ProcessInfo) == 24);

struct PowerValue {  ///< nvmlPowerValue_v2_t
  unsigned version;
  unsigned char powerScope;
  unsigned powerValueMw;
};
static_assert(sizeof(PowerValue) == 12);

enum Field : unsigned {
  field_total_energy = 83,
  field_power_average = 185,
  field_power_instant = 186,
  field_power_min_limit = 187,
  field_power_max_limit = 188,
  field_power_default_limit = 189,
  field_power_current_limit = 190,
  field_energy = 191,
  field_power_requested_limit = 192,
  field_time_below_power_cap = 74,  ///< ns
  field_power_smoothing = 251,
};
enum Scope : unsigned { scope_gpu = 0, scope_module = 1 };
enum ClockType { clock_graphics = 0, clock_sm = 1, clock_memory = 2, clock_video = 3 };

enum EventReason : unsigned long long {
  reason_idle = 0x1,
  reason_power_cap = 0x4,
  reason_hw_slowdown = 0x8,
  reason_sync_boost = 0x10,
  reason_sw_thermal = 0x20,
  reason_hw_thermal = 0x40,
  reason_power_brake = 0x80,
};

}  // namespace perseus::device::nvml
