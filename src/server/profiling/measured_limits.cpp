#include "server/profiling/measured_limits.h"

#include <fmt/format.h>

#include <cmath>

namespace perseus::profiling {
namespace {

constexpr Watts kMostPower(10'000);

}  // namespace

bool is_plausible(Joules energy, Seconds time) {
  return std::isfinite(energy.value()) && energy > Joules(0) && energy <= kMostPower * time;
}

std::string allowed_energy(Seconds time) {
  return fmt::format("more than 0, at most {} J ({:g} kW)", (kMostPower * time).value(), kMostPower.value() / 1000);
}

}  // namespace perseus::profiling
