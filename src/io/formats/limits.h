// Upper bounds of values in files: far beyond any cluster, and small enough to avoid arithmetic overflow.
#pragma once

namespace perseus::formats {

inline constexpr int max_stage = 65'535;
inline constexpr int max_microbatch = (1 << 20) - 1;
inline constexpr int max_frequency_mhz = 1'000'000;
inline constexpr double max_time_s = 1e6;
inline constexpr double max_energy_j = 1e15;

}  // namespace perseus::formats
