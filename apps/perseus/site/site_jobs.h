// From the description of a site to curves of power and rate: reads and plans each different job once.
//
// Input:   a description; the planner's effort.
// Output:  a site with its limits in W of the accelerators, `count` jobs for each described one ("name-1", ...).
// Errors:  those of the profiles and plans, with the place of the job in the file.
// Cost:    a frontier per different job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/site_description.h"
#include "planning/site/site_plan.h"

namespace perseus::cli {

/// One pipeline of a job.
struct PlannedPipeline {
  model::ComputationDag dag;
  model::Frontier frontier;
  Watts all_max;
  int gpus = 0;
};

struct PlannedSite {
  site::TimedSite timed;
  std::vector<PlannedPipeline> pipelines;  ///< the different ones
  std::vector<int> pipeline_of;            ///< per job
  std::vector<double> copies;              ///< per job: of each GPU of its pipeline
  std::vector<int> gpus;                   ///< per job
  std::vector<Seconds> full_speed;         ///< per job: iteration time at rate 1
  std::vector<Watts> constants;            ///< per domain: hosts and other loads, before PUE
};

Result<PlannedSite> plan_jobs(const model::SiteDescription& site, const std::string& effort,
                              const std::optional<bool>& progress);

}  // namespace perseus::cli
