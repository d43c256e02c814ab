// Clocks at which a job may start under the limits of a site, before it has a plan.
//
// Problem: a job without a plan runs at the highest clock, and there may be fewer watts than that takes.
// Model:   at a start ceiling every computation runs at that clock or, where it has only higher ones, at its lowest.
//          No computation of a rank draws more than its most power-hungry one, so the job never draws more than the sum
//          of these over its ranks, whichever of them compute at the same time.
// Input:   what a job can draw, with its pipelines (deployment.h); the least part of its full speed that it accepts.
// Output:  start_ceilings(): highest clock first, those at which an iteration takes no longer than the least rate
//          allows; the watts suffice for the slowest plan that keeps the least rate too, so that the job can follow a
//          plan without further watts. power_at_start(): at one ceiling; nothing: it is not known.
// Units:   W as planned.
// Errors:  none.
// Cost:    start_ceilings() a longest path per clock and pipeline.
// Threads: pure functions.
// Source:  docs/decisions/0062.
#pragma once

#include <optional>
#include <vector>

#include "server/jobs/deployment.h"

namespace perseus::jobs {

struct StartCeiling {
  int clock_mhz = 0;
  Watts power;
};

std::vector<StartCeiling> start_ceilings(const PowerChoices& choices, double least_rate);
std::optional<Watts> power_at_start(const PowerChoices& choices, int ceiling_mhz);

}  // namespace perseus::jobs
