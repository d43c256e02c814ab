#include "planning/model/site.h"

#include <fmt/format.h>

#include <cmath>

namespace perseus::model {
namespace {

Error invalid_site(const std::string& message) { return {ErrorCode::invalid_input, message}; }

Status validate_curve(const SiteJob& job) {
  if (job.curve.points.empty()) return invalid_site(fmt::format("job '{}': its curve has no points", job.name));
  const PowerPoint* before = nullptr;
  for (const PowerPoint& point : job.curve.points) {
    const double power_w = point.power.value();
    if (!std::isfinite(power_w) || power_w < 0 || !(point.rate >= 0 && point.rate <= 1)) {
      return invalid_site(fmt::format("job '{}': a point of {} W and rate {}; allowed: at least 0 W, rates from 0 to 1",
                                      job.name, power_w, point.rate));
    }
    if (before != nullptr && (point.power <= before->power || point.rate <= before->rate)) {
      return invalid_site(
          fmt::format("job '{}': a point of {} W and rate {} after one of {} W and rate {}; allowed: more of "
                      "both",
                      job.name, power_w, point.rate, before->power.value(), before->rate));
    }
    before = &point;
  }
  if (before->rate == 0)
    return invalid_site(fmt::format("job '{}': its fastest rate is 0; allowed: above 0", job.name));
  return Ok{};
}

}  // namespace

Status validate(const Site& site) {
  if (site.domains.empty()) return invalid_site("the site has no domain; allowed: at least one");
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    const int parent = site.domains[d].parent;
    if (d == 0 ? parent != -1 : parent < 0 || parent >= static_cast<int>(d)) {
      return invalid_site(fmt::format("domain '{}': parent {}; allowed: {}", site.domains[d].name, parent,
                                      d == 0 ? "-1" : fmt::format("0 to {}", d - 1)));
    }
  }
  for (const SiteJob& job : site.jobs) {
    if (job.domain < 0 || job.domain >= std::ssize(site.domains)) {
      return invalid_site(
          fmt::format("job '{}': domain {}; allowed: 0 to {}", job.name, job.domain, site.domains.size() - 1));
    }
    if (!(job.weight > 0 && job.weight < 1e12)) {
      return invalid_site(fmt::format("job '{}': weight {}; allowed: above 0, below 1e12", job.name, job.weight));
    }
    if (!(job.least_rate >= 0 && job.least_rate <= 1)) {
      return invalid_site(fmt::format("job '{}': least rate {}; allowed: 0 to 1", job.name, job.least_rate));
    }
    if (Status valid = validate_curve(job); !valid) return valid;
  }
  return Ok{};
}

}  // namespace perseus::model
