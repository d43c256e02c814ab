// perseus advise: what a job would save, before anything is changed.
#include "trace/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include "base/count_text.h"
#include "base/terminal_text.h"
#include "command_line/command.h"
#include "command_line/origin.h"
#include "command_line/progress.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/report/format.h"
#include "io/report/summary.h"
#include "io/report/timeline.h"
#include "plan/effort.h"
#include "plan/link_doubt.h"
#include "planning/baselines/best_of_all.h"
#include "planning/model/reference_plans.h"
#include "server/profiles/modeled_saving.h"
#include "server/profiling/expected_frontier.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::array kTolerances = {0.0, 0.003, 0.01, 0.03};
constexpr std::size_t kMostCurrency = 20;
constexpr const char* kJobGroup = "The job";
constexpr double kOneDay_s = 86400, kDaysPerYear = 365, kJoulesPerKwh = 3.6e6;

/// The saving in one situation.
struct Advice {
  std::string situation;
  const char* kind;
  double degree;                     ///< slowdown in percent, or T'/T
  Seconds time;                      ///< of an iteration
  Joules saved;                      ///< per iteration of one pipeline
  double saving_pct;                 ///< of everything at maximum clock
  std::optional<double> stddev_pct;  ///< nothing: the profile counts as exact
  int pipelines = 1;                 ///< that save this
  [[nodiscard]] double kwh_per_day() const {
    return saved.value() * pipelines * kOneDay_s / time.value() / kJoulesPerKwh;
  }
};

std::optional<double> stddev_pct(const model::ComputationDag& dag, const profiling::DrawnTypes& drawn,
                                 const model::Plan& plan, std::optional<Seconds> deadline = std::nullopt) {
  if (drawn.empty()) return std::nullopt;
  return 100 * profiling::saving_stddev(dag, drawn, plan, deadline);
}

struct JobSize {
  int gpus = 1;
  std::vector<double> stragglers;
};

/// GPUs of one pipeline; a stage may have several ranks in the profile.
int gpus_of(const model::ComputationDag& dag) {
  return std::accumulate(dag.accelerators.begin(), dag.accelerators.end(), 0);
}

std::vector<Advice> advice_of(const model::ComputationDag& dag, const profiling::DrawnTypes& drawn,
                              const model::Frontier& frontier, const JobSize& job) {
  std::vector<Advice> all;
  for (const double slowdown : kTolerances) {
    const report::ReportSummary s = report::summarize(dag, frontier, std::nullopt, {slowdown});
    const Joules energy = s.default_plan.energy;
    all.push_back(
        {slowdown == 0 ? "no slower than maximum clock" : fmt::format("{:g} % slower allowed", 100 * slowdown),
         "slowdown_pct", 100 * slowdown, s.default_plan.time, s.all_max.energy - energy, s.saving_pct,
         stddev_pct(dag, drawn, frontier.points[s.default_point].plan)});
  }
  const int pipelines = job.gpus / gpus_of(dag);
  for (Advice& a : all) a.pipelines = pipelines;
  if (pipelines == 1) return all;
  const Seconds alone = model::time_without_straggler(frontier, report::t_max_of(dag, frontier));
  for (const double ratio : job.stragglers) {
    const report::StragglerChoice s = *report::summarize(dag, frontier, ratio * alone).straggler;
    all.push_back({fmt::format("waiting for one {:.3g} times slower", ratio), "straggler", ratio, s.deadline,
                   s.all_max_energy - s.energy, s.saving_pct,
                   stddev_pct(dag, drawn, frontier.points[s.point].plan, s.deadline), pipelines - 1});
  }
  return all;
}

/// Of a profile whose other clocks are modeled. A job is planned after it was measured, so each draw is planned as if
/// it were the measurement: means over the draws, and the spread of the saving.
Result<std::vector<Advice>> modeled_advice(const Pipeline& pipeline, planner::PlannerOptions planner,
                                           const JobSize& job) {
  const auto count = static_cast<double>(pipeline.drawn.size());
  const std::function<void(double)> progress = std::move(planner.progress);
  planner.progress = {};
  std::vector<Advice> all;
  std::vector<double> squares;  // of savings, in percent
  double draws = 0;
  const auto take = [&](const model::ComputationDag& dag, const model::Frontier& frontier) {
    const std::vector<Advice> advice = advice_of(dag, {}, frontier, job);
    if (all.empty()) {
      all = advice;
      for (Advice& a : all) a.time = {}, a.saved = {}, a.saving_pct = 0;
      squares.resize(all.size());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].time += advice[i].time / count;
      all[i].saved += advice[i].saved / count;
      all[i].saving_pct += advice[i].saving_pct / count;
      squares[i] += advice[i].saving_pct * advice[i].saving_pct / count;
    }
    if (progress) progress(++draws / count);
  };
  const Status planned =
      profiles::plan_each_draw(pipeline.dag, pipeline.drawn, planner, false, take, StopCheck::never());
  if (!planned) return planned.error();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].stddev_pct = std::sqrt(std::max(0.0, squares[i] - all[i].saving_pct * all[i].saving_pct));
  }
  return all;
}

