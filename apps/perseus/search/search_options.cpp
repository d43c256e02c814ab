#include "search/search_options.h"

#include "command_line/command.h"

namespace perseus::cli {
namespace {

void add_configuration_options(CLI::App& app, SearchOptions& options) {
  add_value(app, "--ranks N", options.ranks,
            "Ranks of the pipeline, for each schedule. A rank with several chunks divides one stage of the profile "
            "among them, or takes several stages if the profile has as many (default: with several schedules, one "
            "rank per stage; with one schedule, the profile's stages are the chunks)",
            whole_number_within(1, 65536));
  add_value(app, "--reference-schedule NAME", options.reference_schedule,
            "Schedule in use today, to which savings and 'no slower' refer (default: the first of --schedule, "
            "or 1f1b for best)")
      ->transform(schedule_names());
  add_default(app, "--recompute WHICH", options.recompute,
              "Stages that recompute activations in backward: as-measured, none, all, or best, which tries as-"
              "measured and only those whose activations do not fit (--memory-limit); without a limit, all but stages "
              "that hold one microbatch at a time",
              CLI::IsMember({"as-measured", "none", "all", "best"}).description(""));
  add_value(app, "--measured-with WHAT", options.measured_with,
            "Whether the profile's backward includes a recomputation of the forward: recomputation or "
            "no-recomputation",
            CLI::IsMember({"recomputation", "no-recomputation"}).description(""));
}

void add_memory_options(CLI::App& app, SearchOptions& options) {
  auto* memory = add_value(app, "--memory FILE.csv", options.memory,
                           "Memory of each stage: CSV with the columns "
                           "stage,weights_gib,activations_gib,checkpoint_gib,recompute_gib");
  add_value(app, "--memory-limit GIB", options.memory_limit_gib,
            "Memory of one accelerator, in GiB; configurations that need more are left out",
            number_within(1e-3, 1e6, "GiB"));
  auto* model = add_value(app, "--memory-model NAME", options.memory_model,
                          "Compute the memory for a model of 'perseus partition --list', such as "
                          "gpt3-1b; replaces --memory. --microbatch-size, --sequence-length, --precision and "
                          "--tensor-parallel must be those of the profiled run; without them, those of that list "
                          "are assumed. For a profile measured with recomputation, also --measured-with")
                    ->excludes(memory);
  add_value(app, "--memory-layers N,...", options.memory_layers,
            "Transformer layers of each stage (default: --stage-layers, or equally many)",
            whole_number_within(1, 10000))
      ->delimiter(',')
      ->needs(model);
  add_value(app, "--microbatch-size N", options.microbatch_size,
            "Sequences in a microbatch, for --memory-model (default: that of the list)",
            whole_number_within(1, 1'000'000))
      ->needs(model);
  add_value(app, "--sequence-length N", options.sequence_length,
            "Tokens in a sequence, for --memory-model (default: that of the list)", whole_number_within(1, 10'000'000))
      ->needs(model);
  add_value(app, "--tensor-parallel N", options.tensor_parallel,
            "GPUs that share each layer, for --memory-model (default: that of the list) and --trace (default: those "
            "that the timeline shows)",
            whole_number_within(1, 1024));
  add_value(app, "--precision NAME", options.precision,
            "Precision for --memory-model: bf16 (2 bytes for each activation) or tf32 (4 bytes) "
            "(default: that of the list)",
            CLI::IsMember({"bf16", "tf32"}).description(""))
      ->needs(model);
}

void add_variant_options(CLI::App& app, SearchOptions& options) {
  add_value(app, "--stage-layers N,...", options.stage_layers,
            "Layers of each measured stage, or one number for all (the last stage's remaining time is the head); "
            "also tries other partitions, for the least energy at the time of the default plan",
            whole_number_within(1, 10000))
      ->delimiter(',');
  add_value(app, "--microbatch-profile COUNT=FILE.csv", options.microbatch_profiles,
            "Profile of the same stages measured with another microbatch size, and the number of microbatches "
            "that make the same global batch; may be repeated");
}

}  // namespace

void add_search_options(CLI::App& app, SearchOptions& options) {
  const OptionGroup group(app, "Several configurations");
  add_configuration_options(app, options);
  add_memory_options(app, options);
  add_variant_options(app, options);
}

bool is_search(const PipelineOptions& pipeline, const SearchOptions& options) {
  return options.ranks || pipeline.schedule == kBestSchedule || pipeline.schedule.find(',') != std::string::npos ||
         options.recompute != "as-measured" || !options.memory.empty() || !options.memory_model.empty() ||
         options.memory_limit_gib || !options.stage_layers.empty() || !options.reference_schedule.empty() ||
         !options.microbatch_profiles.empty();
}

}  // namespace perseus::cli
