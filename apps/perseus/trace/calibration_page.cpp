#include "trace/calibration_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/report/line_chart.h"

namespace perseus::cli {
namespace {

/// Errors of the plans left out over their measured iteration time.
std::string error_picture(const CalibrationOutcome& outcome) {
  report::ChartSeries time{"iteration time", report::look_of("exact"), report::SeriesKind::marks};
  report::ChartSeries energy{"energy", report::look_of("perseus"), report::SeriesKind::marks};
  for (const calibration::Prediction& p : outcome.predictions) {
    time.points.push_back({p.measured_time.value(), 100 * p.time_error()});
    energy.points.push_back({p.measured_time.value(), 100 * p.energy_error()});
  }
  for (report::ChartSeries* series : {&time, &energy}) std::ranges::sort(series->points, {}, &report::ChartPoint::x);
  return report::line_chart(
      {"Errors of the plans left out", "measured iteration time [s]", "predicted against measured [%]"},
      {report::ChartPanel{"", {std::move(time), std::move(energy)}}});
}

report::TextRows constant_rows(const calibration::Calibration& c) {
  report::TextRows table{{"constant", "value", "standard deviation"}, {}};
  const auto add_ms = [&](const std::string& name, Seconds value, Seconds stddev) {
    table.rows.push_back(
        {name, fmt::format("{:.3f} ms", 1e3 * value.value()), fmt::format("{:.3f} ms", 1e3 * stddev.value())});
  };
  const model::TransferLatency &mean = c.transfer_latency, &stddev = c.transfer_latency_stddev;
  if (mean.boundaries.empty()) add_ms("transfer latency", mean.common, stddev.common);
  for (std::size_t b = 0; b < mean.boundaries.size(); ++b) {
    add_ms(fmt::format("transfer forward over boundary {}", b), mean.boundaries[b].forward,
           stddev.boundaries[b].forward);
    add_ms(fmt::format("transfer backward over boundary {}", b), mean.boundaries[b].backward,
           stddev.boundaries[b].backward);
  }
  for (const calibration::StageLoading& l : c.loading)
    add_ms(fmt::format("loading a microbatch, stage {}", l.stage), l.per_microbatch.value, l.per_microbatch.stddev);
  add_ms("tail", c.tail.value, c.tail.stddev);
  const auto& power = c.power.blocking();
  table.rows.push_back({"blocking power of one GPU", fmt::format("{:.2f} W", power.value.value()),
                        fmt::format("{:.2f} W", power.stddev.value())});
  return table;
}

}  // namespace

Table predictions_of(const CalibrationOutcome& outcome) {
  using calibration::Prediction;
  const auto plan_of = [&](const Prediction& p) -> const model::TracedPlan& { return outcome.trace.plans[p.plan]; };
  return table_of<Prediction>(
      outcome.predictions,
      {{"plan", [=](const Prediction& p) { return plan_of(p).id; }},
       {"kind", [=](const Prediction& p) { return plan_of(p).kind; }},
       {"name",
        [=](const Prediction& p) { return fmt::format("{} {}", plan_of(p).id, plan_of(p).kind); },
        "plan left out",
        {},
        1,
        false},
       {"time_s", &Prediction::measured_time, "measured s", "{:.3f}"},
       {"predicted_time_s", &Prediction::predicted_time, "predicted s", "{:.3f}"},
       {"time_error_pct", [](const Prediction& p) { return 100 * p.time_error(); }, "error %", "{:+.3f}", 1, false},
       {"replayed_time_s", &Prediction::replayed_time},
       {"replay_error_pct", [](const Prediction& p) { return 100 * p.replay_error(); }, "replayed %", "{:+.3f}", 1,
        false},
       {"energy_j", &Prediction::measured_energy, "measured J", "{:.1f}"},
       {"predicted_energy_j", &Prediction::predicted_energy, "predicted J", "{:.1f}"},
       {"energy_error_pct", [](const Prediction& p) { return 100 * p.energy_error(); }, "error %", "{:+.3f}", 1,
        false}});
}

report::TextRows link_model_rows(const calibration::Calibration& c) {
  report::TextRows table{{"link model", "senders", "mean |error| of plans left out %", "latencies ms"}, {}};
  for (const calibration::TimingCandidate& candidate : c.timing.candidates) {
    const auto begin = candidate.fit.unknowns.begin(), end = begin + candidate.links.num_latencies();
    const auto [least, most] = std::minmax_element(begin, end);
    table.rows.push_back(
        {fmt::format("{}{}", name_of(candidate.links.detail), &candidate == &c.timing.best() ? " (chosen)" : ""),
         std::string(name_of(candidate.sending)), fmt::format("{:.4f}", 100 * candidate.left_out_mean()),
         least == most ? fmt::format("{:.2f}", 1e3 * *least)
                       : fmt::format("{:.2f} to {:.2f}", 1e3 * *least, 1e3 * *most)});
  }
  return table;
}

report::StaticPage calibration_page(const CalibrationOutcome& outcome, const std::vector<report::ReportFact>& facts) {
  const calibration::PredictionErrors& e = outcome.errors;
  report::StaticPage page{"Perseus calibration",
                          fmt::format("predicts new plans within {:.2f} % of time and {:.2f} % of energy",
                                      100 * e.time_bar, 100 * e.energy_bar),
                          facts,
                          {}};
  std::vector<report::ReportFact> doubts;
  for (const std::string& doubt : outcome.doubts) doubts.push_back({"warning", doubt});
  page.sections.push_back({.heading = "Doubts",
                           .list = std::move(doubts),
                           .note = outcome.doubts.empty() ? "None: the data determine all constants." : ""});
  page.sections.push_back(
      {.heading = "Plans left out",
       .drawings = {error_picture(outcome)},
       .table = predictions_of(outcome).text(),
       .note = fmt::format(
           "{} plans of {} stages, {} microbatches, schedule {}; each plan predicted from the other {} of {} "
           "parts. Mean |error| of time: {:.3f} %, largest {:.3f} %; energy: rms {:.3f} %, largest {:.3f} %. The "
           "headline covers {:.0f} % of new plans. Replayed: with the plan's own computation times.",
           outcome.trace.plans.size(), outcome.trace.num_stages(), outcome.constants.microbatches,
           outcome.constants.schedule.value_or("without a name"), outcome.folds - 1, outcome.folds, 100 * e.time_mean,
           100 * e.time_max, 100 * e.energy_rms, 100 * e.energy_max, 100 * calibration::kErrorBarShare)});
  page.sections.push_back({.heading = "Constants", .table = constant_rows(outcome.calibration)});
  page.sections.push_back({.heading = "Link models",
                           .table = link_model_rows(outcome.calibration),
                           .note = "Senders wait: a stage computes again when its output has been sent. Transfers "
                                   "queue: a link carries one per "
                                   "direction at a time."});
  return page;
}

}  // namespace perseus::cli
