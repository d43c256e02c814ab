// Upper bounds of values in files: far beyond any cluster, and small enough to avoid arithmetic overflow.
#pragma once

namespace perseus::formats {

inline constexpr int kMaxStage = 65'535;
inline constexpr int kMaxMicrobatch = (1 << 20) - 1;
inline constexpr int kMaxFrequency_mhz = 1'000'000;
inline constexpr double kMaxTime_s = 1e6;
inline constexpr double kMaxEnergy_j = 1e15;

}  // namespace perseus::formats
