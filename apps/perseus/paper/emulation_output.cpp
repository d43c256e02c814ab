#include "paper/emulation_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <functional>
#include <string_view>

#include "command_line/interrupt.h"
#include "command_line/output_directory.h"
#include "command_line/terminal_size.h"
#include "io/report/static_page.h"
#include "paper/emulation_pictures.h"
#include "paper/energy_part_names.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

/// A figure of a run, the same in CSV and JSON.
struct RunFigure {
  const char* key;
  double (*value)(const EmulatedMethod&);
};
constexpr std::array kFigures{
    RunFigure{"time_s", [](const EmulatedMethod& m) { return m.run.time.value(); }},
    RunFigure{"energy_j", [](const EmulatedMethod& m) { return m.run.energy.total().value(); }},
    RunFigure{"useful_j", [](const EmulatedMethod& m) { return m.run.energy.useful.value(); }},
    RunFigure{"intrinsic_bloat_j", [](const EmulatedMethod& m) { return m.run.energy.intrinsic_bloat.value(); }},
    RunFigure{"extrinsic_bloat_j", [](const EmulatedMethod& m) { return m.run.energy.extrinsic_bloat.value(); }},
    RunFigure{"blocking_j", [](const EmulatedMethod& m) { return m.run.energy.blocking.value(); }},
    RunFigure{"idle_j", [](const EmulatedMethod& m) { return m.run.energy.idle.value(); }},
    RunFigure{"energy_per_iteration_j", [](const EmulatedMethod& m) { return m.run.energy_per_iteration().value(); }},
    RunFigure{"saving_pct", [](const EmulatedMethod& m) { return m.savings.total_pct; }},
    RunFigure{"intrinsic_saving_pct", [](const EmulatedMethod& m) { return m.savings.intrinsic_pct; }},
    RunFigure{"extrinsic_saving_pct", [](const EmulatedMethod& m) { return m.savings.extrinsic_pct; }},
    RunFigure{"shortest_iteration_s", [](const EmulatedMethod& m) { return m.run.shortest_iteration.value(); }},
    RunFigure{"mean_iteration_s", [](const EmulatedMethod& m) { return m.run.mean_iteration().value(); }},
    RunFigure{"longest_iteration_s", [](const EmulatedMethod& m) { return m.run.longest_iteration.value(); }},
    RunFigure{"mean_power_w", [](const EmulatedMethod& m) { return m.run.mean_power().value(); }},
    RunFigure{"highest_power_w", [](const EmulatedMethod& m) { return m.run.highest_power.value(); }},
    RunFigure{"lowest_power_w", [](const EmulatedMethod& m) { return m.run.lowest_power.value(); }},
    RunFigure{"peak_to_mean", [](const EmulatedMethod& m) { return m.run.peak_to_mean(); }},
    RunFigure{"ramp_w_per_s", [](const EmulatedMethod& m) { return m.run.ramp_w_per_s; }},
    RunFigure{"band_rms_w", [](const EmulatedMethod& m) { return m.run.band_rms_w(); }},
    RunFigure{"band_energy_w2s", [](const EmulatedMethod& m) { return m.run.band_w2s; }},
    RunFigure{"band_share", [](const EmulatedMethod& m) { return m.run.band_share(); }}};

/// A figure of a row of the sweep, likewise.
struct ScalingFigure {
  const char* key;
  std::optional<double> (*value)(const emulator::ScalingRow&);
};
constexpr std::array kScalingFigures{
    ScalingFigure{"iteration_s", [](const emulator::ScalingRow& r) { return std::optional(r.iteration.time.value()); }},
    ScalingFigure{"energy_j",
                  [](const emulator::ScalingRow& r) { return std::optional(r.iteration.energy.total().value()); }},
    ScalingFigure{"useful_j",
                  [](const emulator::ScalingRow& r) { return std::optional(r.iteration.energy.useful.value()); }},
    ScalingFigure{
        "intrinsic_bloat_j",
        [](const emulator::ScalingRow& r) { return std::optional(r.iteration.energy.intrinsic_bloat.value()); }},
    ScalingFigure{
        "extrinsic_bloat_j",
        [](const emulator::ScalingRow& r) { return std::optional(r.iteration.energy.extrinsic_bloat.value()); }},
    ScalingFigure{"blocking_j",
                  [](const emulator::ScalingRow& r) { return std::optional(r.iteration.energy.blocking.value()); }},
    ScalingFigure{"saving_pct", [](const emulator::ScalingRow& r) { return std::optional(r.savings.total_pct); }},
    ScalingFigure{"intrinsic_saving_pct",
                  [](const emulator::ScalingRow& r) { return std::optional(r.savings.intrinsic_pct); }},
    ScalingFigure{"extrinsic_saving_pct",
                  [](const emulator::ScalingRow& r) { return std::optional(r.savings.extrinsic_pct); }},
    ScalingFigure{"non_straggler_saving_pct", [](const emulator::ScalingRow& r) { return r.non_straggler_pct; }},
    ScalingFigure{"mean_power_w",
                  [](const emulator::ScalingRow& r) { return std::optional(r.iteration.power.mean.value()); }},
    ScalingFigure{"highest_power_w",
                  [](const emulator::ScalingRow& r) { return std::optional(r.iteration.power.highest.value()); }},
    ScalingFigure{"ramp_w_per_s",
                  [](const emulator::ScalingRow& r) { return std::optional(r.iteration.power.ramp_w_per_s); }},
    ScalingFigure{"band_rms_w",
                  [](const emulator::ScalingRow& r) { return std::optional(std::sqrt(r.iteration.power.band_w2)); }}};

