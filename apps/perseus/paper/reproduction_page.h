// index.html of `perseus reproduce`: a headline, table 6, figures 7 and 8, and the frontiers.
//
// Input:   planned cases in the order of the rows, at least one; their pictures as SVG.
// Output:  a page for write_static_page().
#pragma once

#include <string>
#include <vector>

#include "io/report/static_page.h"
#include "paper/reproduction_output.h"

namespace perseus::cli {

struct ReproductionPictures {
  std::string figure7;
  std::vector<std::string> figure8, frontiers;  ///< one of each model and GPU
};

report::StaticPage reproduction_page(const std::vector<ReproducedCase>& cases, const ReproductionPictures& pictures,
                                     const std::vector<report::ReportFact>& facts);

}  // namespace perseus::cli
