// Options of the planner that several commands have: --effort, with the meaning of its names, and --switch-latency.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "command_line/command.h"
#include "planning/planner/exact.h"

namespace perseus::cli {

inline planner::Effort effort_named(std::string_view name) {
  return name == "low" ? planner::Effort::low : name == "high" ? planner::Effort::high : planner::Effort::normal;
}

inline CLI::Option* add_effort_option(CLI::App& subcommand, std::string& effort, const std::string& meaning) {
  return add_default(subcommand, "--effort E", effort, meaning,
                     CLI::IsMember({"low", "normal", "high"}).description(""));
}

inline CLI::Option* add_switch_latency_option(CLI::App& subcommand, double& latency_s) {
  return add_default(subcommand, "--switch-latency S", latency_s, "Time until a clock change takes effect, in seconds",
                     number_within(0, 1e6, "s"));
}

}  // namespace perseus::cli
