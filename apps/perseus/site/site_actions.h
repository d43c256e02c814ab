// The actions of `perseus site`, each registered with its group.
#pragma once

#include <CLI/CLI.hpp>

#include "command_line/command.h"

namespace perseus::cli {

/// A day of a site in virtual time, method by method.
void add_site_emulate(CLI::App& group, Command& command);
/// set, show, limit, clear and status: the power limits that a server keeps. Input: a TOML file
/// (docs/power.md#on-a-server; times are seconds since 1970), or the JSON of PUT /v1/site. Errors of the file name its
/// line, also for keys of plans only and times before 2001.
void add_site_server_actions(CLI::App& group, Command& command);
/// Watts for a job that a scheduler is about to start.
void add_site_admit(CLI::App& group, Command& command);
void add_site_release(CLI::App& group, Command& command);
/// proof and forecast: what a site drew under its limits, and what the announced ones will mean.
void add_site_reports(CLI::App& group, Command& command);
/// A utility's OpenADR events as watt limits of a domain.
void add_site_follow(CLI::App& group, Command& command);

}  // namespace perseus::cli
