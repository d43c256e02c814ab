#include "server/power/site_guard.h"

#include <algorithm>
#include <array>

namespace perseus::power {
namespace {

constexpr double kSamePower = 1 + 1e-9;

}  // namespace

site::SwingSum swing_under(const PoweredJob& job, std::span<const Watts> grants, Seconds window) {
  site::SwingSum sum;
  if (!job.swing) return sum;
  const policies::PowerChoices& choices = job.swing->choices();
  const Watts most = std::ranges::max(grants);
  const auto may_follow = [&](const site::WindowSwing& planned, Watts mean) {
    const site::WindowSwing swing = job.correction * planned;
    const Watts above = swing.above - std::max(Watts(0), most - mean);
    if (above <= Watts(0)) return;
    // The greatest deviation and the variance are those around the plan's own mean: Bernstein's inequality needs them.
    sum.above = std::max(sum.above, above);
    sum.greatest = std::max(sum.greatest, swing.above);
    sum.variance_w2 = std::max(sum.variance_w2, swing.variance_w2);
  };
  for (const Watts grant : grants) {
    const policies::PowerAtTime& plan = policies::fastest_within(choices.plans, kSamePower * (grant / job.correction));
    may_follow(job.swing->of_plan(plan, window), job.correction * plan.power);
    const bool unlimited = kSamePower * grant >= job.correction * choices.all_max;
    if (unlimited) may_follow(job.swing->of_maximum_clock(window), most);
  }
  return sum;
}

DomainWindows windows_of_limits(const PoweredSite& site) {
  DomainWindows windows = site.windows;
  bool some = false;
  for (std::size_t d = 0; d < windows.size(); ++d) {
    if (site.limits[d] == model::kNoLimit) windows[d] = std::nullopt;
    some |= windows[d].has_value();
  }
  if (!some) windows.clear();
  return windows;
}

std::vector<Watts> guards_of(const PoweredSite& site, const DomainWindows& windows, std::span<const Watts> grants) {
  std::vector<Watts> guards(site.domains.size());
  if (windows.empty()) return guards;
  std::vector<site::SwingSum> sums(site.domains.size());
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    for (int d = site.jobs[j].domain; d >= 0; d = site.domains[d].parent) {
      if (windows[d]) sums[d] += swing_under(site.jobs[j], grants.subspan(j, 1), *windows[d]);
    }
  }
  std::ranges::transform(sums, guards.begin(), site::window_guard);
  return guards;
}

std::vector<Watts> next_grants(const PoweredSite& site, std::span<const site::GrantedPower> powers) {
  const DomainWindows windows = windows_of_limits(site);
  site::GrantWindows guarded{windows, {}};
  guarded.swing_of = [&](std::size_t j, bool rises, Seconds window) {
    const site::GrantedPower& power = powers[j];
    const Watts next = std::min(power.granted, power.wanted);
    return swing_under(site.jobs[j], std::array{power.counted, next, rises ? power.wanted : next}, window);
  };
  return site::next_grants(site.domains, site.limits, powers, guarded);
}

}  // namespace perseus::power
