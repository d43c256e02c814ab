// The parts into which an emulation divides energy, with their names.
//
// Threads: constants.
#pragma once

#include <array>

#include "simulation/emulator/emulate.h"

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

}  // namespace perseus::cli
