// Prints the tables behind docs/partition.md: the paper's partitions against ours from first principles, the head
// latency that the paper's rows imply, and the roofline against measured profiles.
//
// usage: partition_report partition.csv [data folder, default: ../shared/data]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "io/formats/profile_csv.h"
#include "planning/partitioner/balance.h"
#include "planning/partitioner/gpu_model.h"
#include "planning/partitioner/model_zoo.h"
#include "planning/partitioner/stage_profile.h"

namespace {

using namespace perseus;

std::string zoo_name(std::string_view model, std::string_view size) {
  if (model == "GPT-3") return fmt::format("gpt3-{}", size);
  if (model == "Wide-ResNet50") return "wide-resnet50";
  if (model == "Wide-ResNet101") return "wide-resnet101";
  return fmt::format("{}-{}", model, size);
}

std::vector<int> boundaries_in(std::string_view text) {
  std::vector<int> boundaries;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    boundaries.push_back(formats::number_in<int>(text.substr(0, end)).value_or(-1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return boundaries;
}

struct Agreement {
  int rows = 0, same = 0, tied = 0, ratio = 0, both = 0;
};

/// One row of the paper's table.
void compare(const std::vector<Seconds>& layers, int stages, const partitioner::Partition& published,
             double published_ratio, const std::string& title, Agreement& agreement) {
  const auto ours = partitioner::balance_layers(layers, stages);
  if (!ours) return;
  const double ratio = partitioner::imbalance_ratio(layers, *ours);
  const bool fits = published.num_stages() == stages && published.boundaries.back() == static_cast<int>(layers.size());
  const bool same = *ours == published;
  const bool tied = fits && !same && std::abs(partitioner::imbalance_ratio(layers, published) - ratio) < 1e-9;
  const bool ratio_agrees = std::abs(ratio - published_ratio) < 0.01;
  ++agreement.rows;
  agreement.same += same;
  agreement.tied += tied;
  agreement.ratio += ratio_agrees;
  agreement.both += (same || tied) && ratio_agrees;
  fmt::print("| {} | {} | {:.2f} | {:.3f} | {} | {} | {} | {} | {:.2f} |\n", title, stages, published_ratio, ratio,
             ratio_agrees ? "yes" : "no", partitioner::text_of(published), partitioner::text_of(*ours),
             same ? "yes" : (tied ? "tie" : (fits ? "no" : "other number of stages")), layers.back() / layers.front());
}

Status print_partitions(const std::string& path) {
  const auto text = formats::read_file(path);
  if (!text) return text.error();
  formats::CsvReader csv(*text, path);
  Agreement agreement;
  fmt::print(
      "| GPU, model | stages | ratio in the paper | ours | agree | partition in the paper | ours | agree | last/first "
      "layer |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  bool header = true;
  for (;;) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    if (std::exchange(header, false) || csv.blank()) continue;
    const auto& fields = csv.fields();
    if (fields.size() < 7) return csv.error("expected gpu,model,size,imbalance_4,imbalance_8,partition_4,partition_8");
    const auto gpu = partitioner::gpu_named(fields[0]);
    if (!gpu) return gpu.error();
    const std::string name = zoo_name(fields[1], fields[2]);
    const auto entry = partitioner::zoo_entry(name);
    if (!entry) return entry.error();
    partitioner::Workload workload = entry->workload;
    workload.embedding = false;
    if (name.starts_with("wide") && gpu->name == "A100-PCIe") workload.microbatch_size = 64;
    const auto work = partitioner::zoo_layers(name, workload);
    if (!work) return work.error();
    const auto layers = model::forward_latencies(partitioner::layers_on(*work, *gpu, workload.precision));
    for (const int stages : {4, 8}) {
      compare(layers, stages, {boundaries_in(fields[stages == 4 ? 5 : 6])},
              formats::number_in<double>(fields[stages == 4 ? 3 : 4]).value_or(0),
              fmt::format("{} {} {}", fields[0], fields[1], fields[2]), agreement);
    }
  }
  fmt::print(
      "\n{} rows: partition the same in {}, as good by our latencies in {} more; ratio within 0.01 in {}; both in {}\n",
      agreement.rows, agreement.same, agreement.tied, agreement.ratio, agreement.both);
  return Ok{};
}

/// Latencies of the head, in layers, for which a row's partition is a best one and its ratio rounds to the printed
/// one.
struct HeadRange {
  double least = 0, most = 0;
};

HeadRange head_implied_by(const partitioner::Partition& published, double ratio) {
  HeadRange range;
  std::vector<Seconds> layers(published.boundaries.back(), Seconds(1));
  for (int head = 1; head <= 1200; ++head) {
    layers.back() = Seconds(head / 200.0);
    const auto best = partitioner::balance_layers(layers, published.num_stages());
    const double ours = partitioner::imbalance_ratio(layers, *best);
    if (partitioner::imbalance_ratio(layers, published) - ours > 1e-9 || std::abs(ours - ratio) > 0.00501) continue;
    if (range.least == 0) range.least = head / 200.0;
    range.most = head / 200.0;
  }
  return range;
}

Status print_heads(const std::string& path) {
  const auto text = formats::read_file(path);
  if (!text) return text.error();
  formats::CsvReader csv(*text, path);
  fmt::print(
      "\n| GPU, model | head that 4 stages imply | 8 stages | ours | by FLOPs alone |\n| --- | --- | --- | --- | --- "
      "|\n");
  bool header = true;
  for (;;) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    if (std::exchange(header, false) || csv.blank()) continue;
    const auto& fields = csv.fields();
    if (fields[1] == "T5" || fields[1].starts_with("Wide")) continue;
    const auto gpu = partitioner::gpu_named(fields[0]);
    partitioner::Workload workload = partitioner::zoo_entry(zoo_name(fields[1], fields[2]))->workload;
    workload.embedding = false;
    const auto work = partitioner::zoo_layers(zoo_name(fields[1], fields[2]), workload);
    const auto layers = model::forward_latencies(partitioner::layers_on(*work, *gpu, workload.precision));
    const auto flops = [](const partitioner::LayerWork& layer) {
      double sum = 0;
      for (const partitioner::Kernel& kernel : layer.forward) sum += kernel.flops;
      return sum;
    };
    const auto range = [&](int partition, int ratio) -> std::string {
      const partitioner::Partition published{boundaries_in(fields[partition])};
      const HeadRange head = head_implied_by(published, formats::number_in<double>(fields[ratio]).value_or(0));
      return head.least == 0 ? "none" : fmt::format("{:.2f} to {:.2f}", head.least, head.most);
    };
    fmt::print("| {} {} {} | {} | {} | {:.2f} | {:.2f} |\n", fields[0], fields[1], fields[2], range(5, 3), range(6, 4),
               layers.back() / layers.front(), flops(work->back()) / flops(work->front()));
  }
  return Ok{};
}

struct MeasuredRun {
  const char* file;
  const char* model;
  const char* gpu;
  const char* boundaries;
  partitioner::Workload workload;
  bool shape_only;  ///< the unit of the measured times is not known
};

double relative_rms(const std::vector<double>& estimated, const std::vector<double>& measured) {
  double squares = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) squares += std::pow(estimated[i] / measured[i] - 1, 2);
  return 100 * std::sqrt(squares / static_cast<double>(measured.size()));
}

/// The measurement at `clock`, or null.
const model::Measurement* at_clock(const model::ProfileEntry& entry, Megahertz clock) {
  const auto found = std::ranges::find(entry.measurements, clock, &model::Measurement::clock);
  return found == entry.measurements.end() ? nullptr : &*found;
}

Status print_run(const MeasuredRun& run, const std::string& folder) {
  const auto measured = formats::read_profile_csv(folder + "/" + run.file);
  if (!measured) return measured.error();
  const partitioner::GpuModel gpu = *partitioner::gpu_named(run.gpu);
  const auto work = partitioner::zoo_layers(run.model, run.workload);
  const auto estimated = partitioner::profile_of(partitioner::layers_on(*work, gpu, run.workload.precision),
                                                 {boundaries_in(run.boundaries)});
  const int last = measured->num_stages() - 1;
  fmt::print("\n{}\n\n", run.file);
  if (!run.shape_only) {
    fmt::print(
        "| stage | forward measured | estimated | backward measured | estimated |\n| --- | --- | --- | --- | --- |\n");
    for (int s = 0; s <= last; ++s) {
      fmt::print("| {} ", s);
      for (const char* instruction : {"forward", "backward"}) {
        const model::ProfileEntry& entry = *measured->find(s, instruction);
        const Seconds estimate = estimated->find(s, instruction)->measurements.front().time;
        fmt::print("| {:.1f} ms | {:.1f} ms ", 1e3 * entry.measurements.front().time.value(), 1e3 * estimate.value());
      }
      fmt::print("|\n");
    }
  }
  // Shapes: relative to the highest clock, and to the first stage.
  fmt::print(
      "\n| clock | forward: time over that at the highest clock | estimated | power | estimated |\n"
      "| --- | --- | --- | --- | --- |\n");
  std::vector<double> times, estimated_times, powers, estimated_powers;
  const int shown = 1;
  for (int s = 0; s <= last; ++s) {
    for (const char* instruction : {"forward", "backward"}) {
      const model::ProfileEntry& entry = *measured->find(s, instruction);
      const model::ProfileEntry& guess = *estimated->find(s, instruction);
      double next_shown = 1e9;
      for (const model::Measurement& m : entry.measurements) {
        const model::Measurement* e = at_clock(guess, m.clock);
        if (e == nullptr) continue;
        const double time = m.time / entry.measurements.front().time;
        const double estimate = e->time / at_clock(guess, entry.measurements.front().clock)->time;
        times.push_back(time);
        estimated_times.push_back(estimate);
        powers.push_back((m.energy / m.time).value());
        estimated_powers.push_back((e->energy / e->time).value());
        if (s == shown && instruction[0] == 'f' && m.clock.value() <= next_shown) {
          fmt::print("| {} | {:.3f} | {:.3f} | {:.0f} W | {:.0f} W |\n", m.clock.value(), time, estimate, powers.back(),
                     estimated_powers.back());
          next_shown = m.clock.value() - 140;
        }
      }
    }
  }
  const auto ratio = [&](const model::Profile& profile, const char* instruction) {
    return profile.find(last, instruction)->measurements.front().time /
           profile.find(1, instruction)->measurements.front().time;
  };
  fmt::print(
      "\nAll stages and clocks: time over that at the highest clock off by {:.1f} % rms, power by {:.1f} % rms. "
      "Last stage over stage 1: forward {:.3f} measured, {:.3f} estimated; backward {:.3f}, {:.3f}.\n",
      relative_rms(estimated_times, times), relative_rms(estimated_powers, powers), ratio(*measured, "forward"),
      ratio(*estimated, "forward"), ratio(*measured, "backward"), ratio(*estimated, "backward"));
  return Ok{};
}

Status print_measured(const std::string& folder) {
  const char* gpt_175b = "0 12 24 36 48 60 72 84 97";
  const partitioner::Workload emulated{1, 2048, 8, 1, partitioner::Precision::bf16, false, true};
  const std::vector<MeasuredRun> runs = {
      {"emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", "gpt3-175b", "A100-SXM", gpt_175b, emulated, true},
      {"emulation/stage_profile/gpt3-175b+a40_bf16.csv", "gpt3-175b", "A40", gpt_175b, emulated, true},
      {"measured/A100_gpt3-xl_pp4.profile.csv",
       "gpt3-1b",
       "A100-PCIe",
       "0 6 12 19 25",
       {4, 2048, 1, 1, partitioner::Precision::tf32, true, true},
       false},
      {"measured/A100_bert-huge-uncased_pp4.profile.csv",
       "bert-1.3b",
       "A100-PCIe",
       "0 7 13 19 25",
       {8, 512, 1, 1, partitioner::Precision::tf32, true, true},
       false},
      {"measured/A40_bloom-3b_pp8.profile.csv",
       "bloom-3b",
       "A40",
       "0 5 9 13 17 21 25 29 31",
       {4, 1024, 1, 1, partitioner::Precision::tf32, true, true},
       false},
      {"measured/A40_wide-resnet101_8_pp8.profile.csv",
       "wide-resnet101",
       "A40",
       "0 4 8 12 16 21 26 31 35",
       {32, 224, 1, 1, partitioner::Precision::tf32, true, true},
       false},
  };
  for (const MeasuredRun& run : runs) {
    if (const Status status = print_run(run, folder); !status) return status;
  }
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    fmt::print(stderr, "usage: partition_report partition.csv [data folder]\n");
    return 64;
  }
  const std::string data = argc == 3 ? argv[2] : PERSEUS_SHARED_DATA;
  Status status = print_partitions(argv[1]);
  if (status) status = print_heads(argv[1]);
  if (status) status = print_measured(data);
  if (!status) fmt::print(stderr, "partition_report: {}\n", status.error().message);
  return status ? 0 : 1;
}
