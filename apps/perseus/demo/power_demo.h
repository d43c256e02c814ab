// perseus demo --story power: runs the story, writes its results.
//
// Output:  exit code 0 if the verdict holds, 1 if it does not; both with all results.
// Errors:  those of PowerStory and of writing.
// Threads: one.
#pragma once

#include "base/result.h"
#include "demo/demo_job.h"

namespace perseus::cli {

Result<int> run_power_demo(const DemoOptions& options, bool as_json);

}  // namespace perseus::cli
