#include "trace/trace_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

#include "base/count_text.h"
#include "base/median.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/report/format.h"
#include "io/report/heat_map.h"
#include "io/report/line_chart.h"
#include "io/report/stacked_bars.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;
using what_if::CauseKind;
using what_if::SlowdownCause;
using what_if::Waiting;

constexpr std::size_t kMostRankRows = 64;
constexpr std::ptrdiff_t kMostNumbers = 3;  ///< of steps
constexpr double kLeastEarly = 0.002;       ///< of a step: above, clocks of a pipeline differ

std::string share_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// "3, 7 and 2 more"
std::string numbers_text(const std::vector<int>& numbers) {
  const auto shown = std::min<std::ptrdiff_t>(std::ssize(numbers), kMostNumbers);
  return fmt::format("{}{}", fmt::join(numbers.begin(), numbers.begin() + shown, ", "),
                     shown < std::ssize(numbers) ? fmt::format(" and {} more", std::ssize(numbers) - shown) : "");
}

/// ", mostly dp 0, stage 1 in step 3", as far as it is known.
std::string mostly(const SlowdownCause& cause) {
  std::string where;
  if (cause.link) {
    const auto& [boundary, forward, pipeline] = *cause.link;
    where = fmt::format("{}->{}{}", boundary + (forward ? 0 : 1), boundary + (forward ? 1 : 0),
                        pipeline < 0 ? "" : fmt::format(" of dp {}", pipeline));
  } else if (cause.collective) {
    where = trace::name_of(*cause.collective);
  } else if (cause.stage >= 0 && (cause.kind == CauseKind::variation || cause.kind == CauseKind::pauses)) {
    where = fmt::format("dp {}, stage {}", cause.worker.pipeline, cause.stage);
  }
  if (!cause.steps.empty())
    where += fmt::format("{}in step{} {}", where.empty() ? "" : " ", cause.steps.size() == 1 ? "" : "s",
                         numbers_text(cause.steps));
  return where.empty() ? where : ", mostly " + where;
}

std::string cause_text(const SlowdownCause& cause, const what_if::TracedJob& job) {
  switch (cause.kind) {
    case CauseKind::worker:
      return fmt::format("worker dp {}, stage {}: {:.2f} times as slow as its peers{}", cause.worker.pipeline,
                         cause.stage, cause.factor, mostly(cause));
    case CauseKind::pipeline:
      return fmt::format("pipeline dp {}: all its ranks are {:.2f} times as slow as their peers{}",
                         cause.worker.pipeline, cause.factor, mostly(cause));
    case CauseKind::stage:
      return fmt::format("stage {}: {:.2f} times the usual stage{}", cause.stage, cause.factor, mostly(cause));
    case CauseKind::steps:
      return fmt::format("step{} {}: {}{:.2f} times the usual step", cause.steps.size() == 1 ? "" : "s",
                         numbers_text(cause.steps), cause.steps.size() == 1 ? "" : "up to ", cause.factor);
    case CauseKind::drift:
      return fmt::format("drift: computations of the last step take {:.2f} times those of the first", cause.factor);
    case CauseKind::long_sequences:
      return fmt::format("long sequences: microbatches of up to {:.2f} times the mean, on all ranks alike{}",
                         cause.factor, mostly(cause));
    case CauseKind::variation:
      return "computations that vary by themselves" + mostly(cause);
    case CauseKind::links:
      return "transfers slower than their median" + mostly(cause);
    case CauseKind::collectives:
      return "collectives slower than their median" + mostly(cause);
    case CauseKind::pauses:
      return "garbage collection" + mostly(cause);
    case CauseKind::gaps:
      return (job.has_transfers ? "gaps that no dependency explains: loading, launches"
                                : "gaps: transfers, loading or launches, the timeline does not say which") +
             mostly(cause);
  }
  return "";
}

std::string clock_text(const what_if::ClockOffset& clock) {
  return fmt::format("dp {}{} is {:.1f} ms {} {}", clock.pipeline,
                     clock.rank < 0 ? "" : fmt::format(", rank {}", clock.rank), 1e3 * std::abs(clock.late_s),
                     clock.late_s > 0 ? "late" : "early",
                     clock.aligned     ? "by the ends of collectives: aligned"
                     : clock.rank >= 0 ? "by the ends of collectives, or its peer is wrong: not aligned"
                                       : "by the begins of its steps, which may be loading: not aligned");
}

