// The published measurements as planning problems; found through shared_data.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planning/model/computation_dag.h"

namespace perseus::testing {

struct PublishedCase {
  std::string name;     ///< valid as part of a test's name
  std::string profile;  ///< path below the shared data
  double blocking_power_w;
  int num_stages;
  int num_microbatches;
};

/// GPT-3 175B on A100 and A40, 12 and 24 microbatches; the four measured workloads.
const std::vector<PublishedCase>& published_cases();
model::ComputationDag load(const std::filesystem::path& shared_data, const PublishedCase& published);

}  // namespace perseus::testing
