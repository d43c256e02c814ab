#include "verify/verify_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "base/split.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "plan/link_doubt.h"
#include "plan/pipeline.h"
#include "plan/plan_source.h"
#include "plan/slowdown.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "search/search_output.h"

namespace perseus::cli {
namespace {

/// "1f1b, 4 ranks, 4 stages, 12 microbatches", and what a search adds.
struct NotedSchedule {
  std::string name;
  int ranks = 0, stages = 0, microbatches = 0;
};

std::optional<NotedSchedule> noted_schedule(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() < 4) return std::nullopt;
  NotedSchedule noted{std::string(parts[0])};
  for (const auto& [part, unit, value] :
       {std::tuple(parts[1], " ranks", &noted.ranks), std::tuple(parts[2], " stages", &noted.stages),
        std::tuple(parts[3], " microbatches", &noted.microbatches)}) {
    const std::size_t end = part.find(unit);
    const auto number = formats::number_in<int>(part.substr(std::min<std::size_t>(1, part.size()), end - 1));
    if (end == std::string_view::npos || !number) return std::nullopt;
    *value = *number;
  }
  return noted;
}

/// Stages and instructions of the plans, each with one measurement.
model::Profile shape_of(const model::ComputationDag& dag) {
  model::Profile profile;
  for (std::size_t i = 0; i < dag.computations.size(); ++i) {
    const model::ComputationType& type = dag.type_of(static_cast<int>(i));
    const auto stage = static_cast<std::size_t>(type.stage);
    if (stage >= profile.accelerators.size()) profile.accelerators.resize(stage + 1, 1);
    profile.accelerators[stage] = dag.accelerators[dag.computations[i].rank];
  }
  for (const model::ComputationType& type : dag.types) {
    profile.entries.push_back({type.stage, type.instruction, {type.options.front()}});
  }
  return profile;
}

using Step = std::tuple<int, std::string, int>;  // stage, instruction, microbatch

std::vector<std::vector<Step>> steps_of(const model::ComputationDag& dag) {
  std::vector<std::vector<Step>> steps(dag.rank_order.size());
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    for (const int i : dag.rank_order[rank]) {
      steps[rank].emplace_back(dag.type_of(i).stage, dag.type_of(i).instruction, dag.computations[i].microbatch);
    }
  }
  return steps;
}

std::set<std::pair<Step, Step>> transfers_of(const model::ComputationDag& dag) {
  std::set<std::pair<Step, Step>> all;
  const auto step = [&](int i) {
    return Step(dag.type_of(i).stage, dag.type_of(i).instruction, dag.computations[i].microbatch);
  };
  for (const model::Dependency& d : dag.dependencies) all.emplace(step(d.before), step(d.after));
  return all;
}

/// What is wrong with the noted schedule: empty if nothing. nullopt: it cannot be built again.
std::optional<std::string> schedule_fault(const model::ComputationDag& dag, const std::string& text) {
  const auto noted = noted_schedule(text);
  if (!noted || !model::schedule_named(noted->name) || noted->ranks < 1 || noted->stages % noted->ranks != 0) {
    return std::nullopt;
  }
  const auto schedule =
      model::make_schedule(noted->name, {noted->ranks, noted->microbatches, noted->stages / noted->ranks});
  if (!schedule) return schedule.error().message;
  const Result<model::ComputationDag> own =
      model::build_dag(shape_of(dag), *schedule, {dag.blocking_power, {}, false, false});
  if (!own) return own.error().message;
  if (steps_of(*own) != steps_of(dag)) return "the computations have another order";
  // Transfers that queue add dependencies.
  const auto expected = transfers_of(*own), found = transfers_of(dag);
  return std::ranges::includes(found, expected) ? "" : "the computations have other dependencies";
}

std::string sha256_of(const std::string& path) {
  for (const formats::FileRead& file : formats::files_read()) {
    if (file.path == path) return file.sha256;
  }
  return "";
}

}  // namespace

CheckedMetadata check_metadata(const formats::PlanFile& file, const std::string& profile_path,
                               const profiling::PooledProfile* planned_with) {
  CheckedMetadata checked;
  const auto profile = file.metadata.find("profile");
  const std::string hash_key = "SHA-256 of " + (profile == file.metadata.end() ? "" : profile->second);
  const std::set<std::string> used_elsewhere{kSwitchLatencyKey,  kMinDwellKey, kSlowdownKey,
                                             kConfigurationsKey, kDerivedKey,  kOtherLinksKey};
  const auto expect = [&](const std::string& key, const std::string& noted, const std::string& own) {
    if (noted != own) checked.findings.push_back(fmt::format("metadata: {} '{}'; found: '{}'", key, noted, own));
  };
  if (planned_with != nullptr) {
    const auto noise = noise_fact(*planned_with);
    const auto noted = file.metadata.find(kNoiseKey);
    expect(kNoiseKey, noted == file.metadata.end() ? "" : noted->second, noise ? noise->value : "");
  }
  for (const auto& [key, value] : file.metadata) {
    const bool is_time = key == kSwitchLatencyKey || key == kMinDwellKey;
    if (is_time && formats::number_in<double>(value) != noted_time(file, key).value()) {
      checked.findings.push_back(fmt::format("metadata: {} '{}'; allowed: times", key, value));
    }
    if (used_elsewhere.contains(key)) continue;
    if (key == "blocking power") {
      const std::string own = fmt::format("{:g} W", file.dag.blocking_power.value());
      if (value != own + kGuessed) expect(key, value, own);
    } else if (key == "schedule") {
      const auto fault = schedule_fault(file.dag, value);
      if (!fault) {
        checked.not_checked.push_back(key);
      } else if (!fault->empty()) {
        checked.findings.push_back(fmt::format("metadata: schedule '{}': {}", value, *fault));
      }
    } else if (planned_with != nullptr && key == hash_key) {
      expect(key, value, sha256_of(profile_path));
    } else if (planned_with == nullptr || (key != kNoiseKey && key != "profile")) {
      checked.not_checked.push_back(key);
    }
  }
  return checked;
}

}  // namespace perseus::cli
