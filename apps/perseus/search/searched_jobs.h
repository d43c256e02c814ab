// The jobs and choices that `perseus plan` searches over, from its options.
//
// Input:   the options and the measurements.
// Output:  choices, the reference first; the job as it is, then with microbatches of each other size.
// Errors:  usage: options contradict each other; those of reading memory and profiles.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/pipeline.h"
#include "planning/search/configuration.h"
#include "search/search_options.h"

namespace perseus::cli {

/// The configurations to try, the reference first.
Result<std::vector<search::ConfigurationChoice>> choices_of(const PipelineOptions& options,
                                                            const SearchOptions& search);

/// Layers of each stage: `given` has one number for every stage, or one for each.
std::vector<int> layers_per_stage(std::vector<int> given, int stages);

/// Takes the profile and its draws out of `measured`.
Result<search::SearchedJob> job_of(Measurements& measured, const SearchOptions& search);

/// The job as it is, then with microbatches of each other size.
Result<std::vector<search::SearchedJob>> jobs_of(const search::SearchedJob& job, const PipelineOptions& pipeline,
                                                 const SearchOptions& search);

/// The error of the reference configuration. If it is the memory limit, with what a model's memory was computed for and
/// the options that change it.
Error reference_error(Error error, search::SearchedJob job, const search::ConfigurationChoice& reference,
                      const SearchOptions& search);

}  // namespace perseus::cli
