// Checks the files that 'perseus plan --out' wrote beside plans.json against plans.json.
//
// Input:   the plan file and its path; the switch latency that it was planned with; whether all files must exist.
// Output:  findings, one sentence each, and the number of compared files. The trace is compared byte by byte: it
//          contains the clocks, times and energies of all computations at maximum clock, which no plan may use. So are
//          the report, the pictures and the files in plans/. What another version wrote may look otherwise: it is not
//          checked.
// Errors:  none; an unreadable file is a finding.
// Cost:    that of computing all figures again.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/formats/plan_file.h"
#include "planning/model/default_plan.h"
#include "search/search_output.h"
#include "server/profiling/pooled_profile.h"

namespace perseus::cli {

struct CheckedFiles {
  std::vector<std::string> findings;
  int frequency_plans = 0;
  bool frontier_csv = false;
  bool report = false;
  bool trace = false;
  bool pictures = false;
  std::vector<std::string> not_checked;  ///< written by another version, or by nobody
};

/// Calls `progress` with 0..1, once per point.
CheckedFiles check_plan_files(const formats::PlanFile& file, const std::filesystem::path& path, Seconds switch_latency,
                              const model::DefaultRule& rule, bool whole_directory,
                              const std::function<void(double done)>& progress);

/// What lies in the folder besides the known names, a phrase each.
std::vector<std::string> foreign_files(const std::filesystem::path& folder, std::span<const std::string> known);

/// The first difference of a CSV file's text from the expected one, or "". Numbers may differ in their last
/// digits.
std::string compare_csv(const std::string& text, const std::string& expected, const std::string& name);

/// Checks what a plan file notes about its plans, in its metadata.
/// Input:   the plan file; the path of --profile and the pooled profile, if given.
/// Output:  findings, one sentence each; the keys whose values nothing here can check.
struct CheckedMetadata {
  std::vector<std::string> findings;
  std::vector<std::string> not_checked;  ///< keys
};

/// `planned_with`: nullptr without --profile.
CheckedMetadata check_metadata(const formats::PlanFile& file, const std::string& profile_path,
                               const profiling::PooledProfile* planned_with);

// What a search over configurations wrote beside its plans, which are checked separately. Errors: those of reading
// configurations.csv.
bool is_search_directory(const std::filesystem::path& path);
/// The folders that configurations.csv names, the reference first.
Result<std::vector<std::string>> configurations_in(const std::filesystem::path& directory);
/// Folders with plans that configurations.csv does not name, as findings.
std::vector<std::string> unlisted_configurations(const std::filesystem::path& directory,
                                                 const std::vector<std::string>& names);
std::vector<std::string> check_search_files(const std::filesystem::path& directory,
                                            const std::vector<PlannedConfiguration>& configurations,
                                            const model::DefaultRule& rule);

}  // namespace perseus::cli
