// The tolerated slowdown, --slowdown 0.3%: how it is written, and the default plan of a plan file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "io/formats/plan_file.h"
#include "planning/model/default_plan.h"

namespace perseus::cli {

/// "0.3%" is 0.003; a percentage from 0 to 1000. Errors: usage.
Result<double> slowdown_of(const std::string& text);

/// Checks the text; read it by slowdown_of().
CLI::Option* add_slowdown_option(CLI::App& subcommand, std::string& slowdown);

/// What 'perseus plan' and 'perseus compare' note in a plan file, and the rule of its default plan.
constexpr const char* slowdown_key = "slowdown";
model::DefaultRule default_rule(const std::string& method, double slowdown);
model::DefaultRule default_rule_of(const formats::PlanFile& file);

}  // namespace perseus::cli
