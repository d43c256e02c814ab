// Checks what a plan file notes about its plans, in its metadata.
//
// Input:   the plan file; the path of --profile and the pooled profile, if given.
// Output:  findings, one sentence each; the keys whose values nothing here can check.
// Errors:  none; what cannot be read is a finding.
// Cost:    that of building the schedule again.
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "io/formats/plan_file.h"
#include "server/profiling/pooled_profile.h"

namespace perseus::cli {

struct CheckedMetadata {
  std::vector<std::string> findings;
  std::vector<std::string> not_checked;  ///< keys
};

/// `planned_with`: nullptr without --profile.
CheckedMetadata check_metadata(const formats::PlanFile& file, const std::string& profile_path,
                               const profiling::PooledProfile* planned_with);

}  // namespace perseus::cli
