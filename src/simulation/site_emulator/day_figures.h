// What a day's power and work amount to: how well the limits were kept, and what that cost.
//
// Input:   a day and its run.
// Output:  over the limit: the mean over a domain's window above the mean of its limit over the same window, where
//          windows end; announced limits count at once, a surprise once the run's guaranteed reaction is over. A domain
//          without a window is judged by minutes. Ramp deviation: of a minute's mean from the limit's, or from what the
//          site would draw without limits if that is less, while an announced limit changes; the largest, over the
//          limit. Band: mean square of the part from 0.1 to 20 Hz (simulation/emulator/power_series.h).
// Cost:    O(bins x domains), a Fourier transform per finer trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulation/site_emulator/day_run.h"

namespace perseus::site_emulator {

struct Minute {
  Seconds from;
  Watts limit, planned, guard, drawn;  ///< means over the minute
};

struct OverLimit {
  Watts most;
  double watt_seconds = 0;
  Seconds time;
};

struct BandFigures {
  std::string name;
  double rms_w = 0;
  double share = 0;       ///< of all that alternates, in mean squares
  double energy_w2s = 0;  ///< of the time of its trace
};

struct DayFigures {
  double throughput = 0;  ///< weighted, of full speed
  double slowest = 0;     ///< job, of its full speed
  Joules energy;
  std::vector<OverLimit> over;           ///< per traced domain
  std::optional<double> ramp_deviation;  ///< of the site; nullopt: no announced limit of it changes
  Seconds guaranteed, reached;           ///< the longest of all surprises
  std::vector<double> during;            ///< throughput while each surprise lasts
  std::vector<BandFigures> bands;
  std::vector<std::vector<Minute>> minutes;  ///< per traced domain
};

DayFigures figures_of(const SiteDay& day, const DayRun& run);

}  // namespace perseus::site_emulator
