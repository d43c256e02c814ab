// perseus partition: cuts a model's layers into pipeline stages.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line/command.h"
#include "command_line/origin.h"
#include "command_line/progress.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/formats/file.h"
#include "io/formats/layers_csv.h"
#include "io/formats/profile_csv.h"
#include "io/report/format.h"
#include "io/report/stacked_bars.h"
#include "io/report/static_page.h"
#include "plan/pipeline.h"
#include "planning/model/profile.h"
#include "planning/partitioner/balance.h"
#include "planning/partitioner/gpu_model.h"
#include "planning/partitioner/least_energy.h"
#include "planning/partitioner/megatron_layout.h"
#include "planning/partitioner/model_zoo.h"
#include "planning/partitioner/stage_profile.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

// The page of `perseus partition --page-out`: the stages as bars, the saving, where the result comes from.
// Input:   layers and a partition of them; with --objective energy, its energy.
// Output:  a page for write_static_page().

struct PartitionResult {
  const std::string& title;
  const std::vector<model::Layer>& layers;
  const partitioner::Partition& partition;
  const std::optional<partitioner::LeastEnergy>& energy;
};

double saving_pct(const partitioner::LeastEnergy& energy) { return 100 * (1 - energy.energy / energy.balanced_energy); }

std::string headline(const PartitionResult& result, double imbalance) {
  std::string stages = fmt::format("{} stages, longest over shortest {:.3f}", result.partition.num_stages(), imbalance);
  if (!result.energy) return stages;
  if (result.energy->partition == result.energy->balanced)
    return stages + "; the balanced partition needs least energy";
  return fmt::format("{}; needs {:.2f} % less energy than the balanced partition", stages, saving_pct(*result.energy));
}

std::string stage_picture(const std::vector<Seconds>& stages, Seconds longest) {
  report::BarGroup group;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    group.bars.push_back(
        {fmt::format("stage {}", s), report::text_of(stages[s]), {stages[s].value(), (longest - stages[s]).value()}});
  }
  return report::stacked_bars("Forward pass of a microbatch by stage", {"forward", "waits for the longest stage"},
                              {group});
}

report::TextRows energy_rows(const partitioner::LeastEnergy& energy) {
  report::TextRows table{{"partition", "boundaries", "energy per iteration", "within", "fastest iteration"}, {}};
  table.rows.push_back({"least energy", text_of(energy.partition), report::text_of(energy.energy),
                        report::text_of(energy.deadline), report::text_of(energy.fastest)});
  table.rows.push_back({"balanced", text_of(energy.balanced), report::text_of(energy.balanced_energy),
                        report::text_of(std::max(energy.deadline, energy.balanced_fastest)),
                        report::text_of(energy.balanced_fastest)});
  return table;
}

/// A line per stage.
Table stages_of(const PartitionResult& result) {
  const partitioner::Partition& partition = result.partition;
  const std::vector<Seconds> stages = partitioner::stage_latencies(model::forward_latencies(result.layers), partition);
  const Seconds longest = std::ranges::max(stages);
  return table_of<int>(
      indices_of(stages),
      {{"stage", [](int s) { return s; }, "stage"},
       {"layers", [&](int s) { return partition.layers_of(s); }, "layers"},
       {"first_layer", [&](int s) { return result.layers[partition.boundaries[s]].name; }, "first"},
       {"last_layer", [&](int s) { return result.layers[partition.boundaries[s + 1] - 1].name; }, "last"},
       {"forward_s", [&](int s) { return stages[s]; }, "forward", seconds_cell},
       {"-share_pct", [&](int s) { return 100 * (stages[s] / longest); }, "of longest", report::percent}});
}

