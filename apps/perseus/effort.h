// The planner's effort: the option --effort, and what its names mean.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "planner/exact.h"

namespace perseus {

inline Effort effort_named(std::string_view name) {
  return name == "low" ? Effort::low : name == "high" ? Effort::high : Effort::normal;
}

inline CLI::Option* add_effort_option(CLI::App& subcommand, std::string& effort, const std::string& meaning) {
  return subcommand.add_option("--effort", effort, meaning)
      ->capture_default_str()
      ->check(CLI::IsMember({"low", "normal", "high"}).description(""))
      ->type_name("E");
}

}  // namespace perseus
