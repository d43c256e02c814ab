// perseus calibrate: derives a profile and the DAG's other constants from traces of real runs, and reports how well
// both predict.
#include "evaluation/calibration/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "command_line/command.h"
#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "command_line/progress.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "evaluation/calibration/doubts.h"
#include "io/formats/pipeline_constants.h"
#include "io/formats/profile_csv.h"
#include "io/formats/run_trace_csv.h"
#include "io/report/line_chart.h"
#include "io/report/static_page.h"
#include "planning/model/make_schedule.h"

namespace perseus::cli {
namespace {

// Tables of `perseus calibrate`, on the terminal and on its page report.html.
// Input:   a calibration, with the predictions of plans that were left out of it.
// Output:  cells of tables; a page for write_static_page().

struct CalibrationOutcome {
  model::RunTrace trace;
  int folds = 0;
  std::vector<calibration::Prediction> predictions;
  calibration::PredictionErrors errors;
  calibration::Calibration calibration;
  model::Profile profile;
  formats::PipelineConstants constants;
  std::vector<std::string> doubts;
};

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

Table predictions_of(const CalibrationOutcome& outcome) {
  using calibration::Prediction;
  const auto plan_of = [&](const Prediction& p) -> const model::TracedPlan& { return outcome.trace.plans[p.plan]; };
  return table_of<Prediction>(
      outcome.predictions,
      {{"plan", [=](const Prediction& p) { return plan_of(p).id; }},
       {"kind", [=](const Prediction& p) { return plan_of(p).kind; }},
       {"-name", [=](const Prediction& p) { return fmt::format("{} {}", plan_of(p).id, plan_of(p).kind); },
        "plan left out"},
       {"time_s", &Prediction::measured_time, "measured s", "{:.3f}"},
       {"predicted_time_s", &Prediction::predicted_time, "predicted s", "{:.3f}"},
       {"-time_error_pct", [](const Prediction& p) { return 100 * p.time_error(); }, "error %", "{:+.3f}"},
       {"replayed_time_s", &Prediction::replayed_time},
       {"-replay_error_pct", [](const Prediction& p) { return 100 * p.replay_error(); }, "replayed %", "{:+.3f}"},
       {"energy_j", &Prediction::measured_energy, "measured J", "{:.1f}"},
       {"predicted_energy_j", &Prediction::predicted_energy, "predicted J", "{:.1f}"},
       {"-energy_error_pct", [](const Prediction& p) { return 100 * p.energy_error(); }, "error %", "{:+.3f}"}});
}

/// All link models that were tried, each with its errors on plans left out (with the plans' own computation times).
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

constexpr int kMostFolds = 5;
constexpr std::string_view kPredictionColumns =
    "plan,kind,time_s,predicted_time_s,replayed_time_s,energy_j,predicted_energy_j,time_error_pct:.4f,"
    "replay_error_pct:.4f,energy_error_pct:.4f";

struct CalibrateOptions {
  std::string ops;
  std::string iterations;
  std::optional<double> blocking_power_w;
  std::string out;
  std::optional<bool> progress;
};

/// The name of the traced schedule, if it has one.
std::optional<std::string> name_of(const model::Schedule& traced) {
  for (const std::string& name : model::schedule_names()) {
    if (model::chunks_fixed_by(name) > 1) continue;
    const auto schedule = model::make_schedule(name, {traced.num_stages, traced.num_microbatches, 1});
    if (schedule && schedule->ranks == traced.ranks) return name;
  }
  return std::nullopt;
}

Result<CalibrationOutcome> calibrate_all(const CalibrateOptions& options) {
  auto trace = formats::read_run_trace(options.ops, options.iterations);
  if (!trace) return trace.error();
  calibration::CalibrationOptions fit;
  if (options.blocking_power_w) fit.power.blocking_power = Watts(*options.blocking_power_w);
  const int num_plans = static_cast<int>(trace->plans.size());
  if (num_plans < 2) {
    return Error{
        ErrorCode::invalid_input,
        fmt::format("{}: {} plan; expected two or more, as each is predicted from others", options.ops, num_plans)};
  }
  const int folds = std::min(kMostFolds, num_plans);
  ProgressLine progress("calibrating", options.progress);
  // The fit to all plans comes last, and takes as long as one of the folds.
  if (const auto show = progress.callback()) fit.progress = [=](double done) { show(done * folds / (folds + 1)); };
  auto predictions = calibration::cross_validate(*trace, folds, fit);
  if (!predictions)
    return Error{predictions.error().code, fmt::format("{}: {}", options.ops, predictions.error().message)};
  std::vector<int> everything(num_plans);
  std::iota(everything.begin(), everything.end(), 0);
  fit.other_links = true;
  auto calibration = calibration::calibrate(*trace, everything, fit);
  if (!calibration) return calibration.error();
  model::Profile profile = calibration::make_profile(*calibration, *trace, everything);
  formats::PipelineConstants constants{
      name_of(calibration->schedule),       calibration->schedule.num_microbatches, calibration->costs(),
      calibration->power.blocking().stddev, calibration->transfer_latency_stddev,   calibration->other_links};
  const calibration::PredictionErrors errors = calibration::errors_of(*predictions);
  std::vector<std::string> doubts = calibration::doubts_of(*calibration, *predictions, *trace);
  return CalibrationOutcome{*std::move(trace),  folds,     *std::move(predictions), errors, *std::move(calibration),
                            std::move(profile), constants, std::move(doubts)};
}

std::string ms_text(const calibration::Fitted<Seconds>& time) {
  return fmt::format("{:.3f} +- {:.3f} ms", 1e3 * time.value.value(), 1e3 * time.stddev.value());
}

/// ", +2.98 % per 100 MHz of the forward"; empty where loading does not depend on the clock.
std::string clock_effect(const calibration::StageLoading& loading) {
  if (loading.rise_per_mhz == 0) return "";
  return fmt::format(", {:+.2f} % per 100 MHz of the forward's clock", 1e4 * loading.rise_per_mhz);
}

std::string latencies_of(const calibration::Calibration& c) {
  const std::string_view senders = name_of(c.timing.best().sending);
  const model::TransferLatency &mean = c.transfer_latency, &stddev = c.transfer_latency_stddev;
  if (mean.boundaries.empty()) {
    return fmt::format("transfer latency  {}, {}\n", ms_text({mean.common, stddev.common}), senders);
  }
  std::string text = fmt::format("transfer latency  {}, {}\n", name_of(c.timing.best().links.detail), senders);
  for (std::size_t b = 0; b < mean.boundaries.size(); ++b) {
    const model::BoundaryLatency &value = mean.boundaries[b], &error = stddev.boundaries[b];
    text += fmt::format("  boundary {:<3}    {}", b, ms_text({value.forward, error.forward}));
    if (value.forward != value.backward)
      text += fmt::format(" forward, {} backward", ms_text({value.backward, error.backward}));
    text += "\n";
  }
  return text;
}

std::string summary_of(const CalibrationOutcome& outcome) {
  const calibration::Calibration& c = outcome.calibration;
  const calibration::PredictionErrors& e = outcome.errors;
  std::string text = fmt::format(
      "\n{} plans, {} stages, {} microbatches, schedule {}; each plan predicted from the other {} of {} parts\n"
      "time    mean |error| {:.3f} %, largest {:.3f} %; with the plan's own computation times (replayed) {:.3f} %\n"
      "energy  rms error {:.3f} %, largest {:.3f} %\n"
      "bars    {:.0f} % of new plans: time +- {:.3f} % (covers {:.0f} % of the plans left out), "
      "energy +- {:.3f} % ({:.0f} %)\n\n",
      outcome.trace.plans.size(), outcome.trace.num_stages(), outcome.constants.microbatches,
      outcome.constants.schedule.value_or("without a name"), outcome.folds - 1, outcome.folds, 100 * e.time_mean,
      100 * e.time_max, 100 * e.replay_mean, 100 * e.energy_rms, 100 * e.energy_max, 100 * calibration::kErrorBarShare,
      100 * e.time_bar, 100 * e.time_coverage, 100 * e.energy_bar, 100 * e.energy_coverage);
  text += latencies_of(c);
  for (const calibration::StageLoading& l : c.loading)
    text += fmt::format("loading, stage {:<2}  {} a microbatch ({:.3f} ms measured){}\n", l.stage,
                        ms_text(l.per_microbatch), 1e3 * l.measured.value(), clock_effect(l));
  text += fmt::format("tail              {}\nblocking power    {:.2f} +- {:.2f} W\n", ms_text(c.tail),
                      c.power.blocking().value.value(), c.power.blocking().stddev.value());
  text += "\n" + report::text_of(link_model_rows(c), output_columns());
  for (const std::string& doubt : outcome.doubts) text += fmt::format("\nwarning: {}", doubt);
  if (!outcome.doubts.empty()) text += "\n";
  return text;
}

boost::json::object fitted(double value, double stddev) { return {{"value", value}, {"stddev", stddev}}; }

/// One object, or a list of {"forward", "backward"} per boundary.
boost::json::value latency_json(const model::TransferLatency& mean, const model::TransferLatency& stddev) {
  if (mean.boundaries.empty()) return fitted(mean.common.value(), stddev.common.value());
  boost::json::array boundaries;
  for (std::size_t b = 0; b < mean.boundaries.size(); ++b) {
    const model::BoundaryLatency &value = mean.boundaries[b], &error = stddev.boundaries[b];
    boundaries.push_back({{"forward", fitted(value.forward.value(), error.forward.value())},
                          {"backward", fitted(value.backward.value(), error.backward.value())}});
  }
  return boundaries;
}

boost::json::object json_of(const CalibrationOutcome& outcome) {
  boost::json::array loading;
  const calibration::Calibration& c = outcome.calibration;
  for (const calibration::StageLoading& l : c.loading)
    loading.push_back({{"stage", l.stage},
                       {"per_microbatch_s", fitted(l.per_microbatch.value.value(), l.per_microbatch.stddev.value())},
                       {"measured_s", l.measured.value()},
                       {"rise_pct_per_100_mhz", 1e4 * l.rise_per_mhz}});
  boost::json::object constants{
      {"microbatches", outcome.constants.microbatches},
      {"transfer_latency_s", latency_json(c.transfer_latency, c.transfer_latency_stddev)},
      {"link_model", name_of(c.timing.best().links.detail)},
      {"blocking_transfers", c.blocking_transfers},
      {"serial_transfers", c.serial_transfers},
      {"loading", loading},
      {"tail_s", fitted(c.tail.value.value(), c.tail.stddev.value())},
      {"blocking_power_w", fitted(c.power.blocking().value.value(), c.power.blocking().stddev.value())},
      {"time_correction", c.time_correction}};
  if (outcome.constants.schedule) constants["schedule"] = *outcome.constants.schedule;
  const calibration::PredictionErrors& e = outcome.errors;
  return {{"folds", outcome.folds},
          {"errors",
           {{"time_mean_pct", 100 * e.time_mean},
            {"time_max_pct", 100 * e.time_max},
            {"replay_mean_pct", 100 * e.replay_mean},
            {"energy_rms_pct", 100 * e.energy_rms},
            {"energy_max_pct", 100 * e.energy_max},
            {"time_bar_pct", 100 * e.time_bar},
            {"time_coverage_pct", 100 * e.time_coverage},
            {"energy_bar_pct", 100 * e.energy_bar},
            {"energy_coverage_pct", 100 * e.energy_coverage}}},
          {"warnings", boost::json::value_from(outcome.doubts)},
          {"constants", constants},
          {"plans", predictions_of(outcome).json()},
          {"origin", origin_json()}};
}

OutputDirectory::IsOurs files_of_a_calibration() {
  return one_of({"profile.csv", "constants.json", "predictions.csv", "report.html"});
}

Status write_calibration(const std::string& directory, const CalibrationOutcome& outcome,
                         const std::vector<report::ReportFact>& facts) {
  return write_output(directory, files_of_a_calibration(),
                      {{"profile.csv", formats::format_profile_csv(outcome.profile)},
                       {"constants.json", formats::format_pipeline_constants(outcome.constants)},
                       {"predictions.csv", predictions_of(outcome).csv(kPredictionColumns)},
                       {"report.html", [&](const report::Sink& sink) {
                          report::write_static_page(calibration_page(outcome, facts), sink);
                        }}});
}

std::vector<report::ReportFact> facts_of(const CalibrateOptions& options) {
  return with_origin({{"computations", options.ops}, {"iterations", options.iterations}});
}

Result<int> run_calibrate(const CalibrateOptions& options, bool as_json) {
  if (Status writable = check_output(options.out, files_of_a_calibration()); !writable) return writable.error();
  const auto outcome = calibrate_all(options);
  if (!outcome) return outcome.error();
  if (Status written = write_calibration(options.out, *outcome, facts_of(options)); !written) return written.error();
  if (as_json) {
    print_json(json_of(*outcome));
    return 0;
  }
  print(report::text_of(predictions_of(*outcome).text(), output_columns()) + summary_of(*outcome));
  if (!options.out.empty()) {
    print(
        fmt::format("\nwritten to {0}; to look at: {0}/report.html; next:\n  perseus plan {0}/profile.csv --constants "
                    "{0}/constants.json --out DIR\n",
                    options.out));
  }
  return 0;
}

}  // namespace

void add_calibrate(CLI::App& app, Command& command) {
  auto* calibrate = app.add_subcommand(
      "calibrate", "Fit profile, transfers, data loading and blocking power to traces of runs, with cross-validation");
  auto options = std::make_shared<CalibrateOptions>();
  calibrate->add_option("OPS", options->ops, "Trace of every computation: CSV or gzipped CSV, see docs/formats.md")
      ->required();
  calibrate->add_option("ITERS", options->iterations, "Trace of whole iterations: CSV or gzipped CSV")->required();
  add_value(*calibrate, "--blocking-power W", options->blocking_power_w,
            "Power of one waiting accelerator, in watts (default: fitted)", number_within(0, 1e6, "W"));
  add_value(*calibrate, "--out DIR", options->out,
            "Write profile.csv, constants.json and predictions.csv to this directory");
  add_progress_flag(*calibrate, options->progress);
  calibrate->footer(help_footer(kFileErrors,
                                "  perseus calibrate run.ops.csv.gz run.iters.csv --out fitted\n"
                                "  perseus plan fitted/profile.csv --constants fitted/constants.json --out plans\n"));
  set_run(*calibrate, command, options, run_calibrate);
}

}  // namespace perseus::cli
