// A stand-in for AMD SMI: two GPUs that check limits as the driver does, and a record of the calls, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct AmdStandIn {
  int status = 0;          ///< returned by every call about a GPU
  std::string fails = "";  ///< only this function fails, if not empty
  std::uint64_t limit_min_mhz[2] = {500, 500}, limit_max_mhz[2] = {1700, 1700};
  int resets[2] = {0, 0};
  std::uint64_t power_cap_uw = 650'000'000;
  std::uint64_t accumulator = 1'000'000;
  std::uint32_t power_w = 300, average_power_w = 290;
  std::vector<std::string> calls;
};

/// Exported by the library under this name.
using GetAmdStandIn = AmdStandIn* (*)();
