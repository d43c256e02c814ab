// Reads a site: power domains, limits over time and jobs, as TOML (docs/formats.md#site).
//
// Input:   TOML of at most 4 MiB; paths in it are relative to the file.
// Output:  a description that fits together: every name is known, parents come first, limits ascend in time.
// Errors:  "file:line: [table] key: VALUE; allowed: ...".
// Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "planning/model/site_description.h"

namespace perseus::formats {

/// `folder`: where relative paths begin; empty: the working directory.
Result<model::SiteDescription> parse_site(std::string_view text, const std::string& name, const std::string& folder);
Result<model::SiteDescription> read_site(const std::string& path);

}  // namespace perseus::formats
