// The tables of `perseus site emulate`, which the terminal and the page show alike, and the page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "command_line/records.h"
#include "site_day/site_day_output.h"

namespace perseus::cli {

/// Kilowatts and seconds, as the tables print them.
std::string kilowatts(Watts power);

const std::string& name_of_domain(const SiteDayReport& report, const site_emulator::DomainPower& domain);

/// A row per method: work and energy; `whole`: in JSON with its limits, bands and minutes.
Table methods_of(const SiteDayReport& report, bool whole = false);
/// A row per method and limited domain.
Table limits_of(const SiteDayReport& report, std::span<const EmulatedDay> methods);
/// A row per method and finer trace.
Table bands_of(std::span<const EmulatedDay> methods);
/// At most that many, evenly apart.
Table minutes_of(const std::vector<site_emulator::Minute>& minutes, std::size_t most = 1'000'000);

/// Power against the limit over the day and around events, and the tables.
void write_site_day_page(const SiteDayReport& report, const report::Sink& sink);

}  // namespace perseus::cli
