// Where lookup, verify and show find plans: a directory that `perseus plan --out` wrote, or its plans.json.
//
// Errors:  those of io/formats/plan_file.h; not_found for a directory without plans.json.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "io/formats/plan_file.h"

namespace perseus::cli {

/// PLANS itself, or the plans.json in it.
std::filesystem::path plan_file_path(const std::string& plans);
/// Errors: also usage, where `plans` holds several configurations.
Result<formats::PlanFile> read_plans(const std::string& plans);
/// Keys of a plan file's metadata: the clock limits that its plans were made for.
constexpr const char* kSwitchLatencyKey = "switch_latency_s";
constexpr const char* kMinDwellKey = "min_dwell_s";
/// The time noted under such a key; 0: none, or not a time.
Seconds noted_time(const formats::PlanFile& file, const std::string& key);
/// The plan's .py beside that plans.json; empty if there is none.
std::filesystem::path frequency_plan_path(const std::filesystem::path& plan_file, int point);

}  // namespace perseus::cli
