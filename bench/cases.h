// The planning problems of the benchmarks: the published GPT-3 175B profiles, and larger ones made from them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <utility>

#include "io/formats/profile_csv.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"

namespace perseus::bench {

struct Case {
  const char* gpu;  ///< "a100_sxm" or "a40"
  int stages;       ///< 8: as published; otherwise that many distinct ones, made by distinct_stages()
  int microbatches;
  int chunks = 1;  ///< stages of each rank
  [[nodiscard]] std::string name() const {
    return chunks == 1 ? fmt::format("{} {}x{}", gpu, stages, microbatches)
                       : fmt::format("{} {}x{}x{}", gpu, stages / chunks, chunks, microbatches);
  }
};

inline std::filesystem::path shared_data() {
  const char* override = std::getenv("PERSEUS_SHARED_DATA");
  return override != nullptr ? override : PERSEUS_SHARED_DATA;
}

/// As many stages as asked for, none like another: each is a published stage with its times and energies scaled by
/// seeded factors of 0.9 to 1.1, and every measurement by another 0.98 to 1.02.
inline model::Profile distinct_stages(const model::Profile& published, int stages, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto factor = [&](double spread) {  // not std::uniform_real_distribution: it differs between libraries
    return 1 + spread * (2 * static_cast<double>(engine() >> 11) * 0x1p-53 - 1);
  };
  model::Profile profile;
  profile.accelerators.assign(stages, 1);
  for (int stage = 0; stage < stages; ++stage) {
    for (const char* const instruction : {"forward", "backward"}) {
      model::ProfileEntry entry = *published.find(stage % published.num_stages(), instruction);
      entry.stage = stage;
      const double slower = factor(0.1), dearer = factor(0.1);
      for (model::Measurement& m : entry.measurements) {
        m.time = m.time * (slower * factor(0.02));
        m.energy = m.energy * (dearer * factor(0.02));
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  return profile;
}

inline Result<model::ComputationDag> load(const Case& problem) {
  const std::string file = fmt::format("emulation/stage_profile/gpt3-175b+{}_bf16.csv", problem.gpu);
  Result<model::Profile> profile = formats::read_profile_csv((shared_data() / file).string());
  if (!profile) return profile.error();
  const bool a40 = std::string(problem.gpu) == "a40";
  const int chunks = problem.chunks;
  const Result<model::Schedule> schedule = model::make_schedule(
      chunks == 1 ? "1f1b" : "interleaved-1f1b", {problem.stages / chunks, problem.microbatches, chunks});
  if (!schedule) return schedule.error();
  const model::Profile stages = problem.stages == 8 ? *profile : distinct_stages(*profile, problem.stages, 7);
  return model::build_dag(stages, *schedule, {Watts(a40 ? 70.38 : 83.64), Seconds(0)});
}

}  // namespace perseus::bench
