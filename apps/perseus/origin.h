// Where a result comes from: version, time, command line and inputs.
//
// Input:   paths of the input files; empty ones are skipped.
// Output:  facts for reports and plan files. The time is $SOURCE_DATE_EPOCH if that is set, so that results can be
//          reproduced byte for byte.
// Errors:  none; a file that cannot be read again has no hash.
// Cost:    reads the files.
// Threads: any.
#pragma once

#include <string>
#include <vector>

#include "io/report/report.h"

namespace perseus::cli {

/// "0.1.0 (commit 5ade73147cf5)"
std::string version_text();

std::vector<report::ReportFact> origin_facts(const std::vector<std::string>& inputs);

}  // namespace perseus::cli
