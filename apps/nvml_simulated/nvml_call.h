// Common code of the functions of the simulated NVML library: the checks before a call and NVML's ways of output.
//
// Input:   the name of NVML's function, which injected faults name; a handle; pointers of the caller.
// Output:  NVML's codes; values behind the caller's pointers.
// Errors:  no initialization, an invalid handle, a lost GPU, an injected fault, a null pointer, a buffer too small: the
//          codes of NVML.
// Cost:    a lock.
// Threads: any.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "devices.h"
#include "training/device/nvml_codes.h"

#define NVML_API extern "C" __attribute__((visibility("default")))

namespace perseus::nvml_simulated {

using device::nvml_code::kSuccess;

inline int put(std::string_view text, char* to, unsigned size) {
  if (to == nullptr) return device::nvml_code::kInvalidArgument;
  if (text.size() >= size) return device::nvml_code::kInsufficientSize;
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  return kSuccess;
}

template <class T, class V>
int put(T* to, V value) {
  if (to == nullptr) return device::nvml_code::kInvalidArgument;
  *to = static_cast<T>(value);
  return kSuccess;
}

/// NVML's lists: `count` is the capacity on input and the length on output.
template <class T>
int put(const std::vector<T>& list, unsigned* count, T* to) {
  if (count == nullptr) return device::nvml_code::kInvalidArgument;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.empty()) return kSuccess;
  if (room < list.size() || to == nullptr) return device::nvml_code::kInsufficientSize;
  std::ranges::copy(list, to);
  return kSuccess;
}

/// The checks at the begin of every function about a GPU: initialized, a valid GPU, no injected fault; then calls
/// `f`.
template <class F>
int with(const char* function, device::nvml::Device handle, F f) {
  if (!devices().begun()) return device::nvml_code::kUninitialized;
  NvmlDevice* device = devices().find(handle);
  if (device == nullptr) return device::nvml_code::kInvalidArgument;
  if (!device->driver) return device::nvml_code::kGpuIsLost;
  if (const int code = device->driver->fault(function); code != kSuccess) return code;
  return f(*device->driver);
}

/// The same for functions about no GPU.
template <class F>
int without(const char* function, F f) {
  if (!devices().begun()) return device::nvml_code::kUninitialized;
  if (const int code = devices().fault(function); code != kSuccess) return code;
  return f();
}

}  // namespace perseus::nvml_simulated
