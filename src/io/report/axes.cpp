#include "io/report/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "io/report/format.h"
#include "io/report/svg_page.h"

namespace perseus::report {

void TimeEnergyAxes::include(Seconds t, Joules e) {
  t0_ = std::min(t0_, t.value()), t1_ = std::max(t1_, t.value());
  e0_ = std::min(e0_, e.value()), e1_ = std::max(e1_, e.value());
}

void TimeEnergyAxes::add_air() {
  const auto pad = [](double& low, double& high) {
    const double air = high > low ? 0.05 * (high - low) : 0.05 * std::max(std::abs(high), 1e-9);
    low -= air, high += air;
  };
  pad(t0_, t1_), pad(e0_, e1_);
}

std::string TimeEnergyAxes::grid() const {
  const auto [left, right, top, bottom] = frame_;
  std::string svg;
  const std::vector<double> times = ticks_within(t0_, t1_, 8), energies = ticks_within(e0_, e1_, 6);
  for (const double t : times) {
    svg += fmt::format("<path class=\"grid n\" d=\"M{:.1f} {}V{}\"/>\n", x(Seconds(t)), top, bottom);
    svg += svg_text(x(Seconds(t)), bottom + 20, "middle", "dim", tick_label(t, times));
  }
  for (const double e : energies) {
    svg += fmt::format("<path class=\"grid n\" d=\"M{} {:.1f}H{}\"/>\n", left, y(Joules(e)), right);
    svg += svg_text(left - 10, y(Joules(e)) + 4.5, "end", "dim", tick_label(e, energies));
  }
  svg += svg_text((left + right) / 2, bottom + 46, "middle", "fg", "iteration time [s]");
  svg += fmt::format("<g transform=\"rotate(-90 22 {0:.1f})\">{1}</g>\n", (top + bottom) / 2,
                     svg_text(22, (top + bottom) / 2, "middle", "fg", "energy per iteration [J]"));
  return svg;
}

}  // namespace perseus::report