/// Waiting of each stage: means over pipelines.
std::vector<Waiting> per_stage(const TraceAnswer& answer) {
  std::vector<Waiting> stages(answer.job.ranks);
  for (const Waiting& w : answer.waiting) {
    Waiting& stage = stages[w.worker.rank];
    stage.worker = {-1, w.worker.rank};
    stage.computing_s += w.computing_s / answer.job.pipelines;
    stage.communicating_s += w.communicating_s / answer.job.pipelines;
    stage.waiting_s += w.waiting_s / answer.job.pipelines;
  }
  return stages;
}

std::vector<Waiting> shown_waiting(const TraceAnswer& answer) {
  return answer.waiting.size() > kMostRankRows ? per_stage(answer) : answer.waiting;
}

std::string name_of(const Waiting& w) {
  return w.worker.pipeline < 0 ? fmt::format("rank {}", w.worker.rank)
                               : fmt::format("dp {}, rank {}", w.worker.pipeline, w.worker.rank);
}

double mean_waiting(const TraceAnswer& answer) {
  double sum = 0;
  for (const Waiting& w : answer.waiting) sum += w.waiting_s;
  return sum / static_cast<double>(answer.waiting.size());
}

std::string step_picture(const TraceAnswer& answer) {
  report::ChartSeries measured{"as measured", report::look_of("perseus"), report::SeriesKind::marks, {}};
  report::ChartSeries replayed{"replayed", report::look_of("exact"), report::SeriesKind::marks, {}};
  report::ChartSeries between{"until the next step", report::look_of("envpipe"), report::SeriesKind::marks, {}};
  const auto until_next = what_if::times_until_next(answer.job);
  for (std::size_t i = 0; i < answer.job.steps.size(); ++i) {
    const what_if::TracedStep& step = answer.job.steps[i];
    if (until_next[i]) between.points.push_back({static_cast<double>(step.number), *until_next[i]});
    measured.points.push_back({static_cast<double>(step.number), step.time_s()});
    replayed.points.push_back({static_cast<double>(step.number), answer.slowdown.step_s[i]});
  }
  return report::line_chart({"Steps", "step", "time of a step [s]"},
                            {report::ChartPanel{"", {std::move(measured), std::move(replayed), std::move(between)}}});
}

std::string waiting_picture(const TraceAnswer& answer) {
  std::vector<report::BarGroup> groups;
  for (const Waiting& w : shown_waiting(answer)) {
    const std::string title = w.worker.pipeline < 0 ? "" : fmt::format("data-parallel rank {}", w.worker.pipeline);
    if (groups.empty() || groups.back().title != title) groups.push_back({title, {}});
    groups.back().bars.push_back({fmt::format("rank {}", w.worker.rank),
                                  seconds_cell(answer.slowdown.measured_s),
                                  {w.computing_s, w.communicating_s, w.waiting_s}});
  }
  return report::stacked_bars("What a step is spent on", {"computing", "communicating", "waiting"}, groups);
}

/// Per data-parallel rank and rank: the share of a step that it waits.
std::string heat_picture(const TraceAnswer& answer) {
  report::HeatMap map;
  for (int r = 0; r < answer.job.ranks; ++r) map.columns.push_back(fmt::format("rank {}", r));
  for (const Waiting& w : answer.waiting) {
    if (w.worker.rank == 0) {
      map.rows.push_back(fmt::format("dp {}", w.worker.pipeline));
      map.shares.emplace_back();
    }
    map.shares.back().push_back(w.waiting_s / answer.slowdown.measured_s);
  }
  return report::heat_map("Share of a step that a rank waits", map);
}

report::TextRows cause_rows(const TraceAnswer& answer) {
  report::TextRows rows{{"cause", "step without it", "explains"}, {}};
  for (const SlowdownCause& cause : answer.slowdown.causes)
    rows.rows.push_back({cause_text(cause, answer.job), seconds_cell(cause.without_s), share_text(cause.share)});
  return rows;
}

Table waiting_table(const TraceAnswer& answer, const std::vector<Waiting>& waiting) {
  return table_of<Waiting>(
      waiting, {{"data_rank", [](const Waiting& w) { return w.worker.pipeline; }},
                {"rank", [](const Waiting& w) { return w.worker.rank; }},
                {"-worker", [](const Waiting& w) { return name_of(w); }, "worker"},
                {"computing_s", &Waiting::computing_s, "computing", seconds_cell},
                {"communicating_s", &Waiting::communicating_s, "communicating", seconds_cell},
                {"waiting_s", &Waiting::waiting_s, "waiting", seconds_cell},
                {"-share", [&](const Waiting& w) { return w.waiting_s / answer.slowdown.measured_s; }, "share waiting",
                 share_text}});
}

