// The files, tables and pictures of `perseus emulate`.
//
// Input:   the emulations, all-max first.
// Output:  emulation.html with energy.svg, power.svg, iteration.svg, band.svg and times.svg; methods.csv,
//          segments.csv; and for a sweep scaling.csv and scaling_strong.svg, scaling_weak.svg: into a directory,
//          whole or not at all. Tables for the terminal.
// Errors:  cannot_write.
#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/report/report.h"
#include "simulation/emulator/emulate.h"
#include "simulation/emulator/scaling.h"

namespace perseus::cli {

struct EmulatedMethod {
  std::string name;
  emulator::Emulation run;
  emulator::Savings savings;
};

struct EmulationReport {
  std::string title;
  std::vector<report::ReportFact> facts;
  std::vector<EmulatedMethod> methods;        ///< empty if the user requested only a sweep
  std::vector<emulator::ScalingRow> scaling;  ///< empty without a sweep
};

std::string emulation_text(const EmulationReport& report);
boost::json::object json_of(const EmulationReport& report);

/// Fails early if the directory cannot be written. Without one ("") both do nothing.
Status check_emulation(const std::filesystem::path& directory);
Status write_emulation(const std::filesystem::path& directory, const EmulationReport& report);

}  // namespace perseus::cli
