// Uncertainties of a calibration, as sentences for its report.
//
// Input:   a Calibration, and the relative errors of the iteration times of plans left out (replayed).
// Output:  one sentence per doubt: latencies, loading and tail smaller than their uncertainty, pairs of constants that
//          the data cannot separate, other links that explain the runs too, plans with an unusually large error, a
//          network that is the bottleneck; and the runs that would resolve the first three. Empty: none.
// Cost:    O(unknowns^2).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "evaluation/calibration/calibrate.h"

namespace perseus::calibration {

std::vector<std::string> doubts_of(const Calibration& calibration, std::span<const Prediction> predictions,
                                   const model::RunTrace& trace);

}  // namespace perseus::calibration