Result<std::vector<Advice>> planned_advice(const Pipeline& pipeline, const planner::PlannerOptions& planner,
                                           const JobSize& job, LinkDoubt& links) {
  Result<model::Frontier> frontier = baselines::plan_best_of_all(pipeline.dag, planner, {});
  if (!frontier) return frontier.error();
  links = planner.switch_latency == Seconds(0) ? keep_with_all_links(pipeline, {}, *frontier)
                                               : doubt_about(pipeline, {}, *frontier);
  frontier = profiling::expected_frontier(pipeline.dag, pipeline.drawn, *std::move(frontier), StopCheck::never());
  if (!frontier) return frontier.error();
  return advice_of(pipeline.dag, pipeline.drawn, *frontier, job);
}

std::vector<std::string> assumptions_of(const AdviseOptions& options, const Pipeline& pipeline, int gpus,
                                        const LinkDoubt& links) {
  std::vector<std::string> all{
      fmt::format("the job runs on {} ({} a pipeline) day and night, and a year has {:g} days", count_text(gpus, "GPU"),
                  gpus_of(pipeline.dag), kDaysPerYear),
      "savings are those of the plan that the server deploys, against everything at maximum clock, each at its own "
      "time; a slower iteration means fewer iterations a day",
      pipeline.drawn.empty() ? "the profile counts as exact, so there are no error bars"
      : pipeline.modeled ? "all but one clock are modeled, not measured: no plan is made from this. Means and +-, one "
                           "standard deviation, are over the GPUs that the model allows, each planned by itself"
                         : "+-: one standard deviation, by the spread of the profile's measurements"};
  all.emplace_back(gpus == gpus_of(pipeline.dag)
                       ? "one pipeline: none waits for a slower one"
                       : "waiting for a slower pipeline: percent of the pipelines that wait, and their sums; what the "
                         "slower one saves is not counted");
  if (options.pipeline.traced) all.push_back(options.pipeline.traced->assumption);
  if (options.switch_latency_s > 0) {
    all.push_back(fmt::format("a clock takes effect {:g} s after it was requested", options.switch_latency_s));
  }
  if (std::string doubt = text_of(links); !doubt.empty()) {
    doubt.pop_back();
    all.push_back(std::move(doubt));
  }
  if (pipeline.default_blocking) {
    all.push_back(fmt::format("a waiting GPU draws {:.3g} W, a fifth of the profile's highest power: --blocking-power",
                              pipeline.dag.blocking_power.value()));
  }
  if (!options.price_per_kwh) all.emplace_back("no cost without --price");
  if (!options.carbon_g_per_kwh) all.emplace_back("no CO2 without --carbon");
  return all;
}

json::array advice_json(const AdviseOptions& options, const std::vector<Advice>& all) {
  json::array rows;
  for (const Advice& a : all) {
    const double year_kwh = kDaysPerYear * a.kwh_per_day();
    json::object row{{"situation", a.situation},   {a.kind, a.degree},           {"time_s", a.time.value()},
                     {"saved_j", a.saved.value()}, {"saving_pct", a.saving_pct}, {"kwh_per_day", a.kwh_per_day()},
                     {"kwh_per_year", year_kwh}};
    if (a.stddev_pct) row["saving_stddev_pct"] = *a.stddev_pct;
    if (options.price_per_kwh) row["cost_per_year"] = year_kwh * *options.price_per_kwh;
    if (options.carbon_g_per_kwh) row["co2_kg_per_year"] = year_kwh * *options.carbon_g_per_kwh / 1000;
    rows.push_back(std::move(row));
  }
  return rows;
}

report::TextRows advice_rows(const AdviseOptions& options, const Pipeline& pipeline, const std::vector<Advice>& all) {
  std::vector<TextColumn> columns{{"situation", "situation"},
                                  {"iteration", "time_s", seconds_cell},
                                  {pipeline.modeled ? "saving (modeled)" : "saving", "saving_pct", "{:.2f} %"},
                                  {"+-", "saving_stddev_pct", "{:.2f}"},
                                  {"kWh a day", "kwh_per_day", "{:.1f}"},
                                  {"kWh a year", "kwh_per_year", "{:.0f}"}};
  const std::string currency = options.currency.empty() ? "cost" : options.currency;
  if (options.price_per_kwh) columns.push_back({currency + " a year", "cost_per_year", "{:.0f}"});
  if (options.carbon_g_per_kwh) columns.push_back({"kg CO2 a year", "co2_kg_per_year", "{:.0f}"});
  return text_rows(advice_json(options, all), columns);
}

std::string advice_text(const Pipeline& pipeline, const report::TextRows& rows,
                        const std::vector<std::string>& assumptions) {
  std::string text = lines_of(pipeline.facts) + "\n" + report::text_of(rows, output_columns()) + "\nThis assumes:\n";
  for (const std::string& assumption : assumptions) text += fmt::format("- {}\n", assumption);
  return text;
}

