// The published EnvPipe results, read in place.
//
// Input:   the folder of measurements (tests/support/shared_data.h), the GPU's name in its files, a number of
//          microbatches.
// Output:  the row of GPT-3 175B as published (ten times the time and eighty times the energy of the profile's GPU), or
//          nothing.
// Errors:  aborts with a message: the file is known.
// Threads: pure function.
#pragma once

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "base/result.h"
#include "io/formats/file.h"

namespace perseus::testing {

struct PublishedEnvPipe {
  double iteration_time_s;
  double energy_j;
};

inline std::optional<PublishedEnvPipe> published_envpipe(const std::filesystem::path& data, const std::string& gpu,
                                                         int microbatches) {
  std::istringstream lines(formats::read_file((data / "emulation/envpipe_result.csv").string()).value());
  std::string line;
  std::getline(lines, line);
  PERSEUS_CHECK(line.starts_with("model,precision,device,num_microbatches,num_pipelines,iteration_time,energy"),
                "the columns that are known");
  const std::string wanted = "gpt3-175b,bf16," + gpu + "," + std::to_string(microbatches) + ",";
  while (std::getline(lines, line)) {
    if (!line.starts_with(wanted)) continue;
    std::istringstream rest(line.substr(line.find(',', wanted.size()) + 1));
    PublishedEnvPipe row{};
    char comma = 0;
    rest >> row.iteration_time_s >> comma >> row.energy_j;
    PERSEUS_CHECK(!rest.fail() && comma == ',', "iteration_time,energy");
    return row;
  }
  return std::nullopt;
}

}  // namespace perseus::testing
