#include "server/profiling/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace perseus::profiling {
namespace {

Status validate(const ProfilingJob& job) {
  if (Status status = job.schedule.validate(); !status) return status;
  const auto stages = static_cast<std::size_t>(job.schedule.num_stages);
  const auto bad = [](std::string what) { return Error{ErrorCode::invalid_input, "profiling: " + std::move(what)}; };
  if (job.clocks.size() != stages) {
    return bad(fmt::format("clocks of {} stages; the schedule has {}", job.clocks.size(), stages));
  }
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const std::vector<Megahertz>& clocks = job.clocks[stage];
    if (clocks.empty()) return bad(fmt::format("stage {} has no supported clock; at least one is needed", stage));
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      if (clocks[i].value() <= 0) {
        return bad(fmt::format("stage {}: clock {} MHz; must be > 0", stage, clocks[i].value()));
      }
      if (i > 0 && clocks[i] >= clocks[i - 1]) {
        return bad(fmt::format("stage {}: clock {} MHz follows {} MHz; clocks must be unique, highest first", stage,
                               clocks[i].value(), clocks[i - 1].value()));
      }
    }
  }
  const std::size_t ranks = job.schedule.ranks.size();
  if (!job.replicas.empty() && job.replicas.size() != ranks) {
    return bad(fmt::format("replicas of {} ranks; the schedule has {}", job.replicas.size(), ranks));
  }
  for (const int replicas : job.replicas) {
    if (replicas < 1) return bad(fmt::format("{} replicas of a rank; must be >= 1", replicas));
  }
  if (job.blocking_power && !(std::isfinite(job.blocking_power->value()) && job.blocking_power->value() >= 0)) {
    return bad(fmt::format("blocking power {} W; must be finite and >= 0", job.blocking_power->value()));
  }
  return job.transfer_latency.check(static_cast<int>(ranks));
}

}  // namespace

int ProfiledType::index_of(Megahertz clock) const {
  const auto found = std::ranges::find(clocks, clock);
  return found == clocks.end() ? -1 : static_cast<int>(found - clocks.begin());
}

Result<Layout> Layout::build(ProfilingJob job) {
  if (Status status = validate(job); !status) return status.error();
  Layout layout;
  layout.job = std::move(job);
  const model::Schedule& schedule = layout.job.schedule;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    for (const model::Action& action : schedule.ranks[rank]) {
      const auto same = [&](const ProfiledType& type) {
        return type.stage == action.stage && type.instruction == action.instruction;
      };
      if (std::ranges::any_of(layout.types, same)) continue;
      const bool constant = model::is_constant_time(action.instruction);
      layout.types.push_back({action.stage, action.instruction, rank,
                              constant ? std::vector{Megahertz(0)} : layout.job.clocks[action.stage], 0});
    }
  }
  std::ranges::stable_sort(layout.types, {}, &ProfiledType::stage);

  std::map<std::pair<int, model::Instruction>, int> index;
  for (int t = 0; t < layout.num_types(); ++t) index[{layout.types[t].stage, layout.types[t].instruction}] = t;
  for (const std::vector<model::Action>& actions : schedule.ranks) {
    std::vector<int>& types = layout.type_of.emplace_back();
    for (const model::Action& action : actions) {
      types.push_back(index.at({action.stage, action.instruction}));
      ++layout.types[types.back()].occurrences;
    }
  }
  return layout;
}

}  // namespace perseus::profiling
