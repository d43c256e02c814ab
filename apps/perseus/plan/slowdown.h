// The tolerated slowdown: the option --slowdown 0.3%, its syntax, and the default plan of a plan file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "io/formats/plan_file.h"
#include "planning/model/default_plan.h"

namespace perseus::cli {

/// "0.3%" is 0.003; a percentage from 0 to 1000. Errors: usage.
Result<double> slowdown_of(const std::string& text);

/// Checks the text; parse it with slowdown_of().
CLI::Option* add_slowdown_option(CLI::App& subcommand, std::string& slowdown);

/// Key that 'perseus plan' and 'perseus compare' write into a plan file, and the rule of its default plan.
constexpr const char* kSlowdownKey = "slowdown";
model::DefaultRule default_rule(const std::string& method, double slowdown);
model::DefaultRule default_rule_of(const formats::PlanFile& file);

}  // namespace perseus::cli
