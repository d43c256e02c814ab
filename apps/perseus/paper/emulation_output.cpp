#include "paper/emulation_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <string_view>

#include "command_line/output_directory.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/report/static_page.h"
#include "paper/emulation_pictures.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

OutputDirectory::IsOurs files_of_an_emulation() {
  return one_of({"emulation.html", "energy.svg", "power.svg", "iteration.svg", "band.svg", "times.svg", "methods.csv",
                 "segments.csv", "scaling.csv", "scaling_strong.svg", "scaling_weak.svg"});
}

json::array methods_json(const std::vector<EmulatedMethod>& methods) {
  json::array all;
  for (const EmulatedMethod& m : methods) {
    json::object one{{"name", m.name},
                     {"iterations", m.run.iterations},
                     {"time_s", m.run.time.value()},
                     {"energy_j", m.run.energy.total().value()}};
    for (const EnergyPart& part : kEnergyParts) one[part.key] = (m.run.energy.*part.value).value();
    const std::initializer_list<std::pair<std::string_view, double>> figures{
        {"energy_per_iteration_j", m.run.energy_per_iteration().value()},
        {"saving_pct", m.savings.total_pct},
        {"intrinsic_saving_pct", m.savings.intrinsic_pct},
        {"extrinsic_saving_pct", m.savings.extrinsic_pct},
        {"shortest_iteration_s", m.run.shortest_iteration.value()},
        {"mean_iteration_s", m.run.mean_iteration().value()},
        {"longest_iteration_s", m.run.longest_iteration.value()},
        {"mean_power_w", m.run.mean_power().value()},
        {"highest_power_w", m.run.highest_power.value()},
        {"lowest_power_w", m.run.lowest_power.value()},
        {"peak_to_mean", m.run.peak_to_mean()},
        {"ramp_w_per_s", m.run.ramp_w_per_s},
        {"band_rms_w", m.run.band_rms_w()},
        {"band_energy_w2s", m.run.band_w2s},
        {"band_share", m.run.band_share()}};
    for (const auto& [key, value] : figures) one[key] = value;
    all.push_back(std::move(one));
  }
  return all;
}

json::array scaling_json(const std::vector<emulator::ScalingRow>& scaling) {
  json::array rows;
  for (const emulator::ScalingRow& r : scaling) {
    json::object row{{"scaling", model::name_of(r.scaling)}, {"gpus", r.gpus},         {"pipelines", r.pipelines},
                     {"microbatches", r.microbatches},       {"slowdown", r.slowdown}, {"method", r.method}};
    row["iteration_s"] = r.iteration.time.value();
    row["energy_j"] = r.iteration.energy.total().value();
    for (const EnergyPart& part : kEnergyParts) row[part.key] = (r.iteration.energy.*part.value).value();
    row.erase("idle_j");
    row["saving_pct"] = r.savings.total_pct;
    row["intrinsic_saving_pct"] = r.savings.intrinsic_pct;
    row["extrinsic_saving_pct"] = r.savings.extrinsic_pct;
    row["non_straggler_saving_pct"] = r.non_straggler_pct ? json::value(*r.non_straggler_pct) : json::value(nullptr);
    row["mean_power_w"] = r.iteration.power.mean.value();
    row["highest_power_w"] = r.iteration.power.highest.value();
    row["ramp_w_per_s"] = r.iteration.power.ramp_w_per_s;
    row["band_rms_w"] = std::sqrt(r.iteration.power.band_w2);
    rows.push_back(std::move(row));
  }
  return rows;
}

report::TextRows method_table(const std::vector<EmulatedMethod>& methods) {
  return text_rows(methods_json(methods), {{"method", "name"},
                                           {"iterations", "iterations"},
                                           {"mean [s]", "mean_iteration_s", "{:.4f}"},
                                           {"longest [s]", "longest_iteration_s", "{:.4f}"},
                                           {"J/iteration", "energy_per_iteration_j", "{:.6g}"},
                                           {"saving [%]", "saving_pct", "{:.2f}"},
                                           {"intrinsic", "intrinsic_saving_pct", "{:.2f}"},
                                           {"extrinsic", "extrinsic_saving_pct", "{:.2f}"}});
}

report::TextRows energy_table(const std::vector<EmulatedMethod>& methods) {
  constexpr double kwh = 3.6e6;
  std::vector<TextColumn> columns{{"energy [kWh]", "name"}, {"total", "energy_j", "{:.2f}", kwh}};
  for (const EnergyPart& part : kEnergyParts) columns.push_back({part.name, part.key, "{:.2f}", kwh});
  return text_rows(methods_json(methods), columns);
}

