#include "paper/emulation_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <initializer_list>
#include <map>
#include <span>
#include <utility>

#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/stacked_bars.h"
#include "io/report/static_page.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

/// The parts of energy: their names in CSV and JSON, and in text.
struct EnergyPart {
  const char* key;
  const char* name;
  Joules emulator::EnergyParts::*value;
};
constexpr std::array kEnergyParts{
    EnergyPart{"useful_j", "useful", &emulator::EnergyParts::useful},
    EnergyPart{"intrinsic_bloat_j", "intrinsic bloat", &emulator::EnergyParts::intrinsic_bloat},
    EnergyPart{"extrinsic_bloat_j", "extrinsic bloat", &emulator::EnergyParts::extrinsic_bloat},
    EnergyPart{"blocking_j", "blocking", &emulator::EnergyParts::blocking},
    EnergyPart{"idle_j", "idle", &emulator::EnergyParts::idle}};

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

/// SVG by file name.
std::map<std::string, std::string> draw_emulation(const EmulationReport& report) {
  std::map<std::string, std::string> pictures;
  if (!report.methods.empty()) {
    pictures = {{"energy.svg", energy_picture(report)},
                {"power.svg", power_picture(report)},
                {"iteration.svg", iteration_picture(report)},
                {"band.svg", band_picture(report)},
                {"times.svg", times_picture(report)}};
  }
  for (const model::Scaling scaling : {model::Scaling::strong, model::Scaling::weak}) {
    if (std::ranges::find(report.scaling, scaling, &emulator::ScalingRow::scaling) == report.scaling.end()) continue;
    pictures[fmt::format("scaling_{}.svg", model::name_of(scaling))] = scaling_picture(report, scaling);
  }
  return pictures;
}

OutputDirectory::IsOurs files_of_an_emulation() {
  return one_of({"emulation.html", "energy.svg", "power.svg", "iteration.svg", "band.svg", "times.svg", "methods.csv",
                 "segments.csv", "scaling.csv", "scaling_strong.svg", "scaling_weak.svg"});
}

Table methods_of(const EmulationReport& report) {
  using Method = const EmulatedMethod&;
  std::vector<Column<EmulatedMethod>> columns{{"name", &EmulatedMethod::name},
                                              {"iterations", [](Method m) { return m.run.iterations; }},
                                              {"time_s", [](Method m) { return m.run.time; }},
                                              {"energy_j", [](Method m) { return m.run.energy.total(); }}};
  for (const EnergyPart& part : kEnergyParts) {
    columns.push_back({part.key, [&part](Method m) { return m.run.energy.*part.value; }});
  }
  for (Column<EmulatedMethod> column : std::initializer_list<Column<EmulatedMethod>>{
           {"energy_per_iteration_j", [](Method m) { return m.run.energy_per_iteration(); }},
           {"saving_pct", [](Method m) { return m.savings.total_pct; }},
           {"intrinsic_saving_pct", [](Method m) { return m.savings.intrinsic_pct; }},
           {"extrinsic_saving_pct", [](Method m) { return m.savings.extrinsic_pct; }},
           {"shortest_iteration_s", [](Method m) { return m.run.shortest_iteration; }},
           {"mean_iteration_s", [](Method m) { return m.run.mean_iteration(); }},
           {"longest_iteration_s", [](Method m) { return m.run.longest_iteration; }},
           {"mean_power_w", [](Method m) { return m.run.mean_power(); }},
           {"highest_power_w", [](Method m) { return m.run.highest_power; }},
           {"lowest_power_w", [](Method m) { return m.run.lowest_power; }},
           {"peak_to_mean", [](Method m) { return m.run.peak_to_mean(); }},
           {"ramp_w_per_s", [](Method m) { return m.run.ramp_w_per_s; }},
           {"band_rms_w", [](Method m) { return m.run.band_rms_w(); }},
           {"band_energy_w2s", [](Method m) { return m.run.band_w2s; }},
           {"band_share", [](Method m) { return m.run.band_share(); }}}) {
    columns.push_back(std::move(column));
  }
  return table_of<EmulatedMethod>(report.methods, columns);
}

