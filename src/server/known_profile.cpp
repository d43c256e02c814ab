#include "server/known_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/identity.h"

namespace perseus::server {

Result<KnownInput> known_input(const std::string& csv, const PipelineShape& shape, const InputLimits& limits,
                               std::string source, std::vector<int> pipelines) {
  const auto input = complete(csv, shape, limits);
  if (!input) return Error{input.error().code, fmt::format("{}: {}", source, input.error().message)};
  std::string text = format_input(*input);
  const std::string key = content_key(text);
  const std::string schedule = input->shape.action_table.empty() ? input->shape.schedule : "action table";
  return KnownInput{{key, std::move(source), std::move(pipelines), schedule, input->microbatches, ""},
                    {"input/" + key, std::move(text)}};
}

std::string run_key(const Degrees& degrees, const std::map<std::string, std::string>& facts,
                    const std::optional<PipelineShape>& shape) {
  const auto model = facts.find("model_name");
  if (model == facts.end() || model->second.empty()) return "";
  std::string text = fmt::format("{} {} {}\n", degrees.dp, degrees.pp, degrees.tp);
  for (const char* name : {"framework", "model_name", "partition_method", "accelerator", "microbatch_size"}) {
    const auto fact = facts.find(name);
    text += fmt::format("{}={}\n", name, fact == facts.end() ? "" : fact->second);
  }
  if (shape) text += format_shape(*shape);
  return "known/" + content_key(text);
}

PipelineShape with_measurements(PipelineShape shape, const Job& job) {
  double transfer_s = 0;
  double switch_s = 0;
  double blocking_w = 0;
  int blocking_known = 0;
  for (const auto& rank : job.ranks) {
    if (!rank) continue;
    transfer_s = std::max(transfer_s, rank->transfer_latency_s.value_or(0));
    switch_s = std::max(switch_s, rank->switch_latency_s.value_or(0));
    blocking_w += rank->blocking_power_w.value_or(0);
    blocking_known += rank->blocking_power_w ? 1 : 0;
  }
  if (!shape.blocking_power && blocking_known > 0) shape.blocking_power = Watts(blocking_w / blocking_known);
  if (!shape.transfer_latency && transfer_s > 0) shape.transfer_latency = Seconds(transfer_s);
  if (!shape.switch_latency && switch_s > 0) shape.switch_latency = Seconds(switch_s);
  return shape;
}

}  // namespace perseus::server
