// Checks the files that a search over configurations wrote beside its plans against the plans.
//
// Input:   the directory, and the configurations' plan files, which are checked separately.
// Output:  findings, one sentence each.
// Errors:  those of reading configurations.csv.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "search/search_output.h"

namespace perseus::cli {

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