json::object advice_json(const AdviseOptions& options, const Pipeline& pipeline, const std::vector<Advice>& all,
                         const std::vector<std::string>& assumptions) {
  json::object answer{{"inputs", object_of(pipeline.facts)},
                      {"advice", advice_json(options, all)},
                      {"assumptions", json::array(assumptions.begin(), assumptions.end())}};
  if (pipeline.modeled) answer["modeled"] = true;
  answer["origin"] = origin_json();
  if (!options.currency.empty()) answer["currency"] = options.currency;
  return answer;
}

/// What is wrong with the value of --currency; empty: nothing.
std::string currency_fault(const std::string& text) {
  const bool shown = terminal_text(text) == text && text.find_first_of("\n\t") == std::string::npos;
  if (!text.empty() && text.size() <= kMostCurrency && shown) return {};
  return fmt::format("{} bytes{}; allowed: 1 to {} bytes without control characters", text.size(),
                     shown ? "" : " with control characters", kMostCurrency);
}

Result<int> run_advise(const AdviseOptions& options, bool as_json) {
  const auto advice = advise_job(options);
  if (!advice) return advice.error();
  as_json ? print_json(advice->json) : print(advice->text);
  return 0;
}

}  // namespace

Result<AdviceTable> advise_job(const AdviseOptions& options) {
  const Result<Pipeline> pipeline = read_pipeline(options.pipeline);
  if (!pipeline) return pipeline.error();
  const model::ComputationDag& dag = pipeline->dag;
  const int per_pipeline = gpus_of(dag);
  const int gpus = options.gpus.value_or(per_pipeline);
  if (gpus % per_pipeline != 0) {
    return Error{ErrorCode::usage,
                 fmt::format("--gpus: {}; allowed: multiples of {}, the GPUs of a pipeline", gpus, per_pipeline)};
  }
  planner::PlannerOptions planner;
  planner.effort = effort_named(options.effort);
  planner.switch_latency = Seconds(options.switch_latency_s);
  const Seconds t_max = report::timeline_of(dag, model::all_maximum_clock(dag)).makespan;
  for (const double ratio : options.stragglers) planner.also.push_back(ratio * t_max);
  ProgressLine progress("planning", options.progress, options.effort == "low" ? "" : "--effort low is faster");
  planner.progress = progress.callback();
  const JobSize job{gpus, options.stragglers};
  LinkDoubt links;
  const Result<std::vector<Advice>> advice =
      pipeline->modeled ? modeled_advice(*pipeline, planner, job) : planned_advice(*pipeline, planner, job, links);
  if (!advice) return advice.error();
  const std::vector<std::string> assumptions = assumptions_of(options, *pipeline, gpus, links);
  const report::TextRows rows = advice_rows(options, *pipeline, *advice);
  return AdviceTable{rows, assumptions, advice_text(*pipeline, rows, assumptions),
                     advice_json(options, *pipeline, *advice, assumptions)};
}

void add_advice_options(CLI::App& app, AdviseOptions& options) {
  {
    const OptionGroup group(app, kJobGroup);
    auto* price = add_value(app, "--price P", options.price_per_kwh, "Price of a kWh", number_within(0, 1e6, ""));
    add_value(app, "--currency TEXT", options.currency, "Currency of --price, for the table",
              CLI::Validator(currency_fault, ""))
        ->needs(price);
    add_value(app, "--carbon G", options.carbon_g_per_kwh, "CO2 of a kWh, in grams", number_within(0, 1e6, "g"));
    add_switch_latency_option(app, options.switch_latency_s);
  }
  add_effort_option(app, options.effort,
                    "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap");
  add_progress_flag(app, options.progress);
}

void add_advise(CLI::App& app, Command& command) {
  auto* advise = app.add_subcommand(
      "advise",
      "Estimate what a job would save, with error bars; it changes no clock: energy, cost and CO2 for N GPUs");
  auto options = std::make_shared<AdviseOptions>();
  advise->add_option("PROFILE.csv", options->pipeline.profile,
                     "Profile: CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J)");
  add_pipeline_options(*advise, options->pipeline);
  {
    const OptionGroup group(*advise, kJobGroup);
    add_value(*advise, "--gpus N", options->gpus, "GPUs of the whole job (default: those of one pipeline)",
              whole_number_within(1, 10'000'000));
    add_value(*advise, "--model-clocks GPU", options->pipeline.modeled_gpu,
              "The profile has one clock: model the other clocks of this GPU ('perseus partition --list')");
  }
  add_advice_options(*advise, *options);
  advise->footer(
      help_footer(kFileErrors,
                  "  perseus advise gpt3.csv --schedule 1f1b -m 12 --blocking-power 83.64 --gpus 1024\n"
                  "  perseus advise gpt3.csv -m 12 --gpus 1024 --price 0.12 --currency EUR --carbon 350 --json\n"));
  set_run(*advise, command, options, run_advise);
}

}  // namespace perseus::cli
