// Turns the model into a profile over all supported clocks, with standard deviations and the origin of each value.
//
// Input:   layout, samples, and the model of them.
// Output:  the estimate, without links. In plain mode, measured clocks have their averages, as published.
// Errors:  none.
// Cost:    linear in types and clocks.
// Threads: pure function.
#pragma once

#include "server/profiling/layout.h"
#include "server/profiling/online_profiler.h"
#include "server/profiling/samples.h"
#include "server/profiling/time_energy_model.h"

namespace perseus::profiling {

ProfileEstimate profile_estimate(const Layout& layout, const Samples& samples, const TimeEnergyModel& model,
                                 const ProfilingOptions& options);

/// `estimate.profile` without the extrapolated clocks, for planning.
model::Profile for_planning(const ProfileEstimate& estimate);

}  // namespace perseus::profiling
