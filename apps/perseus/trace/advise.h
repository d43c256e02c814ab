// What a job would save: the table of `perseus advise`, for other commands too.
//
// Input:   a pipeline and the size of the job.
// Output:  the table as text and as JSON.
// Errors:  those of read_pipeline() and of the planner; usage: a number of GPUs that is no multiple of a pipeline's.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/report/table.h"
#include "plan/pipeline.h"

namespace perseus::cli {

struct AdviseOptions {
  PipelineOptions pipeline;
  std::string effort = "normal", currency;
  std::optional<int> gpus;
  std::optional<double> price_per_kwh, carbon_g_per_kwh;
  double switch_latency_s = 0;
  std::optional<bool> progress;
  std::vector<double> stragglers = {1.05, 1.1, 1.2};  ///< times of the one that all others wait for
};

struct AdviceTable {
  report::TextRows rows;
  std::vector<std::string> assumptions;
  std::string text;
  boost::json::object json;
};

/// --price, --currency, --carbon, --switch-latency, --effort, --progress.
void add_advice_options(CLI::App& app, AdviseOptions& options);
Result<AdviceTable> advise_job(const AdviseOptions& options);

}  // namespace perseus::cli
