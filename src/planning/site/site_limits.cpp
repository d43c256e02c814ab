#include "planning/site/site_limits.h"

#include <algorithm>
#include <cmath>

namespace perseus::site {

Watts ramped_limit(const std::vector<model::LimitStep>& limits, const model::Ramp& ramp, Seconds time) {
  Watts least = model::kNoLimit;
  for (std::size_t k = 0; k < limits.size(); ++k) {
    const Seconds from = limits[k].from;
    const bool later = time < from, over = k + 1 < limits.size() && limits[k + 1].from <= time;
    if (!later && !over) {
      least = std::min(least, limits[k].limit);
    } else if (later && ramp.down_w_per_s) {
      least = std::min(least, limits[k].limit + Watts(*ramp.down_w_per_s * (from - time).value()));
    } else if (over && ramp.up_w_per_s) {
      least = std::min(least, limits[k].limit + Watts(*ramp.up_w_per_s * (time - limits[k + 1].from).value()));
    }
  }
  return least;
}

Watts limit_at(const std::vector<model::LimitStep>& steps, Seconds time) {
  const auto after = std::ranges::upper_bound(steps, time, {}, &model::LimitStep::from);
  return after == steps.begin() ? model::kNoLimit : (after - 1)->limit;
}

Watts left_for_accelerators(Watts metered, const model::SiteDescription& site, Watts constant) {
  if (metered == model::kNoLimit) return metered;
  return site.supply_efficiency * (metered / site.pue - constant);
}

Watts as_metered(Watts accelerators, const model::SiteDescription& site, Watts constant) {
  return site.pue * (accelerators / site.supply_efficiency + constant);
}

Watts for_accelerators(Watts metered, const model::SiteDescription& site, Watts constant) {
  return std::max(Watts(0), left_for_accelerators(metered, site, constant));
}

int in_own_nodes(int gpus, const model::SiteDescription& site) {
  const int of_node = site.gpus_per_node;
  return gpus < of_node ? gpus : (gpus + of_node - 1) / of_node * of_node;
}

std::vector<Watts> constants_of(const model::SiteDescription& site, std::span<const int> gpus) {
  std::vector<Watts> constants;
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    const double nodes = std::ceil(static_cast<double>(gpus[d]) / site.gpus_per_node);
    constants.push_back(site.domains[d].constant + nodes * site.node_overhead);
  }
  for (std::size_t d = constants.size() - 1; d > 0; --d) constants[site.domains[d].parent] += constants[d];
  return constants;
}

std::vector<model::LimitStep> ramped(const std::vector<model::LimitStep>& limits, const model::Ramp& ramp, Seconds end,
                                     Seconds step) {
  if (!ramp.down_w_per_s && !ramp.up_w_per_s) return limits;
  std::vector<Seconds> times;
  for (Seconds time; time < end; time += step) times.push_back(time);
  for (const model::LimitStep& limit : limits) times.push_back(limit.from);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::vector<model::LimitStep> steps;
  for (std::size_t k = 0; k < times.size(); ++k) {
    Watts least = ramped_limit(limits, ramp, times[k]);
    // Just before the next time: at that time itself the next step of the limits may begin.
    if (k + 1 < times.size()) {
      const Seconds next(std::nextafter(times[k + 1].value(), 0));
      least = std::min(least, ramped_limit(limits, ramp, next));
    }
    const bool same =
        !steps.empty() && (least == steps.back().limit || std::abs(least / steps.back().limit - 1) < 1e-9);
    if (!same) steps.push_back({times[k], least});
  }
  return steps;
}

}  // namespace perseus::site
