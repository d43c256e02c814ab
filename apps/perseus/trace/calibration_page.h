// Tables of `perseus calibrate`, on the terminal and on its page report.html.
//
// Input:   a calibration, with the predictions of plans that were left out of it.
// Output:  cells of tables; a page for write_static_page().
#pragma once

#include <string>
#include <vector>

#include "command_line/records.h"
#include "evaluation/calibration/calibrate.h"
#include "io/formats/pipeline_constants.h"
#include "io/report/static_page.h"

namespace perseus::cli {

struct CalibrationOutcome {
  model::RunTrace trace;
  int folds = 0;
  std::vector<calibration::Prediction> predictions;
  calibration::PredictionErrors errors;
  calibration::Calibration calibration;
  model::Profile profile;
  formats::PipelineConstants constants;
  std::vector<std::string> doubts;
};

Table predictions_of(const CalibrationOutcome& outcome);
/// All link models that were tried, each with its errors on plans left out (with the plans' own computation times).
report::TextRows link_model_rows(const calibration::Calibration& calibration);

report::StaticPage calibration_page(const CalibrationOutcome& outcome, const std::vector<report::ReportFact>& facts);

}  // namespace perseus::cli