Table times_table(const TraceAnswer& answer) {
  return table_of<what_if::TypeTimes>(
      answer.slowdown.types,
      {{"stage", &what_if::TypeTimes::stage, "stage"},
       {"instruction", [](const what_if::TypeTimes& t) { return name_of(t.instruction); }, "instruction"},
       {"median_s", &what_if::TypeTimes::median_s, "median", seconds_cell},
       {"spread_steps", &what_if::TypeTimes::steps, "between steps", share_text},
       {"spread_microbatches", &what_if::TypeTimes::microbatches, "between microbatches", share_text},
       {"spread_workers", &what_if::TypeTimes::workers, "between workers", share_text}});
}

Table others_table(const TraceAnswer& answer) {
  const auto against_traced = [&](const what_if::OtherPlan& other) {
    return other.pipeline_s / answer.others.front().pipeline_s - 1;
  };
  return table_of<what_if::OtherPlan>(answer.others,
                                      {{"name", &what_if::OtherPlan::name, "pipeline"},
                                       {"pipeline_s", &what_if::OtherPlan::pipeline_s, "time", seconds_cell},
                                       {"-against", against_traced, "against traced", "{:+.1f} %", 0.01}});
}

}  // namespace

int gpus_of(const UnderstoodTrace& trace) { return trace.job.pipelines * trace.job.ranks * trace.job.tensor_parallel; }

std::vector<report::ReportFact> trace_facts(const TraceAnswer& answer) {
  const what_if::TracedJob& job = answer.job;
  const what_if::Slowdown& s = answer.slowdown;
  std::vector<report::ReportFact> facts;
  facts.push_back(
      {"read", fmt::format("{} of {}, {} of other kinds; names: {}", count_text(answer.timeline.events, "event"),
                           count_text(answer.timeline.files.size(), "file"), answer.timeline.other_events,
                           answer.timeline.names)});
  facts.push_back(
      {"job", fmt::format("{} of {} and {}, {}", count_text(job.pipelines, "pipeline"), count_text(job.ranks, "rank"),
                          count_text(job.stages, "stage"), count_text(job.microbatches, "microbatch"))});
  facts.push_back({"GPUs", fmt::format("{}, {}", gpus_of(answer),
                                       job.tensor_parallel == 1
                                           ? "one a rank (--tensor-parallel N: one rank of each N is in the timeline)"
                                           : fmt::format("tensor parallel {}", job.tensor_parallel))});
  long others = 0;
  for (std::size_t o = 1; o < job.orders.size(); ++o) others += job.orders[o].pipelines;
  std::string schedule = job.schedule().name;
  if (others > 0)
    schedule += fmt::format("; {} of {} pipelines ran in another order", others, others + job.orders.front().pipelines);
  const bool may_be_interleaved = job.schedule().name == what_if::kGeneric || job.schedule().name == "gpipe";
  if (job.counts_microbatches && job.ranks > 1 && may_be_interleaved)
    schedule += "; the timeline numbers no microbatches: if ranks have several stages, name their chunks (--names)";
  if (job.guesses_stages)
    schedule += job.counts_microbatches
                    ? "; the timeline names no stages of a rank: the only one whose order fits"
                    : "; the timeline names no stages of a rank: each microbatch passes them in their order";
  facts.push_back({"schedule", schedule});
  if (!answer.modeled_gpu.empty()) facts.push_back({"modeled GPU", answer.modeled_gpu});
  facts.push_back(
      {"steps",
       fmt::format(
           "{} complete, {} incomplete and left out{}{}{}", job.steps.size(), job.incomplete_steps,
           !job.guesses_steps        ? ""
           : job.counts_microbatches ? "; the timeline numbers neither steps nor microbatches: all count as one step"
                                     : "; the timeline numbers none: a microbatch that comes again begins one",
           answer.timeline.thinned > 1 ? fmt::format(", one of {} read", answer.timeline.thinned) : std::string(),
           answer.timeline.read_s > 0 ? fmt::format(", the first {} read", seconds_cell(answer.timeline.read_s))
                                      : std::string())});
  for (const std::string& fault : job.faults) facts.push_back({"left out", fault});
  for (const what_if::ClockOffset& clock : job.clocks) facts.push_back({"clock", clock_text(clock)});
  const what_if::ReplayErrors& errors = answer.errors;
  if (believable(answer) && errors.early >= kLeastEarly)
    facts.push_back(
        {"clock", fmt::format("dp {}, rank {} computes up to {:.1f} ms ({:.1f} % of a step) before its input from rank "
                              "{} was computed: the one is early, or the other late; not aligned",
                              errors.early_rank.pipeline, errors.early_rank.rank, 1e3 * errors.early_s,
                              100 * errors.early, errors.before_early.rank)});
  if (answer.timeline.unpaired_events > 0)
    facts.push_back({"alone", fmt::format("{} ends without a begin or begins without an end: their steps lack them",
                                          answer.timeline.unpaired_events)});
  facts.push_back({"replay", fmt::format("median error of a step {:.3f} %{}, {:.3f} % by computing alone",
                                         100 * answer.errors.with_links, job.has_transfers ? " with links" : "",
                                         100 * answer.errors.computing_alone)});
  facts.push_back({"step", fmt::format("{} as measured, {} replayed, {} ideal", seconds_cell(s.measured_s),
                                       seconds_cell(s.as_run_s), seconds_cell(s.ideal_s))});
  if (s.between_s)
    facts.push_back(
        {"between steps", fmt::format("{} from the end of a step to the next, {} of a step", seconds_cell(*s.between_s),
                                      share_text(*s.between_s / s.measured_s))});
  if (!s.links.empty()) {
    std::string links;
    bool sized = false;
    for (const what_if::TransferTimes& l : s.links) {
      links +=
          fmt::format("{}{}->{} {} (at most {}{})", links.empty() ? "" : ", ", l.boundary + (l.forward ? 0 : 1),
                      l.boundary + (l.forward ? 1 : 0), seconds_cell(l.median_s), seconds_cell(l.longest_s),
                      l.bytes_per_s ? fmt::format("; {} + {:.3g} GB/s", seconds_cell(l.latency_s), *l.bytes_per_s / 1e9)
                                    : std::string());
      sized |= l.bytes_per_s.has_value();
    }
    if (!sized) links += "; latency alone: no unequal sizes of messages are in the timeline";
    facts.push_back({"links", links});
  } else if (job.ranks > 1) {
    facts.push_back({"links", "none in the timeline: what transfers cost cannot be told from loading and launches"});
  }
  const double waiting = mean_waiting(answer);
  facts.push_back({"waiting", fmt::format("{} of a step, {}, in the mean of all ranks", seconds_cell(waiting),
                                          share_text(waiting / s.measured_s))});
  if (!believable(answer)) {
    facts.push_back({"doubt", doubt_about(answer)});
    return facts;
  }
  facts.push_back({"who", s.causes.empty() ? fmt::format("nobody: an ideal step takes {}", seconds_cell(s.ideal_s))
                                           : cause_text(s.causes.front(), job)});
  return facts;
}