report::StaticPage partition_page(const PartitionResult& result) {
  const std::vector<Seconds> latencies = model::forward_latencies(result.layers);
  const std::vector<Seconds> stages = partitioner::stage_latencies(latencies, result.partition);
  const Seconds longest = std::ranges::max(stages);
  report::StaticPage page{"Perseus partition",
                          headline(result, partitioner::imbalance_ratio(latencies, result.partition)),
                          with_origin({{"model", result.title}, {"boundaries", text_of(result.partition)}}),
                          {}};
  page.sections.push_back(
      {.heading = "Stages",
       .drawings = {stage_picture(stages, longest)},
       .table = stages_of(result).text(),
       .note = "At the highest clock. A shorter stage waits for the longest one, or runs at a lower clock."});
  if (result.energy) {
    page.sections.push_back(
        {.heading = "Energy",
         .table = energy_rows(*result.energy),
         .note =
             fmt::format("A lower bound at best clocks. {} partitions were planned{}", result.energy->planned,
                         result.energy->all_tried ? ": all that are fast enough." : "; another one may need less.")});
  }
  return page;
}

struct PartitionOptions {
  std::string layers;
  std::string model;
  std::string gpu;
  int stages = 0;
  std::string objective = "imbalance";
  partitioner::EnergyGoal goal;
  std::optional<double> deadline_s;
  std::optional<double> blocking_power_w;
  std::optional<int> microbatch_size, sequence_length, tensor_parallel, expert_parallel;
  std::string precision;
  bool recompute = false;
  bool without_embedding = false;
  bool list = false;
  std::string profile_out;
  std::string layers_out;
  std::string page_out;
  std::optional<bool> progress;
};

/// The model to partition, and its name.
struct Model {
  std::vector<model::Layer> layers;
  std::string title;
  std::optional<partitioner::GpuModel> gpu;
};

bool has_energies(const std::vector<model::Layer>& layers) {
  const model::LayerCost& cost = layers.front().costs.front();
  return cost.clock > Megahertz(0) && cost.forward_energy > Joules(0);
}

Result<Model> model_from_zoo(const PartitionOptions& options) {
  const auto entry = partitioner::zoo_entry(options.model);
  if (!entry) return entry.error();
  if (options.gpu.empty()) return Error{ErrorCode::usage, "--model needs a --gpu; see --list"};
  const auto gpu = partitioner::gpu_named(options.gpu);
  if (!gpu) return gpu.error();
  partitioner::Workload workload = entry->workload;
  if (options.microbatch_size) workload.microbatch_size = *options.microbatch_size;
  if (options.sequence_length) workload.sequence_length = *options.sequence_length;
  if (options.tensor_parallel) workload.tensor_parallel = *options.tensor_parallel;
  if (options.expert_parallel) workload.expert_parallel = *options.expert_parallel;
  if (!options.precision.empty())
    workload.precision = options.precision == "tf32" ? partitioner::Precision::tf32 : partitioner::Precision::bf16;
  workload.recompute = options.recompute;
  workload.embedding = !options.without_embedding;
  const auto work = partitioner::zoo_layers(options.model, workload);
  if (!work) return work.error();
  return Model{partitioner::layers_on(*work, *gpu, workload.precision),
               fmt::format("{} on {} (roofline estimate; microbatches of {} x {}, tensor parallel {}, {})",
                           entry->description, gpu->name, workload.microbatch_size, workload.sequence_length,
                           workload.tensor_parallel, partitioner::precision_name(workload.precision)),
               *gpu};
}

Result<Model> model_of(const PartitionOptions& options) {
  if (options.layers.empty() == options.model.empty()) {
    return Error{ErrorCode::usage, "give either LAYERS.csv or --model and --gpu"};
  }
  if (!options.model.empty()) return model_from_zoo(options);
  auto layers = formats::read_layers_csv(options.layers);
  if (!layers) return layers.error();
  return Model{*std::move(layers), options.layers, std::nullopt};
}

struct Answer {
  partitioner::Partition partition;
  std::optional<partitioner::LeastEnergy> energy;
};

