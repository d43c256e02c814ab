#include "simulation/site_emulator/day_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulation/emulator/power_series.h"
#include "simulation/site_emulator/day_limits.h"

namespace perseus::site_emulator {
namespace {

constexpr Seconds kMinute{60};
constexpr double kRounding = 1e-9;

/// Sums of a function over bins: the k-th is that of the first k.
std::vector<double> sums_of(const std::vector<double>& bins) {
  std::vector<double> sums{0};
  for (const double bin : bins) sums.push_back(sums.back() + bin);
  return sums;
}

/// Mean of steps over each bin; without a limit at any time of it, infinite.
template <class Step, class Value>
std::vector<double> means_of(const std::vector<Step>& steps, Value value, Seconds width, std::size_t bins) {
  std::vector<double> means(bins, 0);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const double end_s = width.value() * static_cast<double>(bins);
    const double from_s = steps[k].from.value();
    const double until_s = k + 1 < steps.size() ? std::min(end_s, steps[k + 1].from.value()) : end_s;
    for (auto bin = static_cast<std::size_t>(from_s / width.value()); bin < bins; ++bin) {
      const double left = width.value() * static_cast<double>(bin);
      const double part = std::min(until_s, left + width.value()) - std::max(from_s, left);
      if (part <= 0) break;
      means[bin] += value(steps[k]) * (part / width.value());
    }
  }
  return means;
}

OverLimit over_limit(const std::vector<double>& power_w, const std::vector<double>& limit_w, Seconds width,
                     Seconds window) {
  const auto n = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(window / width)));
  OverLimit over;
  const std::vector<double> drawn = sums_of(power_w);
  std::vector<double> finite = limit_w;
  std::vector<double> without(limit_w.size(), 0);
  for (std::size_t k = 0; k < limit_w.size(); ++k) {
    if (std::isfinite(limit_w[k])) continue;
    finite[k] = 0;
    without[k] = 1;
  }
  const std::vector<double> allowed = sums_of(finite), unlimited = sums_of(without);
  for (std::size_t k = n; k < drawn.size(); ++k) {
    if (unlimited[k] > unlimited[k - n]) continue;
    const double limit = allowed[k] - allowed[k - n];
    const double above_w = (drawn[k] - drawn[k - n] - limit) / static_cast<double>(n);
    if (above_w <= kRounding * limit / static_cast<double>(n)) continue;
    over.most = std::max(over.most, Watts(above_w));
    over.watt_seconds += above_w * width.value();
    over.time += width;
  }
  return over;
}

std::vector<Minute> minutes_of(const DayRun& run, std::size_t slot, const std::vector<double>& limit_w) {
  const std::vector<PlannedPower> planned(run.planned.begin(), run.planned.end() - 1);
  const std::vector<double>& power_w = run.domains[slot].power_w;
  const auto used = means_of(
      planned, [slot](const PlannedPower& p) { return p.used[slot].value(); }, run.bin_width, power_w.size());
  const auto guard = means_of(
      planned, [slot](const PlannedPower& p) { return p.guard[slot].value(); }, run.bin_width, power_w.size());
  const auto n = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(kMinute / run.bin_width)));
  std::vector<Minute> minutes;
  for (std::size_t from = 0; from + n <= power_w.size(); from += n) {
    const auto mean = [&](const std::vector<double>& bins) {
      const auto begin = bins.begin() + static_cast<std::ptrdiff_t>(from);
      return Watts(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(n), 0.0) / static_cast<double>(n));
    };
    minutes.push_back(
        {static_cast<double>(from) * run.bin_width, mean(limit_w), mean(used), mean(guard), mean(power_w)});
  }
  return minutes;
}

/// While the announced limit of the site changes from minute to minute.
std::optional<double> ramp_deviation_of(const SiteDay& day, const DayRun& run, const std::vector<Minute>& minutes) {
  std::optional<double> largest;
  const std::vector<model::LimitStep>& announced = day.timed.limits[0];
  for (const Minute& minute : minutes) {
    const auto within = std::ranges::any_of(announced, [&](const model::LimitStep& step) {
      return step.from > Seconds(0) && step.from >= minute.from && step.from < minute.from + kMinute;
    });
    if (!within || minute.limit == model::kNoLimit) continue;
    const Watts wanted = std::min(minute.limit, run.domains[0].demand);
    largest = std::max(largest.value_or(0), std::abs((minute.drawn - wanted) / minute.limit));
  }
  return largest;
}

std::vector<BandFigures> bands_of(const DayRun& run) {
  std::vector<BandFigures> bands;
  for (const FinePower& fine : run.fine) {
    const emulator::PowerFigures figures = emulator::power_figures(fine.power_w, fine.width);
    const double length_s = fine.width.value() * static_cast<double>(fine.power_w.size());
    bands.push_back({fine.name, std::sqrt(figures.band_w2),
                     figures.variance_w2 > 0 ? std::min(1.0, figures.band_w2 / figures.variance_w2) : 0,
                     figures.band_w2 * length_s});
  }
  return bands;
}

/// Weighted work until then, between the times at which it is known.
double work_at(const DayRun& run, Seconds time) {
  const auto after = std::ranges::lower_bound(run.planned, time, {}, &PlannedPower::from);
  const auto k = static_cast<std::size_t>(after - run.planned.begin());
  if (k == run.planned.size()) return run.work_until.back();
  if (k == 0 || run.planned[k].from == time) return run.work_until[k];
  const double part = (time - run.planned[k - 1].from) / (run.planned[k].from - run.planned[k - 1].from);
  return run.work_until[k - 1] + part * (run.work_until[k] - run.work_until[k - 1]);
}

}  // namespace

DayFigures figures_of(const SiteDay& day, const DayRun& run) {
  DayFigures figures;
  figures.throughput = run.work_until.back() / day.timed.end.value();
  figures.slowest = run.rate.empty() ? 1 : *std::ranges::min_element(run.rate);
  for (const Reaction& reaction : run.reactions) {
    figures.guaranteed = std::max(figures.guaranteed, reaction.guaranteed);
    figures.reached = std::max(figures.reached, reaction.reached);
  }
  const LimitSteps due = due_limits(day, figures.guaranteed);
  for (std::size_t slot = 0; slot < run.domains.size(); ++slot) {
    const DomainPower& domain = run.domains[slot];
    const auto limit_w = means_of(
        due[domain.domain], [](const model::LimitStep& step) { return step.limit.value(); }, run.bin_width,
        domain.power_w.size());
    const Seconds window = day.timed.window_of(domain.domain).value_or(kMinute);
    figures.over.push_back(over_limit(domain.power_w, limit_w, run.bin_width, window));
    figures.minutes.push_back(minutes_of(run, slot, limit_w));
  }
  const std::vector<double>& site_w = run.domains.front().power_w;
  figures.energy = Joules(std::accumulate(site_w.begin(), site_w.end(), 0.0) * run.bin_width.value());
  figures.ramp_deviation = ramp_deviation_of(day, run, figures.minutes.front());
  for (const Surprise& surprise : day.surprises) {
    const Seconds until = std::min(surprise.until, day.timed.end);
    if (until <= surprise.at) continue;
    figures.during.push_back((work_at(run, until) - work_at(run, surprise.at)) / (until - surprise.at).value());
  }
  figures.bands = bands_of(run);
  return figures;
}

}  // namespace perseus::site_emulator
