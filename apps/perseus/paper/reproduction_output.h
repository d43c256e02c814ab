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
#include "io/report/static_page.h"

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

struct ReproductionPictures {
  std::string figure7;
  std::vector<std::string> figure8, frontiers;  ///< one of each model and GPU
};
/// index.html: a headline, table 6, figures 7 and 8, and the frontiers. `facts`: where the result comes from.
report::StaticPage reproduction_page(const std::vector<ReproducedCase>& cases, const ReproductionPictures& pictures,
                                     const std::vector<report::ReportFact>& facts);

/// Fails early if the directory cannot be written.
Status check_reproduction(const std::filesystem::path& directory);
Status write_reproduction(const std::filesystem::path& directory, const std::vector<ReproducedCase>& cases,
                          const std::vector<report::ReportFact>& facts);

}  // namespace perseus::cli
