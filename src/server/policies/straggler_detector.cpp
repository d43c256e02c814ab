#include "server/policies/straggler_detector.h"

#include <cmath>

#include "base/median.h"

namespace perseus::policies {

StragglerDetector::StragglerDetector(int pipelines, DetectorOptions options)
    : options_(options), pipelines_(pipelines) {}

std::optional<double> StragglerDetector::reference() const {
  std::vector<double> ratios;
  for (const Pipeline& pipeline : pipelines_) {
    if (!pipeline.last.empty()) ratios.push_back(lower_median<double>({pipeline.last.begin(), pipeline.last.end()}));
  }
  if (ratios.size() < 2) return std::nullopt;
  return lower_median(std::move(ratios));  // with two pipelines, the faster one is the reference
}

std::optional<double> StragglerDetector::report(int pipeline, double measured_over_planned,
                                                std::optional<ReportedBy> by) {
  auto& counted = pipelines_[pipeline].counted;
  // The same rank counts from 0 again once its process starts anew.
  if (by && counted && by->rank != counted->rank && by->iteration <= counted->iteration) return std::nullopt;
  counted = by;
  if (!(measured_over_planned > 0) || !std::isfinite(measured_over_planned)) return std::nullopt;
  Pipeline& own = pipelines_[pipeline];
  own.last.push_back(measured_over_planned);
  if (static_cast<int>(own.last.size()) > options_.reports) own.last.pop_front();
  const auto normal = reference();
  if (!normal) return std::nullopt;
  const double slower = lower_median<double>({own.last.begin(), own.last.end()}) / *normal;
  const bool straggles = own.degree > 1;
  const bool enters = !straggles && slower > options_.enter;
  const bool leaves = straggles && slower < options_.leave;
  const bool changes = straggles && !leaves && std::abs(slower / own.degree - 1) > options_.change;
  own.in_a_row = enters || leaves || changes ? own.in_a_row + 1 : 0;
  if (own.in_a_row < options_.reports) return std::nullopt;
  own.in_a_row = 0;
  own.degree = leaves ? 1 : std::round(slower * 100) / 100;
  return own.degree;
}

void StragglerDetector::forget_times() {
  for (Pipeline& pipeline : pipelines_) pipeline.last.clear(), pipeline.in_a_row = 0;
}

void StragglerDetector::assume(int pipeline, double degree) { pipelines_[pipeline].degree = degree; }

}  // namespace perseus::policies
