// Reads an emulator scenario from TOML: a cluster, its pipelines, and its stragglers.
//
// Format, documented in docs/formats.md; data/sample_scenario.toml is an example. Paths of profiles are relative to
// the scenario's folder.
//
// Output:  a Scenario with resolved names; stages and GPUs of stragglers are checked later, when profiles are known
//          (simulation/emulator/drawn_stragglers.h).
// Errors:  "file:line: [table] key: VALUE; allowed: ...", the first one; unknown keys too, since a misspelled one
//          must not be ignored. Limits: 1 MiB, 65536 pipelines, 10000 tables of each kind.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "planning/model/scenario.h"

namespace perseus::formats {

/// `name` identifies the file in messages, `folder` contains the profiles ("" for the working directory).
/// `traced`: a timeline gives microbatches and counts, so they may be missing.
Result<model::Scenario> parse_scenario(std::string_view text, const std::string& name, const std::string& folder = "",
                                       bool traced = false);
Result<model::Scenario> read_scenario(const std::string& path, bool traced = false);

}  // namespace perseus::formats
