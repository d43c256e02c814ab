#include "plan/trace_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "command_line/command.h"
#include "io/formats/file.h"
#include "io/trace/read_trace.h"

namespace perseus::cli {
namespace {

constexpr double kMostReplayError = 0.1, kMostEarly = 0.02, kMostLonger = 0.05;

Result<std::optional<trace::TraceNames>> names_of(const std::string& given) {
  if (given.empty()) return std::optional<trace::TraceNames>();
  for (const trace::TraceNames& ready : trace::ready_names()) {
    if (ready.name == given) return std::optional(ready);
  }
  const auto text = formats::read_file(given);
  if (!text) return text.error();
  auto names = trace::parse_trace_names(*text, given);
  if (!names) return names.error();
  return std::optional(*std::move(names));
}

}  // namespace

bool believable(const UnderstoodTrace& understood) {
  return understood.errors.with_links <= kMostReplayError && understood.errors.early <= kMostEarly &&
         understood.slowdown.as_run_s <= (1 + kMostLonger) * understood.slowdown.measured_s;
}

std::string doubt_about(const UnderstoodTrace& understood) {
  const what_if::ReplayErrors& errors = understood.errors;
  const bool all_in_one = understood.job.all_in_one && understood.job.ranks > 1;
  const std::string degree =
      all_in_one ? fmt::format("; without --pipeline-parallel, all {} ranks are one pipeline: is it one, ",
                               understood.job.ranks)
                 : ": ";
  if (errors.early > kMostEarly)
    return fmt::format(
        "dp {}, rank {} computes up to {:.1f} ms ({:.1f} % of a step) before its input from rank {} was computed{}"
        "have both ranks one clock, and are waits within computations named (receive)?",
        errors.early_rank.pipeline, errors.early_rank.rank, 1e3 * errors.early_s, 100 * errors.early,
        errors.before_early.rank, degree);
  if (errors.with_links <= kMostReplayError)
    return fmt::format("steps take {:.4g} s in their mean and {:.4g} s replayed{}does each step have one order?",
                       understood.slowdown.measured_s, understood.slowdown.as_run_s,
                       all_in_one ? degree + "and " : degree);
  return fmt::format(
      "the replay is {:.1f} % from the timeline, too far for an answer{}is each file of another rank, have they one "
      "clock{}?",
      100 * errors.with_links, all_in_one ? degree : degree + "is --pipeline-parallel right, ",
      understood.job.has_transfers ? "" : ", and are transfers, which the timeline lacks, short");
}

Status check_believable(const UnderstoodTrace& understood, const TraceInput& input) {
  if (believable(understood)) return Ok{};
  return Error{ErrorCode::invalid_input, fmt::format("{}: {}", input.files.front(), doubt_about(understood))};
}

std::string origin_of(const UnderstoodTrace& understood, const TraceInput& input) {
  return fmt::format("{}, {} steps, replayed within {:.3f} %",
                     std::filesystem::path(input.files.front()).filename().string(), understood.job.steps.size(),
                     100 * understood.errors.with_links);
}

void add_trace_names_options(CLI::App& app, TraceInput& input) {
  add_value(app, "--names NAME|FILE", input.names,
            "Which events are which computations: shared, torch, megatron, or a mapping in TOML, see "
            "docs/traces.md (default: the one of the three that knows the first event)");
  add_value(app, "--pipeline-parallel N", input.degrees.pipeline_parallel,
            "Ranks of a pipeline, where files say only which rank of all they are (default: all ranks)",
            whole_number_within(1, 1 << 16));
}

CLI::Option* add_trace_option(CLI::App& app, TraceInput& input) {
  auto* trace = add_value(app, "--trace FILE...", input.files,
                          "Timelines of the job, as 'perseus trace' reads them: the measured profile is scaled to "
                          "their times; replaces schedule, microbatches and transfers");
  add_trace_names_options(app, input);
  for (const char* const option : {"--names", "--pipeline-parallel"}) app.get_option(option)->needs(trace);
  return trace;
}

Result<UnderstoodTrace> read_trace_input(const TraceInput& input) {
  const auto names = names_of(input.names);
  if (!names) return names.error();
  std::set<std::filesystem::path> seen;
  for (const std::string& file : input.files) {
    std::error_code ignored;
    if (!seen.insert(std::filesystem::weakly_canonical(file, ignored)).second)
      return Error{ErrorCode::usage, fmt::format("{}: given twice; allowed: one timeline per rank", file)};
  }
  auto timeline = trace::read_trace(input.files, *names);
  if (!timeline) return timeline.error();
  auto job = what_if::understand(*timeline, input.degrees);
  if (!job) return Error{job.error().code, fmt::format("{}: {}", input.files.front(), job.error().message)};
  timeline->spans = {};
  UnderstoodTrace understood{*std::move(timeline), *std::move(job), {}, {}};
  understood.errors = what_if::replay_errors(understood.job);
  understood.slowdown = what_if::explain(understood.job);
  return understood;
}

}  // namespace perseus::cli
