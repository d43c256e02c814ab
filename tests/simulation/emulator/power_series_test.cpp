// Power over an iteration: bins keep the energy, and the spectrum is that of a direct Fourier sum.
#include "simulation/emulator/power_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace perseus::emulator {
namespace {

TEST(PowerSeries, BinsKeepTheEnergyOfChangesWithinThem) {
  PowerSeries series{Seconds(1)};
  series.change(Seconds(0), Watts(10));
  series.change(Seconds(0.30123), Watts(100));
  series.change(Seconds(0.77), Watts(-60));
  series.change(Seconds(1.5), Watts(1000));
  const std::vector<double> bins = series.bins_w();
  EXPECT_GE(bins.size(), 160u);
  const double energy_j = std::accumulate(bins.begin(), bins.end(), 0.0) * series.bin_width().value();
  EXPECT_NEAR(energy_j, 10 + 100 * (1 - 0.30123) - 60 * (1 - 0.77), 1e-9);
  EXPECT_NEAR(bins.front(), 10, 1e-9);
  EXPECT_NEAR(bins.back(), 50, 1e-9);
}

TEST(PowerSeries, TheSpectrumOfASineIsItsOwnFrequencyAlone) {
  std::vector<double> bins(1024);
  const double width_s = 1.0 / 1024;
  // Means of 5 cos(2 pi 7 t) over each bin.
  const auto integral = [](double t) { return 5 * std::sin(2 * M_PI * 7 * t) / (2 * M_PI * 7); };
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double from = width_s * static_cast<double>(i);
    bins[i] = 3 + (integral(from + width_s) - integral(from)) / width_s;
  }
  const std::vector<double> spectrum = power_spectrum_w2(bins);
  for (std::size_t k = 0; k < spectrum.size(); ++k) EXPECT_NEAR(spectrum[k], k == 7 ? 12.5 : 0, 1e-9) << k;
}

TEST(PowerSeries, TheSpectrumOfABlockIsItsFourierSeries) {
  // 100 W from 0.4 to 1.1 s of 4 s: |c_k| = 100 sin(pi k 0.7 / 4) / (pi k).
  PowerSeries series{Seconds(4)};
  series.change(Seconds(0.4), Watts(100));
  series.change(Seconds(1.1), Watts(-100));
  const std::vector<double> spectrum = power_spectrum_w2(series.bins_w());
  for (int k = 1; k <= 80; ++k) {
    const double exact = 2 * std::pow(100 * std::sin(M_PI * k * 0.7 / 4) / (M_PI * k), 2);
    EXPECT_NEAR(spectrum[k], exact, 0.05 * exact + 0.02) << k;
  }
}

TEST(PowerFigures, RampsAreBetweenMeansOfATenthOfASecond) {
  PowerSeries series{Seconds(8)};
  series.change(Seconds(0), Watts(100));
  // Half a second of slope would be 1000 W/s; a block that is shorter than the window counts by its mean.
  series.change(Seconds(2), Watts(400));
  series.change(Seconds(2.05), Watts(-400));
  const PowerFigures figures = power_figures(series.bins_w(), series.bin_width());
  EXPECT_NEAR(figures.ramp_w_per_s, 400 * 0.05 / 0.1 / 0.1, 200);
  EXPECT_NEAR(figures.highest.value(), 500, 1e-9);
  EXPECT_NEAR(figures.lowest.value(), 100, 1e-9);
  EXPECT_NEAR(figures.mean.value(), 100 + 400 * 0.05 / 8, 1e-9);
  EXPECT_NEAR(figures.first.value(), 100, 1e-9);
}

TEST(PowerFigures, ConstantPowerHasNoSwing) {
  PowerSeries series{Seconds(3)};
  series.change(Seconds(0), Watts(1e6));
  const PowerFigures figures = power_figures(series.bins_w(), series.bin_width());
  EXPECT_EQ(figures.ramp_w_per_s, 0);
  EXPECT_EQ(figures.band_w2, 0);
  EXPECT_EQ(figures.variance_w2, 0);
}

}  // namespace
}  // namespace perseus::emulator
