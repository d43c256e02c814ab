// perseus trace: reads timelines of real jobs and reports what waiting costs, who makes the job wait, and what Perseus
// would save.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "command.h"
#include "exit_codes.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/file.h"
#include "io/trace/read_trace.h"
#include "origin.h"
#include "terminal_size.h"
#include "trace_answer.h"

namespace perseus::cli {
namespace {

struct TraceOptions {
  std::vector<std::string> files;
  std::string names, page;
  what_if::JobDegrees degrees;
};

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

Result<TraceAnswer> answer_of(const TraceOptions& options) {
  const auto names = names_of(options.names);
  if (!names) return names.error();
  auto timeline = trace::read_trace(options.files, *names);
  if (!timeline) return timeline.error();
  auto job = what_if::understand(*timeline, options.degrees);
  if (!job) return Error{job.error().code, fmt::format("{}: {}", options.files.front(), job.error().message)};
  timeline->spans.clear();
  TraceAnswer answer{*std::move(timeline), *std::move(job), {}, {}, {}};
  answer.errors = what_if::replay_errors(answer.job);
  answer.slowdown = what_if::explain(answer.job);
  answer.waiting = what_if::waiting_of(answer.job);
  return answer;
}

std::string text_of(const TraceAnswer& answer) {
  std::string text;
  for (const report::ReportFact& fact : trace_facts(answer)) text += fmt::format("{}: {}\n", fact.name, fact.value);
  if (!answer.slowdown.causes.empty())
    text += "\nWho makes the job wait:\n" + report::text_of(cause_rows(answer), output_columns());
  text += "\nWhat a step is spent on:\n" + report::text_of(waiting_rows(answer), output_columns());
  return text + "\nComputations:\n" + report::text_of(time_rows(answer), output_columns(), 2);
}

Status write_page(const TraceOptions& options, const TraceAnswer& answer) {
  std::vector<report::ReportFact> inputs{{"timeline", fmt::format("{}", fmt::join(options.files, ", "))}};
  std::ranges::move(origin_facts(), std::back_inserter(inputs));
  std::string html;
  report::write_static_page(trace_page(answer, inputs), [&](std::string_view piece) { html += piece; });
  return formats::write_file(options.page, html);
}

Result<int> run_trace(const TraceOptions& options, bool as_json) {
  const auto answer = answer_of(options);
  if (!answer) return answer.error();
  if (!options.page.empty()) {
    if (Status written = write_page(options, *answer); !written) return written.error();
  }
  print(as_json ? formats::json_text(trace_json(*answer)) + "\n" : text_of(*answer));
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, Command& command) {
  auto* trace = app.add_subcommand(
      "trace", "Explain timelines of a real job: what waiting costs, who makes the job wait, what Perseus would save");
  auto options = std::make_shared<TraceOptions>();
  trace
      ->add_option("FILE", options->files,
                   "Timelines of one job: Chrome traces or Perfetto JSON, plain or gzipped; one, or one per rank")
      ->required();
  trace
      ->add_option("--names", options->names,
                   "Which events are which computations: shared, torch, megatron, or a mapping in TOML, see "
                   "docs/traces.md (default: the one of the three that knows the first event)")
      ->type_name("NAME|FILE");
  trace
      ->add_option("--pipeline-parallel", options->degrees.pipeline_parallel,
                   "Ranks of a pipeline, where files say only which rank of all they are (default: all ranks)")
      ->check(whole_number_within(1, 1 << 16))
      ->type_name("N");
  trace
      ->add_option("--tensor-parallel", options->degrees.tensor_parallel,
                   "Tensor-parallel ranks of a stage, where files say only which rank of all they are")
      ->capture_default_str()
      ->check(whole_number_within(1, 1 << 16))
      ->type_name("N");
  trace->add_option("--page-out", options->page, "Write the answers with pictures as one HTML page")
      ->type_name("FILE.html");
  add_json_flag(*trace, command);
  trace->footer(help_footer(kFileErrors,
                            "  perseus trace timeline.json.gz\n"
                            "  perseus trace rank*.json --pipeline-parallel 4 --page-out trace.html\n"));
  trace->callback(
      [options, &command] { command.run = [options, &command] { return run_trace(*options, command.json); }; });
}

}  // namespace perseus::cli