bool is_part_of_an_emulation(std::string_view name) {
  constexpr std::array<std::string_view, 11> files{
      "emulation.html", "energy.svg",   "power.svg",   "iteration.svg",      "band.svg",        "times.svg",
      "methods.csv",    "segments.csv", "scaling.csv", "scaling_strong.svg", "scaling_weak.svg"};
  return std::ranges::find(files, name) != files.end();
}

std::string in_kw(double watts) { return fmt::format("{:.4g}", watts / 1e3); }

report::TextRows method_table(const std::vector<EmulatedMethod>& methods) {
  report::TextRows rows;
  rows.header = {"method",      "iterations", "mean [s]",  "longest [s]",
                 "J/iteration", "saving [%]", "intrinsic", "extrinsic"};
  for (const EmulatedMethod& m : methods) {
    rows.rows.push_back(
        {m.name, std::to_string(m.run.iterations), fmt::format("{:.4f}", m.run.mean_iteration().value()),
         fmt::format("{:.4f}", m.run.longest_iteration.value()),
         fmt::format("{:.6g}", m.run.energy_per_iteration().value()), fmt::format("{:.2f}", m.savings.total_pct),
         fmt::format("{:.2f}", m.savings.intrinsic_pct), fmt::format("{:.2f}", m.savings.extrinsic_pct)});
  }
  return rows;
}

report::TextRows energy_table(const std::vector<EmulatedMethod>& methods) {
  report::TextRows rows;
  rows.header = {"energy [kWh]", "total"};
  for (const EnergyPart& part : kEnergyParts) rows.header.emplace_back(part.name);
  for (const EmulatedMethod& m : methods) {
    std::vector<std::string> row{m.name, fmt::format("{:.2f}", m.run.energy.total().value() / 3.6e6)};
    for (const EnergyPart& part : kEnergyParts)
      row.push_back(fmt::format("{:.2f}", (m.run.energy.*part.value).value() / 3.6e6));
    rows.rows.push_back(std::move(row));
  }
  return rows;
}

report::TextRows power_table(const std::vector<EmulatedMethod>& methods) {
  report::TextRows rows;
  rows.header = {"power [kW]", "mean", "highest", "peak/mean", "ramp [kW/s]", "rms 0.1-20 Hz", "share of swing [%]"};
  for (const EmulatedMethod& m : methods) {
    rows.rows.push_back({m.name, in_kw(m.run.mean_power().value()), in_kw(m.run.highest_power.value()),
                         fmt::format("{:.3f}", m.run.peak_to_mean()), in_kw(m.run.ramp_w_per_s),
                         in_kw(m.run.band_rms_w()), fmt::format("{:.1f}", 100 * m.run.band_share())});
  }
  return rows;
}

