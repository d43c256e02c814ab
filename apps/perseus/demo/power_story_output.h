// Output of `perseus demo --story power`: text on the terminal and a directory of results.
//
// Output:  whole or not at all, not at all after an interrupt (the caller holds an InterruptGuard):
//           DIR/summary.json    the verdict and its figures, a fixed set of keys
//           DIR/report.html     the trace of the meter, the verdict, events, jobs, and the server's proof
//           DIR/power.csv       the meter: energy and power every 0.1 s, the mean over the window, the limit
//           DIR/server.csv      what the server planned and counted
// Input:   the measurement.
// Errors:  cannot_write.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "demo/power_story.h"

namespace perseus::cli {

Status check_power_output(const std::filesystem::path& directory);
/// False: interrupted, nothing was written.
Result<bool> write_power_output(const std::filesystem::path& directory, const PowerMeasurement& m);

std::string power_text(const PowerMeasurement& m);
std::string power_summary_json(const PowerMeasurement& m);

}  // namespace perseus::cli
