// The published GPT-3 175B emulation case: its DAG and its frontier, read in place.
//
// Input:   the folder of measurements (tests/support/shared_data.h), "a100_sxm" or "a40", a number of microbatches
//          with a published frontier.
// Output:  8 stages, 1F1B; points as in the file (planned time, fitted-model energy), slowest first.
// Errors:  aborts with a message: these files are known.
// Threads: pure functions.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/formats/file.h"
#include "io/formats/profile_csv.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/profile.h"
#include "planning/model/schedule.h"

namespace perseus::testing {

struct EmulatedGpu {
  std::string name;
  Watts blocking_power;
  Seconds unit_time;  ///< published tau
};

inline std::vector<EmulatedGpu> emulated_gpus() {
  return {{"a100_sxm", Watts(83.64), Seconds(0.001)}, {"a40", Watts(70.38), Seconds(0.0001)}};
}

inline model::ComputationDag emulated_dag(const std::filesystem::path& data, const EmulatedGpu& gpu, int microbatches) {
  const auto profile =
      formats::read_profile_csv((data / "emulation/stage_profile" / ("gpt3-175b+" + gpu.name + "_bf16.csv")).string());
  const auto schedule = model::make_schedule("1f1b", {.num_ranks = 8, .num_microbatches = microbatches, .chunks = 1});
  return model::build_dag(profile.value(), schedule.value(), {gpu.blocking_power, Seconds(0)}).value();
}

struct PublishedPoint {
  Seconds planned_time;
  Joules energy;
};

inline std::vector<PublishedPoint> published_frontier(const std::filesystem::path& data, const EmulatedGpu& gpu,
                                                      int microbatches) {
  const auto file = data / "emulation/iteration_time_energy" / gpu.name /
                    ("gpt3-175b_bf16_mb" + std::to_string(microbatches) + ".csv.gz");
  const std::string text = formats::read_file(file.string()).value();
  std::vector<PublishedPoint> points;
  for (const char* at = text.c_str() + text.find('\n') + 1; *at != '\0';) {
    char* end = nullptr;
    const double time_s = std::strtod(at, &end);
    PERSEUS_CHECK(*end == ',', "time,energy");
    const double energy_j = std::strtod(end + 1, &end);
    PERSEUS_CHECK(*end == '\n' || *end == '\r', "time,energy");
    points.push_back({Seconds(time_s), Joules(energy_j)});
    at = end + (*end == '\r' ? 2 : 1);
  }
  return points;
}

}  // namespace perseus::testing
