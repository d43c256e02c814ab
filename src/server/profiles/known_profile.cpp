#include "server/profiles/known_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/formats/profile_csv.h"
#include "planning/model/profile_doubts.h"
#include "server/jobs/identity.h"

namespace perseus::profiles {

namespace {

// A measured latency must differ by this much from the planned one to trigger planning again.
constexpr double kLatencyShare = 0.2, kLatencyS = 0.0005;

std::vector<std::string> doubts_of(const std::string& csv, const jobs::PipelineShape& shape) {
  const auto profile = formats::parse_profile_csv(csv, "profile");
  if (!profile) return {};
  return model::profile_doubts(*profile, shape.blocking_power);
}

}  // namespace

Seconds rounded_latency(Seconds measured) {
  if (measured <= Seconds(0)) return Seconds(0);
  const double unit_s = std::pow(10.0, std::floor(std::log10(measured.value())) - 1);
  return Seconds(std::ceil(measured.value() / unit_s - 1e-6) * unit_s);
}

Result<KnownInput> known_input(const std::string& csv, const jobs::PipelineShape& shape,
                               const jobs::InputLimits& limits, std::string source, std::vector<int> pipelines,
                               bool fixed_latency) {
  const auto input = jobs::complete(csv, shape, limits);
  if (!input) return Error{input.error().code, fmt::format("{}: {}", source, input.error().message)};
  std::string text = jobs::format_input(*input);
  const std::string key = jobs::content_key(text);
  const std::string schedule = input->shape.action_table.empty() ? input->shape.schedule : "action table";
  return KnownInput{{key, std::move(source), std::move(pipelines), schedule, input->microbatches, "",
                     number_of(input->shape.switch_latency), fixed_latency, "", doubts_of(csv, shape)},
                    {"input/" + key, std::move(text)}};
}

std::optional<Seconds> latency_to_plan_with(const jobs::Job& job, const std::string& input) {
  const auto planned = job.planned_with.find(input);
  if (planned == job.planned_with.end() || planned->second.fixed) return std::nullopt;
  if (job.ranks_registered < job.spec.degrees.world_size()) return std::nullopt;
  if (job.switch_latency_s <= 0) return std::nullopt;
  const double measured_s = rounded_latency(Seconds(job.switch_latency_s)).value();
  const double before_s = planned->second.switch_latency_s.value_or(0);
  if (std::abs(measured_s - before_s) <= std::max(kLatencyS, kLatencyShare * before_s)) return std::nullopt;
  return Seconds(measured_s);
}

bool awaits_latencies(const jobs::Job& job, double now_s, double patience_s) {
  if (job.ranks_registered == 0 || now_s >= job.joined_s + patience_s) return false;
  if (std::ranges::all_of(job.planned_with, [](const auto& planned) { return planned.second.fixed; })) return false;
  if (!job.without_latency.empty()) return true;
  return job.switch_latency_s > 0 && job.ranks_registered < job.spec.degrees.world_size();
}

jobs::PipelineShape with_constants_of(jobs::PipelineShape shape, const jobs::PipelineShape& profile) {
  if (!shape.transfer_latency) {
    shape.transfer_latency = profile.transfer_latency;
    shape.blocking_transfers = shape.blocking_transfers || profile.blocking_transfers;
    shape.serial_transfers = shape.serial_transfers || profile.serial_transfers;
  }
  if (!shape.blocking_power) shape.blocking_power = profile.blocking_power;
  if (!shape.switch_latency) shape.switch_latency = profile.switch_latency;
  return shape;
}

jobs::PipelineShape with_measurements(jobs::PipelineShape shape, const jobs::Job& job) {
  double transfer_s = 0;
  double switch_s = 0;
  double blocking_w = 0;
  int blocking_known = 0;
  if (job.spec.switch_latency_s) shape.switch_latency = Seconds(*job.spec.switch_latency_s);
  for (const auto& rank : job.ranks) {
    if (!rank) continue;
    transfer_s = std::max(transfer_s, rank->transfer_latency_s.value_or(0));
    switch_s = std::max(switch_s, rank->switch_latency_s.value_or(0));
    blocking_w += rank->blocking_power_w.value_or(0);
    blocking_known += rank->blocking_power_w ? 1 : 0;
  }
  if (!shape.blocking_power && blocking_known > 0) shape.blocking_power = Watts(blocking_w / blocking_known);
  if (!shape.transfer_latency && transfer_s > 0) shape.transfer_latency = Seconds(transfer_s);
  if (!shape.switch_latency && switch_s > 0) shape.switch_latency = rounded_latency(Seconds(switch_s));
  return shape;
}

}  // namespace perseus::profiles
