// Reads the memory of pipeline stages as CSV.
//
//   stage,weights_gib,activations_gib,checkpoint_gib,recompute_gib
//   0,18.2,1.9,0.1,
//
// Input:   a header and one row per stage 0..N-1, columns and rows in any order. weights_gib (with gradients and
//          optimizer state) and activations_gib (of one microbatch) are required; checkpoint_gib and recompute_gib
//          may be left out or empty (planning/model/stage_memory.h). All values are of one accelerator. Other columns
//          are an error.
// Output:  one StageMemory per stage.
// Errors:  "file:line: column: value; allowed", the first one in the file.
// Cost:    O(rows). At most 65536 stages, 256 MiB.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planning/model/stage_memory.h"

namespace perseus::formats {

Result<std::vector<model::StageMemory>> parse_memory_csv(std::string_view text, const std::string& name);
Result<std::vector<model::StageMemory>> read_memory_csv(const std::string& path);

}  // namespace perseus::formats
