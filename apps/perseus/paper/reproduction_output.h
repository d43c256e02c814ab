// The files of `perseus reproduce`: the paper's emulated tables and figures, for every planned case.
//
// Input:   planned cases in the order of the rows.
// Output:  CSV text with a header line, percent and seconds in %.4f and %.9g; a missing value is an empty field.
//          write_reproduction() writes all of them and the pictures into a directory, whole or not at all.
// Errors:  cannot_write.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "command_line/records.h"
#include "evaluation/reproduction/emulated_case.h"
#include "io/report/report.h"

namespace perseus::cli {

struct ReproducedCase {
  std::string model;
  std::string gpu;
  int stages = 0;
  int microbatches = 0;
  Watts blocking_power;  ///< of one GPU
  Seconds tau;
  reproduction::EmulatedCase plans;
  std::optional<reproduction::FrontierComparison> published;
};

/// Table 5: the global batch is fixed, so fewer microbatches per pipeline mean more pipelines.
inline constexpr int kGlobalBatchSize = 1536;
inline constexpr int kTensorParallel = 8;

/// Savings at the fastest point. `title`: of the first column of text, "MODEL`on`GPU".
Table table6_of(const std::vector<ReproducedCase>& cases, const std::string& title = "-", std::string_view on = "");

/// Fails early if the directory cannot be written.
Status check_reproduction(const std::filesystem::path& directory);
/// `facts`: where the result comes from, for the page index.html.
Status write_reproduction(const std::filesystem::path& directory, const std::vector<ReproducedCase>& cases,
                          const std::vector<report::ReportFact>& facts);

}  // namespace perseus::cli
