// NOT NVML: a stand-in with behavior of real drivers that the simulated GPU does not have, for tests.
#pragma once

#include <atomic>

struct NvmlStandIn {
  bool slice = false;        ///< GPU 0 is a MIG slice of the card
  bool only_module = false;  ///< power fields have the scope of the module alone, as on superchips
  int field_code = 0;        ///< result of each single field; the call itself succeeds
  unsigned long long reasons = 0;
  unsigned mig_now = 0, mig_pending = 0;
  int lock_code = 0;  ///< result of the next call to lock a clock
  int lock_calls = 0;
  unsigned memory_mhz = 2619;  ///< now
  unsigned computes = 0;       ///< one more process that computes on the GPU; 0: none
  unsigned locked_mhz = 0;
  int list_code = 0;        ///< result of the list of memory clocks
  bool lists_none = false;  ///< ... which is empty
  int range_code = 0;       ///< result of the range of SM clocks
  unsigned limit_mw = 300'000;
};

/// Exported by the library as nvml_stand_in.
using GetNvmlStandIn = NvmlStandIn* (*)();

/// A driver that hangs.
struct NvmlHold {
  std::atomic<const char*> function{nullptr};  ///< calls of it block until this is null again
  std::atomic<int> calls{0};                   ///< calls that have begun to block
};

/// Exported as nvml_hold.
using GetNvmlHold = NvmlHold* (*)();