/// Rows of the sweep at a few slowdowns: the ends and the middle.
report::TextRows scaling_table(const std::vector<emulator::ScalingRow>& scaling) {
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

std::string methods_csv(const EmulationReport& report) {
  std::string text = "method,iterations";
  for (const RunFigure& f : kFigures) text += fmt::format(",{}", f.key);
  text += '\n';
  for (const EmulatedMethod& m : report.methods) {
    text += fmt::format("{},{}", m.name, m.run.iterations);
    for (const RunFigure& f : kFigures) text += fmt::format(",{:.12g}", f.value(m));
    text += '\n';
  }
  return text;
}

void write_segments_csv(const EmulationReport& report, const report::Sink& sink) {
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

std::string scaling_csv(const EmulationReport& report) {
  std::string text = "scaling,gpus,pipelines,microbatches,slowdown,method";
  for (const ScalingFigure& f : kScalingFigures) text += fmt::format(",{}", f.key);
  text += '\n';
  for (const emulator::ScalingRow& r : report.scaling) {
    text += fmt::format("{},{},{},{},{:.9g},{}", model::name_of(r.scaling), r.gpus, r.pipelines, r.microbatches,
                        r.slowdown, r.method);
    for (const ScalingFigure& f : kScalingFigures) {
      const auto value = f.value(r);
      text += value ? fmt::format(",{:.12g}", *value) : ",";
    }
    text += '\n';
  }
  return text;
}

void write_page(const EmulationReport& report, const EmulationPictures& pictures, const report::Sink& sink) {
  report::StaticPage page{"Perseus emulation", report.title, report.facts, {}};
  page.facts.insert(page.facts.end(), report.origin.begin(), report.origin.end());
  if (!report.methods.empty()) {
    page.sections.push_back(
        {"",
         {pictures.of("energy.svg")},
         {},
         method_table(report.methods),
         "Saving: of energy per iteration, against everything at maximum clock. Intrinsic: with the "
         "default plans only. Extrinsic: what slowing down for stragglers adds."});
    page.sections.push_back(
        {"Energy",
         {},
         {},
         energy_table(report.methods),
         "Bloat is what the proven lower bound says could be saved: intrinsic without making a "
         "pipeline slower, extrinsic by slowing it down to what it waits for. Useful is the rest of "
         "what computing took, and the optimizer's step; blocking is waiting and gradient "
         "synchronization; idle are GPUs without a pipeline, and all of them during a restart."});
    page.sections.push_back({"Power",
                             {pictures.of("power.svg"), pictures.of("iteration.svg")},
                             {},
                             power_table(report.methods),
                             "Ramp: between neighboring means over 0.1 s. The swing is what alternates within "
                             "iterations; 0.1 to 20 Hz is the range that disturbs power grids."});
    page.sections.push_back({"Over time", {pictures.of("times.svg"), pictures.of("band.svg")}, {}, {}, ""});
  }
  if (!report.scaling.empty()) {
    report::PageSection section{
        "Scaling",
        {},
        {},
        scaling_table(report.scaling),
        "One pipeline is throttled as a whole; the saving is of the whole cluster, the straggler "
        "included. scaling.csv also has the saving of a pipeline that does not straggle."};
    for (const char* name : {"scaling_strong.svg", "scaling_weak.svg"}) {
      if (std::string svg = pictures.of(name); !svg.empty()) section.drawings.push_back(std::move(svg));
    }
    page.sections.push_back(std::move(section));
  }
  report::write_static_page(page, sink);
}

}  // namespace

std::string emulation_text(const EmulationReport& report) {
  std::string text;
  for (const report::ReportFact& fact : report.facts) text += fmt::format("{}: {}\n", fact.name, fact.value);
  if (!report.methods.empty()) {
    text += "\n" + report::text_of(method_table(report.methods), output_columns()) + "\n" +
            report::text_of(energy_table(report.methods), output_columns()) + "\n" +
            report::text_of(power_table(report.methods), output_columns());
  }
  if (!report.scaling.empty()) text += "\n" + report::text_of(scaling_table(report.scaling), output_columns());
  return text;
}

json::object json_of(const EmulationReport& report) {
  json::object facts;
  for (const report::ReportFact& fact : report.facts) facts[fact.name] = fact.value;
  json::object all{{"name", report.title}, {"inputs", std::move(facts)}};
  if (!report.methods.empty()) {
    json::array methods;
    for (const EmulatedMethod& m : report.methods) {
      json::object object{{"name", m.name}, {"iterations", m.run.iterations}};
      for (const RunFigure& f : kFigures) object[f.key] = f.value(m);
      methods.push_back(std::move(object));
    }
    all["methods"] = std::move(methods);
  }
  if (!report.scaling.empty()) {
    json::array rows;
    for (const emulator::ScalingRow& r : report.scaling) {
      json::object row{{"scaling", model::name_of(r.scaling)}, {"gpus", r.gpus},         {"pipelines", r.pipelines},
                       {"microbatches", r.microbatches},       {"slowdown", r.slowdown}, {"method", r.method}};
      for (const ScalingFigure& f : kScalingFigures) {
        const auto value = f.value(r);
        row[f.key] = value ? json::value(*value) : json::value(nullptr);
      }
      rows.push_back(std::move(row));
    }
    all["scaling"] = std::move(rows);
  }
  return all;
}

Status check_emulation(const std::filesystem::path& directory) {
  const Result<OutputDirectory> probe = OutputDirectory::create(directory, is_part_of_an_emulation);
  if (!probe) return probe.error();
  return Ok{};
}

Status write_emulation(const std::filesystem::path& directory, const EmulationReport& report) {
  const InterruptGuard guard;
  Result<OutputDirectory> out = OutputDirectory::create(directory, is_part_of_an_emulation);
  if (!out) return out.error();
  std::vector<std::pair<std::string, std::function<void(const report::Sink&)>>> files;
  const auto text_file = [&](const std::string& name, const std::string& text) {
    files.emplace_back(name, [text](const report::Sink& sink) { sink(text); });
  };
  const EmulationPictures pictures = draw_emulation(report);
  if (!report.methods.empty()) {
    text_file("methods.csv", methods_csv(report));
    files.emplace_back("segments.csv", [&](const report::Sink& sink) { write_segments_csv(report, sink); });
  }
  if (!report.scaling.empty()) text_file("scaling.csv", scaling_csv(report));
  for (const auto& [name, svg] : pictures.by_name) text_file(name, svg);
  files.emplace_back("emulation.html", [&](const report::Sink& sink) { write_page(report, pictures, sink); });
  for (const auto& [name, fill] : files) {
    if (InterruptGuard::interrupted()) return Ok{};
    if (Status written = write_output_file(*out, name, fill); !written) return written;
  }
  return InterruptGuard::interrupted() ? Status(Ok{}) : out->commit();
}

}  // namespace perseus::cli
