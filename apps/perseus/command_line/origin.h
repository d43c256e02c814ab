// Where a result comes from: version, time, command line and inputs.
//
// Input:   the files that this process has read so far (io/formats/file.h): call it when all input is read.
// Output:  facts for reports and plan files. The command line is one that a shell reads back. The time is
//          $SOURCE_DATE_EPOCH if that is set, so that results can be reproduced byte for byte.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "io/report/report.h"

namespace perseus::cli {

/// "0.1.0 (commit 5ade73147cf5)"
std::string version_text();

std::vector<report::ReportFact> origin_facts();
/// After other facts, on a page.
std::vector<report::ReportFact> with_origin(std::vector<report::ReportFact> facts);
/// The same for --json.
boost::json::object origin_json();

/// The word as a shell reads it back.
std::string shell_word(const std::string& word);

}  // namespace perseus::cli