Table scaling_of(const EmulationReport& report) {
  using Row = const emulator::ScalingRow&;
  std::vector<Column<emulator::ScalingRow>> columns{{"scaling", [](Row r) { return model::name_of(r.scaling); }},
                                                    {"gpus", &emulator::ScalingRow::gpus},
                                                    {"pipelines", &emulator::ScalingRow::pipelines},
                                                    {"microbatches", &emulator::ScalingRow::microbatches},
                                                    {"slowdown", &emulator::ScalingRow::slowdown},
                                                    {"method", &emulator::ScalingRow::method},
                                                    {"iteration_s", [](Row r) { return r.iteration.time; }},
                                                    {"energy_j", [](Row r) { return r.iteration.energy.total(); }}};
  for (const EnergyPart& part : std::span(kEnergyParts).first(kEnergyParts.size() - 1)) {  // no pipeline is idle
    columns.push_back({part.key, [&part](Row r) { return r.iteration.energy.*part.value; }});
  }
  for (Column<emulator::ScalingRow> column : std::initializer_list<Column<emulator::ScalingRow>>{
           {"saving_pct", [](Row r) { return r.savings.total_pct; }},
           {"intrinsic_saving_pct", [](Row r) { return r.savings.intrinsic_pct; }},
           {"extrinsic_saving_pct", [](Row r) { return r.savings.extrinsic_pct; }},
           {"non_straggler_saving_pct",
            [](Row r) { return r.non_straggler_pct ? json::value(*r.non_straggler_pct) : json::value(nullptr); }},
           {"mean_power_w", [](Row r) { return r.iteration.power.mean; }},
           {"highest_power_w", [](Row r) { return r.iteration.power.highest; }},
           {"ramp_w_per_s", [](Row r) { return r.iteration.power.ramp_w_per_s; }},
           {"band_rms_w", [](Row r) { return std::sqrt(r.iteration.power.band_w2); }}}) {
    columns.push_back(std::move(column));
  }
  return table_of<emulator::ScalingRow>(report.scaling, columns);
}

/// The methods' times and savings, their energies, and their powers.
std::array<report::TextRows, 3> tables_of(const EmulationReport& report) {
  const json::array methods = methods_of(report).records;
  constexpr double kwh = 3.6e6;
  std::vector<TextColumn> energies{{"energy [kWh]", "name"}, {"total", "energy_j", "{:.2f}", kwh}};
  for (const EnergyPart& part : kEnergyParts) energies.push_back({part.name, part.key, "{:.2f}", kwh});
  return {text_rows(methods, {{"method", "name"},
                              {"iterations", "iterations"},
                              {"mean [s]", "mean_iteration_s", "{:.4f}"},
                              {"longest [s]", "longest_iteration_s", "{:.4f}"},
                              {"J/iteration", "energy_per_iteration_j", "{:.6g}"},
                              {"saving [%]", "saving_pct", "{:.2f}"},
                              {"intrinsic", "intrinsic_saving_pct", "{:.2f}"},
                              {"extrinsic", "extrinsic_saving_pct", "{:.2f}"}}),
          text_rows(methods, energies),
          text_rows(methods, {{"power [kW]", "name"},
                              {"mean", "mean_power_w", "{:.4g}", 1e3},
                              {"highest", "highest_power_w", "{:.4g}", 1e3},
                              {"peak/mean", "peak_to_mean", "{:.3f}"},
                              {"ramp [kW/s]", "ramp_w_per_s", "{:.4g}", 1e3},
                              {"rms 0.1-20 Hz", "band_rms_w", "{:.4g}", 1e3},
                              {"share of swing [%]", "band_share", "{:.1f}", 0.01}})};
}

/// Rows of the sweep at a few slowdowns: the ends and the middle.
report::TextRows scaled_savings(const std::vector<emulator::ScalingRow>& scaling) {
  std::vector<double> all;
  for (const emulator::ScalingRow& row : scaling)
    if (std::ranges::find(all, row.slowdown) == all.end()) all.push_back(row.slowdown);
  std::vector<double> shown;
  for (const double slowdown : {all.front(), all[all.size() / 2], all.back()})
    if (std::ranges::find(shown, slowdown) == shown.end()) shown.push_back(slowdown);
  report::TextRows rows;
  rows.header = {"saving of the cluster [%]", "GPUs", "pipelines", "microbatches", "method"};
  for (const double slowdown : shown) rows.header.push_back(fmt::format("T'/T {:g}", slowdown));
  for (const emulator::ScalingRow& row : scaling) {
    if (row.method == "all-max") continue;
    if (row.slowdown == shown.front()) {
      rows.rows.push_back({std::string(model::name_of(row.scaling)), std::to_string(row.gpus),
                           std::to_string(row.pipelines), std::to_string(row.microbatches), row.method});
      rows.rows.back().resize(rows.header.size());
    }
    const auto column = std::ranges::find(shown, row.slowdown);
    if (column == shown.end()) continue;
    for (auto& cells : rows.rows) {
      if (cells[0] == model::name_of(row.scaling) && cells[1] == std::to_string(row.gpus) && cells[4] == row.method) {
        cells[5 + static_cast<std::size_t>(column - shown.begin())] = fmt::format("{:.2f}", row.savings.total_pct);
      }
    }
  }
  return rows;
}

