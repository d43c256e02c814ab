// The pictures of `perseus emulate`, as SVG.
//
// Input:   the emulations, all-max first.
// Output:  energy.svg, power.svg, iteration.svg, band.svg and times.svg of the methods; scaling_strong.svg and
//          scaling_weak.svg of a sweep.
// Cost:    O(segments + rows).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paper/emulation_output.h"

namespace perseus::cli {

/// The parts of energy: their names in CSV and JSON, and in text.
struct EnergyPart {
  const char* key;
  const char* name;
  Joules emulator::EnergyParts::*value;
};
inline constexpr std::array kEnergyParts{
    EnergyPart{"useful_j", "useful", &emulator::EnergyParts::useful},
    EnergyPart{"intrinsic_bloat_j", "intrinsic bloat", &emulator::EnergyParts::intrinsic_bloat},
    EnergyPart{"extrinsic_bloat_j", "extrinsic bloat", &emulator::EnergyParts::extrinsic_bloat},
    EnergyPart{"blocking_j", "blocking", &emulator::EnergyParts::blocking},
    EnergyPart{"idle_j", "idle", &emulator::EnergyParts::idle}};

struct EmulationPictures {
  std::vector<std::pair<std::string, std::string>> by_name;  ///< file name and SVG
  /// Empty if there is no such picture.
  [[nodiscard]] std::string of(std::string_view name) const;
};

EmulationPictures draw_emulation(const EmulationReport& report);

}  // namespace perseus::cli