report::TextRows power_table(const std::vector<EmulatedMethod>& methods) {
  return text_rows(methods_json(methods), {{"power [kW]", "name"},
                                           {"mean", "mean_power_w", "{:.4g}", 1e3},
                                           {"highest", "highest_power_w", "{:.4g}", 1e3},
                                           {"peak/mean", "peak_to_mean", "{:.3f}"},
                                           {"ramp [kW/s]", "ramp_w_per_s", "{:.4g}", 1e3},
                                           {"rms 0.1-20 Hz", "band_rms_w", "{:.4g}", 1e3},
                                           {"share of swing [%]", "band_share", "{:.1f}", 0.01}});
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

void write_page(const EmulationReport& report, const EmulationPictures& pictures, const report::Sink& sink) {
  report::StaticPage page{"Perseus emulation", report.title, report.facts, {}};
  page.facts.insert(page.facts.end(), report.origin.begin(), report.origin.end());
  if (!report.methods.empty()) {
    page.sections.push_back(
        {.drawings = {pictures.of("energy.svg")},
         .table = method_table(report.methods),
         .note = "Saving: of energy per iteration, against everything at maximum clock. Intrinsic: with the "
                 "default plans only. Extrinsic: what slowing down for stragglers adds."});
    page.sections.push_back(
        {.heading = "Energy",
         .table = energy_table(report.methods),
         .note = "Bloat is what the proven lower bound says could be saved: intrinsic without making a "
                 "pipeline slower, extrinsic by slowing it down to what it waits for. Useful is the rest of "
                 "what computing took, and the optimizer's step; blocking is waiting and gradient "
                 "synchronization; idle are GPUs without a pipeline, and all of them during a restart."});
    page.sections.push_back({.heading = "Power",
                             .drawings = {pictures.of("power.svg"), pictures.of("iteration.svg")},
                             .table = power_table(report.methods),
                             .note = "Ramp: between neighboring means over 0.1 s. The swing is what alternates within "
                                     "iterations; 0.1 to 20 Hz is the range that disturbs power grids."});
    page.sections.push_back({.heading = "Over time", .drawings = {pictures.of("times.svg"), pictures.of("band.svg")}});
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
  std::string text = lines_of(report.facts);
  if (!report.methods.empty()) {
    text += "\n" + report::text_of(method_table(report.methods), output_columns()) + "\n" +
            report::text_of(energy_table(report.methods), output_columns()) + "\n" +
            report::text_of(power_table(report.methods), output_columns());
  }
  if (!report.scaling.empty()) text += "\n" + report::text_of(scaling_table(report.scaling), output_columns());
  return text;
}

json::object json_of(const EmulationReport& report) {
  json::object all{{"name", report.title}, {"inputs", object_of(report.facts)}};
  if (!report.methods.empty()) all["methods"] = methods_json(report.methods);
  if (!report.scaling.empty()) all["scaling"] = scaling_json(report.scaling);
  return all;
}

Status check_emulation(const std::filesystem::path& directory) {
  return check_output(directory, files_of_an_emulation());
}

Status write_emulation(const std::filesystem::path& directory, const EmulationReport& report) {
  if (directory.empty()) return Ok{};
  const EmulationPictures pictures = draw_emulation(report);
  std::vector<ResultFile> files;
  if (!report.methods.empty()) {
    files.emplace_back(
        "methods.csv",
        csv_of("method=name,iterations,time_s,energy_j,useful_j,intrinsic_bloat_j,extrinsic_bloat_j,blocking_j,idle_j,"
               "energy_per_iteration_j,saving_pct,intrinsic_saving_pct,extrinsic_saving_pct,shortest_iteration_s,"
               "mean_iteration_s,longest_iteration_s,mean_power_w,highest_power_w,lowest_power_w,peak_to_mean,"
               "ramp_w_per_s,band_rms_w,band_energy_w2s,band_share",
               methods_json(report.methods), 12));
    files.emplace_back("segments.csv", [&](const report::Sink& sink) { write_segments_csv(report, sink); });
  }
  if (!report.scaling.empty()) {
    files.emplace_back(
        "scaling.csv",
        csv_of("scaling,gpus,pipelines,microbatches,slowdown,method,iteration_s,energy_j,useful_j,intrinsic_bloat_j,"
               "extrinsic_bloat_j,blocking_j,saving_pct,intrinsic_saving_pct,extrinsic_saving_pct,"
               "non_straggler_saving_pct,mean_power_w,highest_power_w,ramp_w_per_s,band_rms_w",
               scaling_json(report.scaling), 12));
  }
  for (const auto& [name, svg] : pictures.by_name) files.emplace_back(name, svg);
  files.emplace_back("emulation.html", [&](const report::Sink& sink) { write_page(report, pictures, sink); });
  return write_output(directory, files_of_an_emulation(), files);
}

}  // namespace perseus::cli
