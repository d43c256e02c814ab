#include "paper/emulation_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/stacked_bars.h"

namespace perseus::cli {
namespace {

constexpr std::size_t kMostDrawn = 900;  // points of a line

std::string energy_picture(const EmulationReport& report) {
  std::vector<std::string> names;
  for (const EnergyPart& part : kEnergyParts) names.emplace_back(part.name);
  report::BarGroup bars;
  for (const EmulatedMethod& m : report.methods) {
    // Per iteration, since methods need not complete equally many in the same time.
    report::StackedBar bar{m.name, report::text_of(m.run.energy_per_iteration()), {}};
    for (const EnergyPart& part : kEnergyParts) {
      bar.parts.push_back((m.run.energy.*part.value).value() / static_cast<double>(m.run.iterations));
    }
    bars.bars.push_back(std::move(bar));
  }
  return report::stacked_bars("Energy of an iteration by part", names, {bars});
}

/// A line that stays at each segment's value until the next one; where there are too many, means of equal times.
template <class Value>
report::ChartSeries steps(const EmulatedMethod& method, bool iterations_only, Value value) {
  report::ChartSeries series{method.name, report::look_of(method.name)};
  const std::vector<emulator::Segment>& segments = method.run.segments;
  if (2 * segments.size() <= kMostDrawn) {
    for (const emulator::Segment& s : segments) {
      if (iterations_only && s.iterations == 0) continue;
      for (const Seconds at : {s.start, s.start + s.length()}) {
        series.points.push_back({at.value() / 3600, value(s)});
      }
    }
    return series;
  }
  std::size_t next = 0;
  for (std::size_t k = 0; k < kMostDrawn; ++k) {
    const double width_s = method.run.time.value() / static_cast<double>(kMostDrawn);
    const double from = width_s * static_cast<double>(k), to = from + width_s;
    double sum = 0, weight = 0;
    while (next < segments.size() && (segments[next].start + segments[next].length()).value() <= from) ++next;
    for (std::size_t i = next; i < segments.size() && segments[i].start.value() < to; ++i) {
      const emulator::Segment& s = segments[i];
      if (iterations_only && s.iterations == 0) continue;
      const double overlap = std::min(to, (s.start + s.length()).value()) - std::max(from, s.start.value());
      sum += overlap * value(s);
      weight += overlap;
    }
    if (weight <= 0) continue;
    series.points.push_back({(from + to) / 2 / 3600, sum / weight});
  }
  return series;
}

template <class Value>
report::ChartPanel panel_of(const EmulationReport& report, const std::string& title, bool iterations_only,
                            Value value) {
  report::ChartPanel panel{title, {}};
  for (const EmulatedMethod& m : report.methods) panel.series.push_back(steps(m, iterations_only, value));
  return panel;
}

std::string power_picture(const EmulationReport& report) {
  return report::line_chart({"Power of the cluster", "time [h]", "power [kW]"},
                            {panel_of(report, "mean of an iteration", false,
                                      [](const emulator::Segment& s) { return s.power.mean.value() / 1e3; }),
                             panel_of(report, "highest within an iteration", false,
                                      [](const emulator::Segment& s) { return s.power.highest.value() / 1e3; })});
}

std::string times_picture(const EmulationReport& report) {
  return report::line_chart(
      {"Iterations over time", "time [h]", "iteration time [s]; rms power from 0.1 to 20 Hz [kW]"},
      {panel_of(report, "iteration time [s]", true, [](const emulator::Segment& s) { return s.each.value(); }),
       panel_of(report, "rms power from 0.1 to 20 Hz [kW]", true,
                [](const emulator::Segment& s) { return std::sqrt(s.power.band_w2) / 1e3; })});
}

report::ChartSeries within_iteration(const std::string& method, const emulator::IterationPower& power) {
  report::ChartSeries series{method, report::look_of(method)};
  const std::size_t bins = power.bins_w.size(), together = (bins + kMostDrawn - 1) / kMostDrawn;
  for (std::size_t from = 0; from < bins; from += together) {
    const std::size_t to = std::min(bins, from + together);
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += power.bins_w[i];
    series.points.push_back(
        {power.bin_width.value() * static_cast<double>(from + to) / 2, sum / static_cast<double>(to - from) / 1e3});
  }
  return series;
}

std::string iteration_picture(const EmulationReport& report) {
  report::ChartPanel first{"first iteration", {}}, slowest{"slowest iteration", {}};
  for (const EmulatedMethod& m : report.methods) {
    first.series.push_back(within_iteration(m.name, m.run.first));
    slowest.series.push_back(within_iteration(m.name, m.run.slowest));
  }
  return report::line_chart({"Power of the cluster within an iteration", "time [s]", "power [kW]"}, {first, slowest});
}

std::string band_picture(const EmulationReport& report) {
  std::vector<report::ChartPanel> panels;
  for (const EmulatedMethod& m : report.methods) {
    report::ChartSeries series{m.name, report::look_of(m.name)};
    const std::vector<double> spectrum = emulator::power_spectrum_w2(m.run.first.bins_w);
    for (std::size_t k = 1; k < spectrum.size(); ++k) {
      const double frequency_hz = static_cast<double>(k) / m.run.first.time.value();
      if (frequency_hz < emulator::kBandLow_hz || frequency_hz > emulator::kBandHigh_hz) continue;
      series.points.push_back({frequency_hz, std::sqrt(spectrum[k]) / 1e3});
    }
    panels.push_back({m.name, {std::move(series)}});
  }
  return report::line_chart({"Spectrum of the first iteration's power", "frequency [Hz]", "rms of each harmonic [kW]"},
                            panels);
}

/// Panels by size; the savings by method of a non-straggler pipeline, or of the cluster where all are stragglers.
std::string scaling_picture(const EmulationReport& report, model::Scaling scaling) {
  std::vector<report::ChartPanel> panels;
  int gpus = -1;
  for (const emulator::ScalingRow& row : report.scaling) {
    if (row.scaling != scaling || row.method == "all-max") continue;
    if (row.gpus != gpus) {
      gpus = row.gpus;
      panels.push_back(
          {fmt::format("{} GPUs, {} pipelines, {} microbatches", gpus, row.pipelines, row.microbatches), {}});
    }
    auto& lines = panels.back().series;
    auto line = std::ranges::find(lines, row.method, &report::ChartSeries::name);
    if (line == lines.end()) line = lines.insert(lines.end(), {row.method, report::look_of(row.method)});
    line->points.push_back({row.slowdown, row.savings.total_pct});
  }
  return report::line_chart({fmt::format("Saving of the cluster, {} scaling", model::name_of(scaling)),
                             "T'/T, one pipeline straggling", "saving [%]"},
                            panels);
}

bool has(const EmulationReport& report, model::Scaling scaling) {
  return std::ranges::find(report.scaling, scaling, &emulator::ScalingRow::scaling) != report.scaling.end();
}

}  // namespace

std::string EmulationPictures::of(std::string_view name) const {
  for (const auto& [known, svg] : by_name)
    if (known == name) return svg;
  return {};
}

EmulationPictures draw_emulation(const EmulationReport& report) {
  EmulationPictures pictures;
  if (!report.methods.empty()) {
    pictures.by_name = {{"energy.svg", energy_picture(report)},
                        {"power.svg", power_picture(report)},
                        {"iteration.svg", iteration_picture(report)},
                        {"band.svg", band_picture(report)},
                        {"times.svg", times_picture(report)}};
  }
  for (const model::Scaling scaling : {model::Scaling::strong, model::Scaling::weak}) {
    if (has(report, scaling)) {
      pictures.by_name.emplace_back(fmt::format("scaling_{}.svg", model::name_of(scaling)),
                                    scaling_picture(report, scaling));
    }
  }
  return pictures;
}

}  // namespace perseus::cli
