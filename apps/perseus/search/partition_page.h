// The page of `perseus partition --page-out`: the stages as bars, the saving, where the result comes from.
//
// Input:   layers and a partition of them; with --objective energy, its energy.
// Output:  a page for write_static_page().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line/records.h"
#include "io/report/static_page.h"
#include "planning/partitioner/least_energy.h"

namespace perseus::cli {

struct PartitionResult {
  const std::string& title;
  const std::vector<model::Layer>& layers;
  const partitioner::Partition& partition;
  const std::optional<partitioner::LeastEnergy>& energy;
};

/// A line per stage.
Table stages_of(const PartitionResult& result);
report::StaticPage partition_page(const PartitionResult& result);

}  // namespace perseus::cli
