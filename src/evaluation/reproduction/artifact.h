// Reads the published artifact's folder of emulation inputs and results.
//
// Input:   DATA_DIR with any models and GPUs:
//            emulation/stage_profile/MODEL+GPU_bf16.csv[.gz]               needed, at least one: times and energies
//            emulation/envpipe_result.csv[.gz]                             EnvPipe's iterations, may be absent
//            emulation/iteration_time_energy/GPU/MODEL_bf16_mbM.csv[.gz]   published frontiers, may be absent
//          The artifact's profile is of one GPU and a tenth of a stage; EnvPipe's numbers are of the whole pipeline and
//          are converted to the profile's scale (time / 10; energy / 10 / 8 tensor-parallel GPUs).
// Output:  profiles by model, then GPU. An unusable file or row does not stop the others: `left_out` lists it with the
//          reason ("file:line: ..." for contents).
// Units:   s, J.
// Errors:  of a folder without a usable profile: not_found if there is none at all, naming the folder and what is
//          expected, otherwise the error of the first.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/profile.h"

namespace perseus::reproduction {

struct EmulatedProfile {
  std::string model;
  std::string gpu;
  model::Profile profile;
};

/// One iteration of all-at-once plans: EnvPipe's final result.
struct PublishedIteration {
  std::string model;
  std::string gpu;
  int microbatches = 0;
  Seconds time;
  Joules energy;
};

struct Artifact {
  std::vector<EmulatedProfile> profiles;
  std::vector<PublishedIteration> envpipe;
  std::vector<std::string> left_out;  ///< one message per omission

  [[nodiscard]] const PublishedIteration* envpipe_of(const EmulatedProfile& profile, int microbatches) const;
};

Result<Artifact> read_artifact(const std::filesystem::path& folder);

/// Ascending numbers of microbatches with published results for this profile: EnvPipe's rows and the names of
/// frontiers.
std::vector<int> published_microbatches(const std::filesystem::path& folder, const Artifact& artifact,
                                        const EmulatedProfile& profile);

/// A row of a published frontier: planned (floored) time and the fitted model's energy.
struct PublishedPoint {
  Seconds planned_time;
  Joules energy;
};

/// Nothing if there is no such file; otherwise its rows in order, at least one.
Result<std::optional<std::vector<PublishedPoint>>> read_published_frontier(const std::filesystem::path& folder,
                                                                           const EmulatedProfile& profile,
                                                                           int microbatches);

}  // namespace perseus::reproduction
