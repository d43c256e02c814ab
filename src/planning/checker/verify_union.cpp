#include "planning/checker/verify_union.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::checker {
namespace {

constexpr double kTolerance = 1e-9;

bool agree(double claimed, double own) {
  return std::abs(claimed - own) <= kTolerance * std::max({1.0, std::abs(claimed), std::abs(own)});
}

/// Lower bound on the effective energy of the configuration's plans at this deadline, by the vertices of its curve.
bool least_at(const model::LowerBound& bound, double deadline_s, double& least_j) {
  const auto& v = bound.vertices;
  if (v.empty() || v.front().time.value() > deadline_s * (1 + 1e-12)) return false;
  double value = v.back().effective_energy.value();
  for (std::size_t i = 0; i + 1 < v.size(); ++i) {
    const double from = v[i].time.value(), to = v[i + 1].time.value();
    if (deadline_s > to) continue;
    const double share = std::clamp((deadline_s - from) / (to - from), 0.0, 1.0);
    value = (1 - share) * v[i].effective_energy.value() + share * v[i + 1].effective_energy.value();
    break;
  }
  least_j = value;
  return true;
}

}  // namespace

std::vector<std::string> verify_union(const std::vector<const model::Frontier*>& frontiers, Watts total_blocking_power,
                                      const std::vector<UnionClaim>& claims) {
  std::vector<std::string> findings;
  const auto say = [&](std::size_t claim, const std::string& what) {
    findings.push_back(fmt::format("union, point {}: {}", claim, what));
  };
  const double waiting_w = total_blocking_power.value();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const UnionClaim& claim = claims[i];
    if (claim.configuration < 0 || claim.configuration >= static_cast<int>(frontiers.size()) || claim.point < 0 ||
        claim.point >= static_cast<int>(frontiers[claim.configuration]->points.size())) {
      say(i, fmt::format("configuration {} has no point {}", claim.configuration, claim.point));
      continue;
    }
    const model::FrontierPoint& own = frontiers[claim.configuration]->points[claim.point];
    for (const auto& [name, claimed, value] :
         {std::tuple("time_s", claim.time.value(), own.time.value()),
          std::tuple("energy_j", claim.energy.value(), own.energy.value()),
          std::tuple("effective_energy_j", claim.effective_energy.value(), own.effective_energy.value())}) {
      if (!agree(claimed, value)) say(i, fmt::format("{} {}; the configuration's point has {}", name, claimed, value));
    }
    if (i > 0 && !(claim.time < claims[i - 1].time && claim.effective_energy > claims[i - 1].effective_energy)) {
      say(i, "not faster than the point before it, or not of more energy: one of the two is redundant");
    }
    double least_j = INFINITY, one_j = 0;
    for (const model::Frontier* frontier : frontiers) {
      if (least_at(frontier->bound, claim.time.value(), one_j)) least_j = std::min(least_j, one_j);
    }
    const double bound_j = least_j + waiting_w * claim.time.value();
    if (!agree(claim.bound.value(), bound_j))
      say(i, fmt::format("bound_j {}; computed: {}", claim.bound.value(), bound_j));
    if (claim.energy.value() < bound_j * (1 - kTolerance)) {
      say(i, fmt::format("energy_j {} is below the bound {}", claim.energy.value(), bound_j));
    }
  }
  // The union contains all plans of each configuration.
  for (std::size_t c = 0; c < frontiers.size(); ++c) {
    for (std::size_t p = 0; p < frontiers[c]->points.size(); ++p) {
      const model::FrontierPoint& point = frontiers[c]->points[p];
      const bool covered = std::ranges::any_of(claims, [&](const UnionClaim& claim) {
        return claim.time <= point.time * (1 + 1e-12) &&
               claim.effective_energy.value() <=
                   point.effective_energy.value() + 1e-12 * std::abs(point.energy.value());
      });
      if (covered) continue;
      findings.push_back(fmt::format("union: point {} of configuration {} is better than all of its points", p, c));
    }
  }
  return findings;
}

}  // namespace perseus::checker