std::string trace_text(const TraceAnswer& answer) {
  std::string text = lines_of(trace_facts(answer));
  if (!answer.slowdown.causes.empty())
    text += "\nWho makes the job wait:\n" + report::text_of(cause_rows(answer), output_columns());
  text += "\nWhat a step is spent on:\n" +
          report::text_of(waiting_table(answer, shown_waiting(answer)).text(), output_columns());
  text += "\nComputations:\n" + report::text_of(times_table(answer).text(), output_columns(), 2);
  if (believable(answer)) text += "\nWhat Perseus would save:\n" + answer.saving.text;
  if (answer.others.size() < 2) return text;
  return text + "\nWhat else would help (computations in their median times, without transfers):\n" +
         report::text_of(others_table(answer).text(), output_columns());
}

json::object trace_json(const TraceAnswer& answer) {
  const what_if::TracedJob& job = answer.job;
  const what_if::Slowdown& s = answer.slowdown;
  json::array causes, steps, links, clocks;
  for (const SlowdownCause& c : s.causes) {
    json::object cause{{"kind", what_if::name_of(c.kind)}, {"without_s", c.without_s}, {"share", c.share}};
    if (c.worker.pipeline >= 0) cause["data_rank"] = c.worker.pipeline;
    if (c.stage >= 0) cause["stage"] = c.stage;
    if (c.link) {
      cause["boundary"] = c.link->boundary, cause["direction"] = c.link->forward ? "forward" : "backward";
      if (c.link->pipeline >= 0) cause["data_rank"] = c.link->pipeline;
    }
    if (c.collective) cause["collective"] = trace::name_of(*c.collective);
    if (!c.steps.empty()) cause["steps"] = json::array(c.steps.begin(), c.steps.end());
    if (c.factor != 1) cause["factor"] = c.factor;
    causes.push_back(std::move(cause));
  }
  for (std::size_t i = 0; i < job.steps.size(); ++i)
    steps.push_back(
        {{"step", job.steps[i].number}, {"measured_s", job.steps[i].time_s()}, {"replayed_s", s.step_s[i]}});
  for (const what_if::TransferTimes& l : s.links)
    links.push_back({{"boundary", l.boundary},
                     {"direction", l.forward ? "forward" : "backward"},
                     {"median_s", l.median_s},
                     {"longest_s", l.longest_s},
                     {"latency_s", l.latency_s},
                     {"bytes_per_s", l.bytes_per_s ? json::value(*l.bytes_per_s) : json::value(nullptr)}});
  for (const what_if::ClockOffset& clock : job.clocks)
    clocks.push_back({{"data_rank", clock.pipeline},
                      {"rank", clock.rank < 0 ? json::value(nullptr) : json::value(clock.rank)},
                      {"late_s", clock.late_s},
                      {"aligned", clock.aligned}});
  return {{"events", answer.timeline.events},
          {"other_events", answer.timeline.other_events},
          {"names", answer.timeline.names},
          {"pipelines", job.pipelines},
          {"ranks", job.ranks},
          {"stages", job.stages},
          {"tensor_parallel", job.tensor_parallel},
          {"microbatches", job.microbatches},
          {"schedule", job.schedule().name},
          {"orders", job.orders.size()},
          {"incomplete_steps", job.incomplete_steps},
          {"guesses_steps", job.guesses_steps},
          {"guesses_stages", job.guesses_stages},
          {"left_out", json::array(job.faults.begin(), job.faults.end())},
          {"clocks", std::move(clocks)},
          {"unpaired_events", answer.timeline.unpaired_events},
          {"replay_error",
           {{"with_links", answer.errors.with_links},
            {"computing_alone", answer.errors.computing_alone},
            {"early", answer.errors.early}}},
          {"gpus", gpus_of(answer)},
          {"modeled_gpu", answer.modeled_gpu.empty() ? json::value(nullptr) : json::value(answer.modeled_gpu)},
          {"measured_s", s.measured_s},
          {"between_steps_s", s.between_s ? json::value(*s.between_s) : json::value(nullptr)},
          {"as_run_s", s.as_run_s},
          {"ideal_s", s.ideal_s},
          {"causes", std::move(causes)},
          {"waiting", waiting_table(answer, answer.waiting).json()},
          {"times", times_table(answer).json()},
          {"links", std::move(links)},
          {"others", others_table(answer).json()},
          {"doubt", believable(answer) ? json::value(nullptr) : json::value(doubt_about(answer))},
          {"saving", believable(answer) ? json::value(answer.saving.json) : json::value(nullptr)},
          {"steps", std::move(steps)}};
}