void write_segments(const EmulationReport& report, const report::Sink& sink) {
  sink("method,start_s,iterations,iteration_s");
  for (const EnergyPart& part : kEnergyParts) sink(fmt::format(",{}", part.key));
  sink(",mean_power_w,highest_power_w,lowest_power_w,ramp_w_per_s,band_rms_w\n");
  for (const EmulatedMethod& m : report.methods) {
    for (const emulator::Segment& s : m.run.segments) {
      sink(fmt::format("{},{:.12g},{},{:.12g}", m.name, s.start.value(), s.iterations, s.each.value()));
      for (const EnergyPart& part : kEnergyParts) sink(fmt::format(",{:.12g}", (s.energy.*part.value).value()));
      sink(fmt::format(",{:.9g},{:.9g},{:.9g},{:.9g},{:.9g}\n", s.power.mean.value(), s.power.highest.value(),
                       s.power.lowest.value(), s.power.ramp_w_per_s, std::sqrt(s.power.band_w2)));
    }
  }
}

void write_page(const EmulationReport& report, const std::map<std::string, std::string>& pictures,
                const report::Sink& sink) {
  report::StaticPage page{"Perseus emulation", report.title, with_origin(report.facts), {}};
  if (!report.methods.empty()) {
    const auto [savings, energies, powers] = tables_of(report);
    page.sections.push_back(
        {.drawings = {pictures.at("energy.svg")},
         .table = savings,
         .note = "Saving: of energy per iteration, against everything at maximum clock. Intrinsic: with the "
                 "default plans only. Extrinsic: what slowing down for stragglers adds."});
    page.sections.push_back(
        {.heading = "Energy",
         .table = energies,
         .note = "Bloat is what the proven lower bound says could be saved: intrinsic without making a "
                 "pipeline slower, extrinsic by slowing it down to what it waits for. Useful is the rest of "
                 "what computing took, and the optimizer's step; blocking is waiting and gradient "
                 "synchronization; idle are GPUs without a pipeline, and all of them during a restart."});
    page.sections.push_back({.heading = "Power",
                             .drawings = {pictures.at("power.svg"), pictures.at("iteration.svg")},
                             .table = powers,
                             .note = "Ramp: between neighboring means over 0.1 s. The swing is what alternates within "
                                     "iterations; 0.1 to 20 Hz is the range that disturbs power grids."});
    page.sections.push_back({.heading = "Over time", .drawings = {pictures.at("times.svg"), pictures.at("band.svg")}});
  }
  if (!report.scaling.empty()) {
    report::PageSection section{
        "Scaling",
        {},
        {},
        scaled_savings(report.scaling),
        "One pipeline is throttled as a whole; the saving is of the whole cluster, the straggler "
        "included. scaling.csv also has the saving of a pipeline that does not straggle."};
    for (const char* name : {"scaling_strong.svg", "scaling_weak.svg"}) {
      if (pictures.contains(name)) section.drawings.push_back(pictures.at(name));
    }
    page.sections.push_back(std::move(section));
  }
  report::write_static_page(page, sink);
}

}  // namespace

std::string emulation_text(const EmulationReport& report) {
  std::string text = lines_of(report.facts);
  if (!report.methods.empty()) {
    for (const report::TextRows& rows : tables_of(report)) { text += "\n" + report::text_of(rows, output_columns()); }
  }
  if (!report.scaling.empty()) text += "\n" + report::text_of(scaled_savings(report.scaling), output_columns());
  return text;
}

json::object json_of(const EmulationReport& report) {
  json::object all{{"name", report.title}, {"inputs", object_of(report.facts)}};
  if (!report.methods.empty()) all["methods"] = methods_of(report).json();
  if (!report.scaling.empty()) all["scaling"] = scaling_of(report).json();
  return all;
}

Status check_emulation(const std::filesystem::path& directory) {
  return check_output(directory, files_of_an_emulation());
}

Status write_emulation(const std::filesystem::path& directory, const EmulationReport& report) {
  if (directory.empty()) return Ok{};
  const std::map<std::string, std::string> pictures = draw_emulation(report);
  std::vector<ResultFile> files;
  if (!report.methods.empty()) {
    const Table methods = methods_of(report);
    files.emplace_back("methods.csv", methods.csv("method=" + methods.all_columns, 12));
    files.emplace_back("segments.csv", [&](const report::Sink& sink) { write_segments(report, sink); });
  }
  if (!report.scaling.empty()) { files.emplace_back("scaling.csv", scaling_of(report).csv({}, 12)); }
  for (const auto& [name, svg] : pictures) files.emplace_back(name, svg);
  files.emplace_back("emulation.html", [&](const report::Sink& sink) { write_page(report, pictures, sink); });
  return write_output(directory, files_of_an_emulation(), files);
}

}  // namespace perseus::cli