Result<Answer> cut(const Model& model, const PartitionOptions& options) {
  if (options.objective != "energy") {
    const partitioner::Balance balance =
        options.objective == "imbalance" ? partitioner::Balance::imbalance : partitioner::Balance::longest_stage;
    const auto partition = partitioner::balance_layers(model::forward_latencies(model.layers), options.stages, balance);
    if (!partition) return partition.error();
    return Answer{*partition, std::nullopt};
  }
  partitioner::EnergyGoal goal = options.goal;
  if (options.deadline_s) goal.deadline = Seconds(*options.deadline_s);
  if (options.blocking_power_w) {
    goal.blocking_power = Watts(*options.blocking_power_w);
  } else if (model.gpu) {
    goal.blocking_power = model.gpu->blocking_power;
  } else if (has_energies(model.layers)) {
    const partitioner::Partition whole{{0, static_cast<int>(model.layers.size())}};
    const auto profile = partitioner::profile_of(model.layers, whole);
    if (!profile) return profile.error();
    goal.blocking_power = model::guessed_blocking_power(*profile);
    note_assumed_blocking(goal.blocking_power);
  }
  ProgressLine progress("planning partitions", options.progress, "a smaller --max-planned is faster");
  goal.progress = progress.callback();
  const auto best = partitioner::least_energy(model.layers, options.stages, goal);
  if (!best) return best.error();
  return Answer{best->partition, *best};
}

std::string energy_text(const partitioner::LeastEnergy& energy) {
  const std::string text = fmt::format(
      "energy:     {} per iteration within {} at best clocks (this partition's fastest: {}); {}\n",
      report::text_of(energy.energy), report::text_of(energy.deadline), report::text_of(energy.fastest),
      fmt::format(
          fmt::runtime(energy.all_tried ? "the least of all {} partitions that are fast enough"
                                        : "the least of {} planned partitions, not proven to be the least of all"),
          energy.planned));
  if (energy.partition == energy.balanced) return text + "            it is also the one with the least imbalance\n";
  const Seconds later = std::max(energy.deadline, energy.balanced_fastest);
  return text +
         fmt::format("            the least imbalance, {}, needs {} within {} ({:+.2f} % energy, {:+.2f} % time)\n",
                     text_of(energy.balanced), report::text_of(energy.balanced_energy), report::text_of(later),
                     100 * (energy.balanced_energy / energy.energy - 1), 100 * (later / energy.deadline - 1));
}

std::string as_text(const Model& model, const Answer& answer) {
  const partitioner::Partition& partition = answer.partition;
  const auto latencies = model::forward_latencies(model.layers);
  const report::TextRows stages = stages_of({model.title, model.layers, partition, answer.energy}).text();
  std::string text = fmt::format("{}\n\n{}\n", model.title, report::text_of(stages, output_columns()));
  text += fmt::format("boundaries: {}\nimbalance:  {:.4f} (longest stage over shortest)\n", text_of(partition),
                      partitioner::imbalance_ratio(latencies, partition));
  if (answer.energy) text += energy_text(*answer.energy);
  const auto layout = partitioner::megatron_layout(model.layers, partition);
  text += layout ? fmt::format("Megatron:   --pipeline-model-parallel-layout \"{}\"\n", *layout)
                 : fmt::format("Megatron:   none; {}\n", layout.error().message);
  return text;
}