report::StaticPage trace_page(const TraceAnswer& answer, const std::vector<report::ReportFact>& inputs) {
  const what_if::Slowdown& s = answer.slowdown;
  const double waiting = mean_waiting(answer) / s.measured_s;
  report::StaticPage page{"Perseus trace",
                          s.causes.empty() ? fmt::format("ranks wait {} of a step", share_text(waiting))
                                           : fmt::format("ranks wait {} of a step; {}", share_text(waiting),
                                                         cause_text(s.causes.front(), answer.job)),
                          inputs,
                          {}};
  page.sections.push_back({.heading = "The job", .list = trace_facts(answer)});
  page.sections.push_back(
      {.heading = "Who",
       .table = cause_rows(answer),
       .note = "A cause explains the part of (replayed - ideal) that its removal saves. The ideal step has "
               "the mean time of all "
               "computations of a kind and the median of all transfers and collectives. Shares overlap."});
  page.sections.push_back(
      {.heading = "What waiting costs", .drawings = {heat_picture(answer), waiting_picture(answer)}});
  page.sections.push_back(
      {.heading = "Timeline",
       .drawings = {answer.timeline_svg},
       .note = "The slowest pipeline of the median step, as measured and as replayed with its measured "
               "computations and transfers. Colors are the power of each computation at the highest clock, of "
               "the profile or the modeled GPU."});
  page.sections.push_back({.heading = "Steps", .drawings = {step_picture(answer)}});
  page.sections.push_back({.heading = "Computations",
                           .table = times_table(answer).text(),
                           .note = "Spreads are standard deviations of medians, as shares of the median."});
  if (!answer.others.empty())
    page.sections.push_back(
        {.heading = "What else would help",
         .table = others_table(answer).text(),
         .note = "The median times of computations in the DAG of each, without transfers. Schedules with two stages "
                 "per rank halve each stage; those that split backward halve it."});
  if (!believable(answer)) return page;
  std::vector<report::ReportFact> assumptions;
  for (const std::string& assumption : answer.saving.assumptions) assumptions.push_back({"assumed", assumption});
  page.sections.push_back(
      {.heading = "What Perseus would save", .list = std::move(assumptions), .table = answer.saving.rows});
  return page;
}

}  // namespace perseus::cli
