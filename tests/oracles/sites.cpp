#include "oracles/sites.h"

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <algorithm>
#include <cmath>
#include <string>

namespace perseus::testing {
namespace {

double value_at(model::SiteObjective objective, const model::SiteJob& job, double rate) {
  if (objective == model::SiteObjective::slowdown) return -job.weight / rate;
  return objective == model::SiteObjective::throughput ? job.weight * rate : rate;
}

bool is_accepted(const model::SiteJob& job, const model::PowerPoint& point) {
  return (point.rate > 0 && point.rate >= job.least_rate) || &point == &job.curve.points.back();
}

/// The domains that count a job, from its own to the site.
std::vector<int> path_of(const model::Site& site, int job) {
  std::vector<int> path;
  for (int d = site.jobs[job].domain; d >= 0; d = site.domains[d].parent) path.push_back(d);
  return path;
}

void combine(const LimitedSite& limited, model::SiteObjective objective, std::vector<int>& chosen,
             std::vector<double> used_w, double value, std::optional<double>& best) {
  const int job = static_cast<int>(chosen.size());
  const bool least = objective == model::SiteObjective::max_min;
  if (job == std::ssize(limited.site.jobs)) {
    if (!best || value > *best) best = value;
    return;
  }
  const model::SiteJob& j = limited.site.jobs[job];
  for (int p = 0; p < std::ssize(j.curve.points); ++p) {
    const model::PowerPoint& point = j.curve.points[p];
    if (!is_accepted(j, point)) continue;
    std::vector<double> now_w = used_w;
    bool fits = true;
    for (const int d : path_of(limited.site, job)) {
      now_w[d] += point.power.value();
      fits = fits && now_w[d] <= limited.limits[d].value() * (1 + 1e-12);
    }
    if (!fits) continue;
    const double own = value_at(objective, j, point.rate);
    chosen.push_back(p);
    combine(limited, objective, chosen, now_w, least ? std::min(value, own) : value + own, best);
    chosen.pop_back();
  }
}

}  // namespace

LimitedSite random_site(Dice& dice, int domains, int jobs, int points) {
  LimitedSite limited;
  const int num_domains = dice.roll(1, domains), num_jobs = dice.roll(1, jobs);
  for (int d = 0; d < num_domains; ++d) {
    limited.site.domains.push_back({"d" + std::to_string(d), d == 0 ? -1 : dice.roll(0, d - 1)});
  }
  std::vector<double> least_w(num_domains), most_w(num_domains);
  for (int j = 0; j < num_jobs; ++j) {
    model::SiteJob job{.name = "j" + std::to_string(j),
                       .curve = {},
                       .weight = 1.0 * dice.roll(1, 4),
                       .least_rate = 0.25 * dice.roll(0, 4),
                       .domain = dice.roll(0, num_domains - 1)};
    double power_w = 10.0 * dice.roll(0, 20);
    // Long curves are concave, with a bump or none.
    const bool is_long = points > 20;
    const int parts = is_long ? 2 * points : 20, bump = dice.roll(0, 2 * points);
    int part = dice.one_in(3) ? 0 : dice.roll(0, 5);
    const auto add_point = [&] {
      job.curve.points.push_back({Watts(power_w), static_cast<double>(part) / parts, 0, false});
    };
    for (int p = dice.roll(1, points); p > 0 && part <= parts; --p) {
      add_point();
      const int above = static_cast<int>(std::ssize(job.curve.points));
      power_w += is_long && above != bump ? 10.0 + above : 10.0 * dice.roll(1, 5);
      part += is_long ? 1 : dice.roll(1, 4);
    }
    if (job.curve.points.back().rate == 0) add_point();
    limited.site.jobs.push_back(job);
    for (const int d : path_of(limited.site, j)) {
      least_w[d] += job.curve.points.front().power.value();
      most_w[d] += job.curve.points.back().power.value();
    }
  }
  for (int d = 0; d < num_domains; ++d) {
    const bool none = dice.one_in(4);
    const double share = dice.real(dice.one_in(4) ? -0.2 : 0.3, 1.1);
    limited.limits.push_back(none ? model::kNoLimit
                                  : Watts(std::max(0.0, std::round(least_w[d] + share * (most_w[d] - least_w[d])))));
  }
  return limited;
}

std::optional<double> best_mix(const LimitedSite& limited, model::SiteObjective objective) {
  const int num_jobs = static_cast<int>(limited.site.jobs.size());
  const int num_domains = static_cast<int>(limited.site.domains.size());
  // Rows: a sum of 1 per job, then a limit per domain. Columns: the part of the time that a job spends at a point.
  std::vector<int> row, column;
  std::vector<double> element, cost;
  for (int j = 0; j < num_jobs; ++j) {
    const model::SiteJob& job = limited.site.jobs[j];
    for (const model::PowerPoint& point : job.curve.points) {
      if (!is_accepted(job, point)) continue;
      const int c = static_cast<int>(cost.size());
      cost.push_back(-value_at(objective, job, point.rate));
      const auto add = [&](int r, double value) {
        row.push_back(r);
        column.push_back(c);
        element.push_back(value);
      };
      add(j, 1);
      for (const int d : path_of(limited.site, j)) add(num_jobs + d, point.power.value() / 100);
    }
  }
  std::vector<double> row_lower(num_jobs + num_domains, -COIN_DBL_MAX), row_upper(num_jobs + num_domains, 1);
  for (int j = 0; j < num_jobs; ++j) row_lower[j] = 1;
  for (int d = 0; d < num_domains; ++d) {
    row_upper[num_jobs + d] = limited.limits[d] == model::kNoLimit ? COIN_DBL_MAX : limited.limits[d].value() / 100;
  }
  const std::vector<double> lower(cost.size(), 0), upper(cost.size(), COIN_DBL_MAX);
  CoinPackedMatrix matrix(true, row.data(), column.data(), element.data(), static_cast<int>(row.size()));
  matrix.setDimensions(num_jobs + num_domains, static_cast<int>(cost.size()));
  ClpSimplex model;
  model.setLogLevel(0);
  model.setPrimalTolerance(1e-10);
  model.setDualTolerance(1e-10);
  model.loadProblem(matrix, lower.data(), upper.data(), cost.data(), row_lower.data(), row_upper.data());
  model.dual();
  if (!model.isProvenOptimal()) return std::nullopt;
  return -model.objectiveValue();
}

std::optional<double> best_combination(const LimitedSite& limited, model::SiteObjective objective) {
  std::vector<int> chosen;
  std::optional<double> best;
  combine(limited, objective, chosen, std::vector<double>(limited.site.domains.size()),
          objective == model::SiteObjective::max_min ? 1 : 0, best);
  return best;
}

}  // namespace perseus::testing
