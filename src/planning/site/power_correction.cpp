#include "planning/site/power_correction.h"

#include <algorithm>
#include <cmath>

namespace perseus::site {
namespace {

constexpr double kRounding = 1e-6;

/// Measured over planned; nothing where that cannot be true.
std::optional<double> plausible_ratio(double measured, double planned, double most) {
  if (!std::isfinite(measured) || !std::isfinite(planned) || measured <= 0 || planned <= 0) return std::nullopt;
  const double ratio = measured / planned;
  if (!(ratio <= most && ratio >= 1 / most)) return std::nullopt;
  return ratio;
}

}  // namespace

double PowerCorrection::standard_error() const {
  return seen_ > 0 ? std::sqrt(variance_ / std::min(seen_, kMemory)) : 0;
}

bool PowerCorrection::report(double iterations, Joules measured, Joules planned) {
  const auto ratio = plausible_ratio(measured.value(), planned.value(), kPlausible);
  if (!ratio || !(iterations > 0) || !std::isfinite(iterations)) return false;
  seen_ += iterations;
  const double part = std::min(1.0, iterations / std::min(seen_, kMemory));
  const double off = *ratio - mean_;
  mean_ += part * off;
  variance_ = (1 - part) * (variance_ + part * off * off);
  const double before = factor_;
  const double wanted = std::clamp(mean_ + 2 * standard_error(), kLeast, kMost);
  const bool more = wanted > factor_ + kRounding;
  const bool less = wanted < factor_ - kDownBand && seen_ >= kSureIterations;
  if (more) factor_ = std::min(kMost, wanted + kUpBand);
  if (less) factor_ = wanted;
  return factor_ != before;
}

bool MeterCorrection::read(Seconds at, Watts metered, Watts expected) {
  const auto ratio = plausible_ratio(metered.value(), expected.value(), kPlausible);
  if (!ratio || !std::isfinite(at.value()) || (read_ && at <= *read_)) return false;
  const double before = factor(at);
  read_ = at;
  factor_ = before;
  const double wanted = std::clamp(*ratio, kLeastMetered, kMost);
  const bool due = !changed_ || at >= *changed_ + kPause;
  if (wanted > factor_ + kRounding) {
    factor_ = std::min(kMost, wanted + kUpBand);
  } else if (wanted < factor_ - kDownBand && due) {
    factor_ += kPartDown * (wanted - factor_);
  } else {
    return false;
  }
  changed_ = at;
  return true;
}

double MeterCorrection::factor(Seconds now) const {
  const bool stale = !read_ || now > *read_ + kStale;
  return stale ? std::max(1.0, factor_) : factor_;
}

}  // namespace perseus::site