json::object as_json(const Model& model, const Answer& answer) {
  const partitioner::Partition& partition = answer.partition;
  const auto latencies = model::forward_latencies(model.layers);
  json::object object{{"input", model.title},
                      {"boundaries", json::array(partition.boundaries.begin(), partition.boundaries.end())},
                      {"imbalance", partitioner::imbalance_ratio(latencies, partition)},
                      {"longest_stage_s", std::ranges::max(partitioner::stage_latencies(latencies, partition)).value()},
                      {"stages", stages_of({model.title, model.layers, partition, answer.energy}).json()}};
  const auto layout = partitioner::megatron_layout(model.layers, partition);
  object["megatron_layout"] = layout ? json::value(*layout) : json::value();
  if (answer.energy) {
    const partitioner::LeastEnergy& energy = *answer.energy;
    object["energy"] = {
        {"bound_j", energy.energy.value()},
        {"deadline_s", energy.deadline.value()},
        {"fastest_s", energy.fastest.value()},
        {"planned", energy.planned},
        {"all_tried", energy.all_tried},
        {"balanced_boundaries", json::array(energy.balanced.boundaries.begin(), energy.balanced.boundaries.end())},
        {"balanced_fastest_s", energy.balanced_fastest.value()},
        {"balanced_bound_j", energy.balanced_energy.value()}};
  }
  object["origin"] = origin_json();
  return object;
}

void print_list(bool as_json) {
  json::array models;
  json::array gpus;
  for (const partitioner::ZooEntry& entry : partitioner::zoo()) {
    const partitioner::Workload& w = entry.workload;
    models.push_back(json::object{{"name", entry.name},
                                  {"description", entry.description},
                                  {"microbatch_size", w.microbatch_size},
                                  {"sequence_length", w.sequence_length},
                                  {"tensor_parallel", w.tensor_parallel},
                                  {"expert_parallel", w.expert_parallel},
                                  {"precision", partitioner::precision_name(w.precision)}});
  }
  report::TextRows gpu_rows{{"GPU", "clocks", "power limit"}, {}};
  for (const partitioner::GpuModel& gpu : partitioner::known_gpus()) {
    gpus.push_back(json::object{{"name", gpu.name},
                                {"lowest_mhz", gpu.lowest.value()},
                                {"highest_mhz", gpu.highest.value()},
                                {"power_limit_w", gpu.power_limit.value()}});
    gpu_rows.rows.push_back({std::string(gpu.name), fmt::format("{}-{} MHz", gpu.lowest.value(), gpu.highest.value()),
                             report::text_of(gpu.power_limit)});
  }
  const report::TextRows model_rows = text_rows(models, {{"model", "name"},
                                                         {"", "description"},
                                                         {"microbatch", "microbatch_size"},
                                                         {"sequence", "sequence_length"},
                                                         {"tensor parallel", "tensor_parallel"},
                                                         {"precision", "precision"}});
  if (as_json) return print_json({{"models", std::move(models)}, {"gpus", std::move(gpus)}});
  print(report::text_of(model_rows, output_columns()) + "\n" + report::text_of(gpu_rows, output_columns()));
}

Result<int> run_partition(const PartitionOptions& options, bool as_json_text) {
  if (options.list) {
    print_list(as_json_text);
    return 0;
  }
  const auto model = model_of(options);
  if (!model) return model.error();
  if (!options.layers_out.empty()) {
    if (Status written = formats::write_file(options.layers_out, formats::format_layers_csv(model->layers)); !written) {
      return written.error();
    }
    if (options.stages == 0) return 0;
  }
  if (options.stages == 0) return Error{ErrorCode::usage, "--stages is required: the number of stages"};
  const auto answer = cut(*model, options);
  if (!answer) return answer.error();
  if (!options.profile_out.empty()) {
    const auto profile = partitioner::profile_of(model->layers, answer->partition);
    if (!profile) return profile.error();
    if (Status written = formats::write_file(options.profile_out, formats::format_profile_csv(*profile)); !written) {
      return written.error();
    }
  }
  if (!options.page_out.empty()) {
    std::string page;
    report::write_static_page(partition_page({model->title, model->layers, answer->partition, answer->energy}),
                              [&](std::string_view piece) { page += piece; });
    if (Status written = formats::write_file(options.page_out, page); !written) return written.error();
  }
  as_json_text ? print_json(as_json(*model, *answer)) : print(as_text(*model, *answer));
  return 0;
}

