#include "search/partition_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "command_line/origin.h"
#include "io/report/format.h"
#include "io/report/stacked_bars.h"
#include "planning/partitioner/balance.h"

namespace perseus::cli {
namespace {

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

}  // namespace

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
       {"share_pct", [&](int s) { return 100 * (stages[s] / longest); }, "of longest", report::percent, 1, false}});
}

report::StaticPage partition_page(const PartitionResult& result) {
  const std::vector<Seconds> latencies = model::forward_latencies(result.layers);
  const std::vector<Seconds> stages = partitioner::stage_latencies(latencies, result.partition);
  const Seconds longest = std::ranges::max(stages);
  report::StaticPage page{"Perseus partition",
                          headline(result, partitioner::imbalance_ratio(latencies, result.partition)),
                          {{"model", result.title}, {"boundaries", text_of(result.partition)}},
                          {}};
  std::ranges::move(origin_facts(), std::back_inserter(page.facts));
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

}  // namespace perseus::cli
