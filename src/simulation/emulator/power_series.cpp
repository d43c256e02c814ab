#include "simulation/emulator/power_series.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>

#include "base/result.h"

namespace perseus::emulator {
namespace {

using Complex = std::complex<double>;

constexpr double kBinsPerSecond = 160;
constexpr std::size_t kMostBins = std::size_t{1} << 20;
constexpr std::size_t kLeastBins = 16;

/// Fast Fourier transform in place, 2^k values, by decimation in time.
void transform(std::vector<Complex>& values) {
  const std::size_t n = values.size();
  for (std::size_t i = 1, mirrored = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; (mirrored & bit) != 0; bit >>= 1) mirrored ^= bit;
    mirrored ^= bit;
    if (i < mirrored) std::swap(values[i], values[mirrored]);
  }
  std::vector<Complex> roots(n / 2);
  for (std::size_t k = 0; k < roots.size(); ++k)
    roots[k] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  for (std::size_t half = 1; half < n; half *= 2) {
    const std::size_t stride = n / (2 * half);
    for (std::size_t block = 0; block < n; block += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        const Complex root = roots[k * stride], even = values[block + k], odd = values[block + k + half];
        // Written out: operator* of std::complex checks for infinities.
        const Complex turned(odd.real() * root.real() - odd.imag() * root.imag(),
                             odd.real() * root.imag() + odd.imag() * root.real());
        values[block + k] = even + turned;
        values[block + k + half] = even - turned;
      }
    }
  }
}

}  // namespace

PowerSeries::PowerSeries(Seconds length) {
  PERSEUS_CHECK(length > Seconds(0), "an iteration takes time");
  const double wanted = std::min(length.value() * kBinsPerSecond, static_cast<double>(kMostBins));
  const std::size_t bins = std::max(kLeastBins, std::bit_ceil(static_cast<std::size_t>(std::ceil(wanted))));
  width_s_ = length.value() / static_cast<double>(bins);
  changes_w_.assign(bins + 1, 0);
}

void PowerSeries::change(Seconds time, Watts by) {
  const double at = std::max(0.0, time.value() / width_s_);
  const std::size_t bins = changes_w_.size() - 1;
  if (at >= static_cast<double>(bins)) return;
  const auto bin = static_cast<std::size_t>(at);
  const double missed = at - static_cast<double>(bin);
  changes_w_[bin] += by.value() * (1 - missed);
  changes_w_[bin + 1] += by.value() * missed;
}

void PowerSeries::add(std::span<const PowerChange> changes, Seconds start, double times) {
  for (const PowerChange& c : changes) change(start + Seconds(c.time_s), Watts(times * c.by_w));
}

std::vector<double> PowerSeries::bins_w() const {
  std::vector<double> bins(changes_w_.size() - 1);
  std::partial_sum(changes_w_.begin(), changes_w_.end() - 1, bins.begin());
  return bins;
}

std::vector<double> power_spectrum_w2(const std::vector<double>& bins_w) {
  const std::size_t n = bins_w.size();
  PERSEUS_CHECK(std::has_single_bit(n) && n >= 4, "2^k bins");
  // Two real halves as one complex series of half the length.
  std::vector<Complex> packed(n / 2);
  for (std::size_t i = 0; i < n / 2; ++i) packed[i] = {bins_w[2 * i], bins_w[2 * i + 1]};
  transform(packed);
  std::vector<double> spectrum(n / 2, 0);
  for (std::size_t k = 1; k < n / 2; ++k) {
    const Complex here = packed[k], there = std::conj(packed[n / 2 - k]);
    const Complex even = 0.5 * (here + there), odd = Complex(0, -0.5) * (here - there);
    const double angle = std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    const Complex coefficient = (even + std::polar(1.0, -2 * angle) * odd) / static_cast<double>(n);
    const double averaging = std::sin(angle) / angle;
    spectrum[k] = 2 * std::norm(coefficient) / (averaging * averaging);
  }
  return spectrum;
}

PowerFigures power_figures(const std::vector<double>& bins_w, Seconds width) {
  const std::size_t n = bins_w.size();
  const double length_s = width.value() * static_cast<double>(n);
  PowerFigures figures;
  const double mean = std::accumulate(bins_w.begin(), bins_w.end(), 0.0) / static_cast<double>(n);
  figures.mean = Watts(mean);
  figures.highest = Watts(*std::ranges::max_element(bins_w));
  figures.lowest = Watts(*std::ranges::min_element(bins_w));
  for (const double w : bins_w) figures.variance_w2 += (w - mean) * (w - mean) / static_cast<double>(n);

  const std::size_t window =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::llround(kRampWindow / width)), 1, n / 2);
  const double window_s = width.value() * static_cast<double>(window);
  const auto at = [&](std::size_t i) { return bins_w[i < n ? i : i - n]; };
  double before = std::accumulate(bins_w.begin(), bins_w.begin() + static_cast<std::ptrdiff_t>(window), 0.0);
  double after = 0;
  for (std::size_t i = window; i < 2 * window; ++i) after += at(i);
  figures.first = Watts(before / static_cast<double>(window));
  double last = 0;
  for (std::size_t i = n - window; i < n; ++i) last += bins_w[i];
  figures.last = Watts(last / static_cast<double>(window));
  double steepest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    steepest = std::max(steepest, std::abs(after - before));
    before += at(i + window) - at(i);
    after += at((i + 2 * window) % n) - at(i + window);
  }
  figures.ramp_w_per_s = steepest / static_cast<double>(window) / window_s;

  const std::vector<double> spectrum = power_spectrum_w2(bins_w);
  for (std::size_t k = 1; k < spectrum.size(); ++k) {
    const double frequency_hz = static_cast<double>(k) / length_s;
    if (frequency_hz >= kBandLow_hz && frequency_hz <= kBandHigh_hz) figures.band_w2 += spectrum[k];
  }
  return figures;
}

}  // namespace perseus::emulator
