#include "site_day/site_day_input.h"

#include <algorithm>

#include "planning/site/site_limits.h"

namespace perseus::cli {

site_emulator::SiteDay day_of(const model::SiteDescription& site, const PlannedSite& planned) {
  site_emulator::SiteDay day;
  day.timed = planned.timed;
  for (auto& limits : day.timed.limits) {
    for (model::LimitStep& step : limits) step.limit = std::max(Watts(0), step.limit);
  }
  for (const PlannedPipeline& pipeline : planned.pipelines) day.kinds.push_back({&pipeline.dag, &pipeline.frontier});
  day.kind_of = planned.pipeline_of;
  day.copies = planned.copies;
  day.ramp_step = site.ramp_step;
  for (const model::DescribedEvent& event : site.events) {
    site_emulator::Surprise surprise{event.domain, event.at, event.until,
                                     site::for_accelerators(event.limit, site, planned.constants[event.domain]),
                                     event.within};
    if (const auto up = site.domains[event.domain].ramp.up_w_per_s) {
      surprise.up_w_per_s = *up * site.supply_efficiency / site.pue;
    }
    day.surprises.push_back(surprise);
  }
  day.delay = {site.emulation.delay_median, site.emulation.delay_most, site.emulation.delay_spread};
  day.bias = site.emulation.bias;
  day.draw_more = site.emulation.draw_more;
  day.seed = site.emulation.seed;
  return day;
}

}  // namespace perseus::cli
