// perseus trace: reads timelines of real jobs and reports what waiting costs, who makes the job wait, and what Perseus
// would save.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>

#include "base/terminal_text.h"
#include "command_line/command.h"
#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "plan/traced_pipeline.h"
#include "planning/model/profile.h"
#include "planning/partitioner/gpu_model.h"
#include "search/searched_jobs.h"
#include "trace/advise.h"
#include "trace/trace_answer.h"

namespace perseus::cli {
namespace {

struct TraceOptions {
  TraceInput input;
  std::string profile, gpu, out;  ///< gpu: empty: the one that the timeline names
  std::vector<int> stage_layers;
  AdviseOptions advise;
};

constexpr const char* kUsualGpu = "H100-SXM";

/// Names the modeled GPU, if none is given, and says why it is this one.
std::string choose_gpu(const std::vector<std::string>& devices, std::string& gpu) {
  const std::string said = fmt::format("the timeline names {}", fmt::join(devices, ", "));
  if (!gpu.empty()) return devices.empty() ? gpu : fmt::format("{}, as given; {}", gpu, said);
  std::set<std::string_view> known;
  for (const std::string& device : devices) {
    const auto model = partitioner::gpu_of_device(device);
    known.insert(model ? model->name : std::string_view());
  }
  const bool is_told = known.size() == 1 && !known.begin()->empty();
  gpu = is_told ? *known.begin() : kUsualGpu;
  if (is_told) return fmt::format("{}; {}", gpu, said);
  return fmt::format("{}, the default; {} (--gpu)", gpu,
                     devices.empty()      ? "the timeline names none"
                     : devices.size() > 1 ? said
                                          : said + ", which is not known");
}

Result<TraceAnswer> answer_of(const TraceOptions& options) {
  auto understood = read_trace_input(options.input);
  if (!understood) return understood.error();
  TraceAnswer answer{{*std::move(understood)}, {}, {}, {}, {}, {}};
  const std::vector<int> layers = layers_per_stage(options.stage_layers, answer.job.stages);
  if (!layers.empty() && std::ssize(layers) != answer.job.stages)
    return Error{ErrorCode::usage, fmt::format("--stage-layers: {} numbers; allowed: one, or one for each of {} stages",
                                               layers.size(), answer.job.stages)};
  answer.waiting = what_if::waiting_of(answer.job);
  if (believable(answer)) {
    answer.others = what_if::other_plans(answer.job, answer.slowdown, layers);
  } else {
    answer.slowdown.causes.clear();
  }
  return answer;
}

OutputDirectory::IsOurs files_of_a_trace() {
  return one_of({"profile.csv", "constants.json", "schedule.csv", "report.html"});
}

Status write_trace(const TraceOptions& options, const TraceAnswer& answer) {
  const auto traced = traced_files(options.advise.pipeline);
  if (!traced) return traced.error();
  std::vector<ResultFile> files;
  if (believable(answer)) {
    for (const auto& [name, text] : *traced) files.emplace_back(name, text);
  }
  const std::vector<report::ReportFact> inputs =
      with_origin({{"timeline", fmt::format("{}", fmt::join(options.input.files, ", "))}});
  files.emplace_back("report.html",
                     [&](const report::Sink& sink) { report::write_static_page(trace_page(answer, inputs), sink); });
  return write_output(options.out, files_of_a_trace(), files);
}

Result<int> run_trace(TraceOptions& options, bool as_json) {
  if (Status writable = check_output(options.out, files_of_a_trace()); !writable) return writable.error();
  auto answer = answer_of(options);
  if (!answer) return answer.error();
  PipelineOptions& pipeline = options.advise.pipeline;
  if (options.profile.empty()) answer->modeled_gpu = line_text(choose_gpu(answer->timeline.gpus, options.gpu));
  Status planned = set_traced_pipeline(*answer, options.profile, options.gpu, pipeline);
  if (!planned) return planned.error();
  if (!pipeline.blocking_power_w)
    pipeline.blocking_power_w = model::guessed_blocking_power(pipeline.traced->profile).value();
  options.advise.gpus = gpus_of(*answer);
  options.advise.stragglers = stragglers_of(*answer);
  if (believable(*answer)) {
    const auto saving = advise_job(options.advise);
    if (!saving) return saving.error();
    answer->saving = *saving;
  }
  if (!options.out.empty()) {
    answer->timeline_svg = traced_timelines(*answer, pipeline);
    if (Status written = write_trace(options, *answer); !written) return written.error();
  }
  if (as_json) {
    print_json(trace_json(*answer));
    return 0;
  }
  print(trace_text(*answer));
  if (!options.out.empty()) print("\n" + written_text(options.out, "report.html"));
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, Command& command) {
  auto* trace = app.add_subcommand(
      "trace", "Explain timelines of a real job: what waiting costs, who makes the job wait, what Perseus would save");
  auto options = std::make_shared<TraceOptions>();
  trace
      ->add_option("FILE", options->input.files,
                   "Timelines of one job: Chrome traces or Perfetto JSON, plain or gzipped; one, or one per rank")
      ->required();
  add_trace_names_options(*trace, options->input);
  add_default(*trace, "--tensor-parallel N", options->input.degrees.tensor_parallel,
              "Tensor-parallel ranks of a stage, where files say only which rank of all they are",
              whole_number_within(1, 1 << 16));
  auto* profile = add_value(*trace, "--profile PROFILE.csv", options->profile,
                            "Measured profile of this kind of GPU; its curves are scaled to the times of the timeline");
  add_value(*trace, "--gpu GPU", options->gpu,
            fmt::format("Without a profile: model this GPU, see 'perseus partition --list' (default: the one that the "
                        "timeline names, else {})",
                        kUsualGpu))
      ->excludes(profile);
  add_value(*trace, "--stage-layers N,...", options->stage_layers,
            "Layers of each stage, or one number for all: also show what moving layers one by one would help",
            whole_number_within(1, 10000))
      ->delimiter(',');
  add_value(*trace, "--out DIR", options->out,
            "Write the answers with pictures, and the job for other commands (profile.csv, constants.json), to "
            "this directory");
  add_advice_options(*trace, options->advise);
  trace->footer(help_footer(kFileErrors,
                            "  perseus trace timeline.json.gz\n"
                            "  perseus trace rank*.json --pipeline-parallel 4 --out job\n"
                            "  perseus trace timeline.json.gz --profile gpt3.csv --price 0.12\n"));
  set_run(*trace, command, options, run_trace);
}

}  // namespace perseus::cli
