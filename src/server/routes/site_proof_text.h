// Proof and forecast of a site as JSON, and the proof as CSV; docs/openapi.json documents them.
//
// Output:  CSV: a heading, then a line per step and domain; unknown values are empty, and each least rate has a column
//          of its own.
// Errors:  none.
// Cost:    linear.
// Threads: pure functions.
#pragma once

#include <string>

#include "server/power/site_forecast.h"
#include "server/power/site_history.h"

namespace perseus::routes {

std::string site_proof_json(const power::SiteProof& proof);
std::string site_proof_csv(const power::SiteProof& proof);
/// `only`: the name of a domain; empty: all.
std::string site_forecast_json(const power::SiteForecast& forecast, const std::string& only);

}  // namespace perseus::routes
