// The planner's effort: the option --effort, and the meaning of its names.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "planning/planner/exact.h"

namespace perseus::cli {

inline planner::Effort effort_named(std::string_view name) {
  return name == "low" ? planner::Effort::low : name == "high" ? planner::Effort::high : planner::Effort::normal;
}

inline CLI::Option* add_effort_option(CLI::App& subcommand, std::string& effort, const std::string& meaning) {
  return subcommand.add_option("--effort", effort, meaning)
      ->capture_default_str()
      ->check(CLI::IsMember({"low", "normal", "high"}).description(""))
      ->type_name("E");
}

}  // namespace perseus::cli