void add_zoo_options(CLI::App& partition, PartitionOptions& options) {
  const OptionGroup group(partition, "A known model");
  add_value(partition, "--model NAME", options.model, "Name of the model, see --list");
  add_value(partition, "--gpu NAME", options.gpu, "Name of the GPU that it runs on, see --list");
  const auto add_count = [&](const char* name, std::optional<int>& value, const char* what) {
    partition.add_option(name, value, what)->check(whole_number_within(1, 1000000))->type_name("N");
  };
  add_count("--microbatch-size", options.microbatch_size, "Sequences (images) in a microbatch");
  add_count("--sequence-length", options.sequence_length, "Tokens in a sequence (pixels of an image's side)");
  add_count("--tensor-parallel", options.tensor_parallel, "GPUs that share each layer");
  add_count("--expert-parallel", options.expert_parallel, "GPUs that share each layer's experts");
  partition.add_option("--precision", options.precision, "Precision of matrix products: bf16 or tf32")
      ->check(CLI::IsMember({"tf32", "bf16"}).description(""));
  partition.add_flag("--recompute", options.recompute, "The backward recomputes activations");
  partition.add_flag("--without-embedding", options.without_embedding,
                     "Leave the embedding out of the first layer, as the paper's tables do");
  partition.add_flag("--list", options.list, "List the known models and GPUs");
}

void add_energy_options(CLI::App& partition, PartitionOptions& options) {
  const OptionGroup group(partition, "Least energy");
  add_default(partition, "-m,--microbatches N", options.goal.microbatches, "Microbatches per iteration (1F1B)",
              whole_number_within(1, 100000));
  add_value(partition, "--deadline S", options.deadline_s,
            "Longest iteration time to allow, in seconds (default: the shortest possible)",
            number_within(1e-9, 1e9, "s"));
  add_value(partition, "--blocking-power W", options.blocking_power_w,
            "Power of one waiting accelerator, in watts (default: the GPU's, or 20 % of the profile's peak power)",
            number_within(0, 1e6, "W"));
  add_default(partition, "--max-planned N", options.goal.max_planned, "Largest number of partitions to plan",
              whole_number_within(1, 1000000));
}

}  // namespace

void add_partition(CLI::App& app, Command& command) {
  auto* partition = app.add_subcommand("partition", "Cut a model's layers into pipeline stages");
  auto options = std::make_shared<PartitionOptions>();
  partition->add_option("LAYERS.csv", options->layers,
                        "Layers in order: CSV with the columns name,forward_s and others, see docs/partition.md");
  add_value(*partition, "--stages N", options->stages, "Number of stages", whole_number_within(1, 100000));
  partition
      ->add_option(
          "--objective", options->objective,
          "What to minimize: imbalance (longest over shortest stage), longest-stage, or energy (of the planned "
          "1F1B iteration)")
      ->check(CLI::IsMember({"imbalance", "longest-stage", "energy"}).description(""))
      ->capture_default_str();
  add_value(*partition, "--profile-out FILE", options->profile_out, "Write the stages' profile, for 'perseus plan'");
  add_value(*partition, "--layers-out FILE", options->layers_out, "Write the layers in the format of LAYERS.csv");
  add_value(*partition, "--page-out FILE.html", options->page_out,
            "Write a page with the stages as bars, and the saving");
  add_zoo_options(*partition, *options);
  add_energy_options(*partition, *options);
  add_progress_flag(*partition, options->progress);
  partition->footer(
      help_footer(kFileErrors,
                  "  perseus partition layers.csv --stages 4\n"
                  "  perseus partition --model gpt3-1b --gpu A100-PCIe --stages 4 --profile-out gpt3.csv\n"
                  "  perseus partition --model llama3-70b --gpu H100-SXM --stages 8 --objective energy -m 32\n"));
  set_run(*partition, command, options, run_partition);
}

}  // namespace perseus::cli
