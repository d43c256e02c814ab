// Answers of /v1, described member by member (base/json_writer.h); docs/openapi.json documents them.
//
// Threads: templates.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "io/formats/described_json.h"
#include "server/jobs/requests.h"

namespace perseus::jobs {

void describe(auto& f, formats::MaybeConst<RegisterJobAnswer> auto& made) {
  f.always("job", made.job);
  f.always("state", made.state);
}

struct LaterCeilingAnswer {
  double at_s = 0;
  int ceiling_mhz = 0;
  double paced_iteration_s = 0;
};
void describe(auto& f, formats::MaybeConst<LaterCeilingAnswer> auto& later) {
  f.always("at_s", later.at_s);
  f.always("ceiling_mhz", later.ceiling_mhz);
  f("paced_iteration_s", later.paced_iteration_s);
}
/// A plan's budget as ranks see it.
struct BudgetAnswer {
  double lease_s = 0;
  int ceiling_mhz = 0;
  bool at_once = false;
  std::vector<LaterCeilingAnswer> ahead = {};
  double paced_iteration_s = 0;
};
void describe(auto& f, formats::MaybeConst<BudgetAnswer> auto& budget) {
  f.always("lease_s", budget.lease_s);
  f.always("ceiling_mhz", budget.ceiling_mhz);
  f.always("at_once", budget.at_once);
  f("ahead", budget.ahead);
  f("paced_iteration_s", budget.paced_iteration_s);
}
inline std::optional<BudgetAnswer> answer_of(const std::optional<PowerBudget>& budget) {
  if (!budget) return std::nullopt;
  BudgetAnswer answer{budget->lease_s, budget->ceiling_mhz, budget->at_once, {}, budget->paced_iteration_s};
  for (const LaterBudget& later : budget->ahead) {
    answer.ahead.push_back({later.at_s, later.ceiling_mhz, later.paced_iteration_s});
  }
  return answer;
}

inline auto clocks_shown(const std::vector<formats::ClockedInstruction>& clocks) {
  return JsonList{clocks, [](const formats::ClockedInstruction& planned) {
                    return std::pair(std::string_view(planned.instruction), planned.clock);
                  }};
}
inline auto ids_shown(const std::vector<StageSchedule::ComputationId>& computations) {
  return JsonList{computations,
                  [](const StageSchedule::ComputationId& id) { return std::pair(id.microbatch, id.chunk); }};
}

void describe(auto& f, const StageSchedule::OfShape& shape) {
  f.always("microbatches", shape.microbatches);
  f.always("iteration_time_s", shape.iteration_time);
  f.always("maximum_clock_time_s", shape.all_max_time);
  f.always("clocks", clocks_shown(shape.clocks));
  f.always("computations", ids_shown(shape.computations));
}

void describe(auto& f, const StageSchedule& schedule) {
  using Kind = StageSchedule::Kind;
  const bool ends = schedule.iterations > 0;
  f.always("version", schedule.version);
  f.always("kind", std::string_view(schedule.kind == Kind::plan               ? "plan"
                                    : schedule.kind == Kind::profiling_window ? "profiling_window"
                                                                              : "maximum_clock"));
  f.always("from_iteration", schedule.from_iteration);
  f.always("stage", schedule.stage_rank);
  f.always("reason", schedule.reason);
  f("window", schedule.window >= 0 ? std::optional(schedule.window) : std::nullopt);
  f("iterations", ends ? std::optional(schedule.iterations) : std::nullopt);
  f("then", std::string_view(ends ? "maximum_clock" : ""));
  f("microbatches", schedule.microbatches);
  f("iteration_time_s", schedule.iteration_time);
  f("maximum_clock_time_s", schedule.all_max_time);
  f("saving_pct", schedule.saving_pct);
  f("saving_stddev_pct", schedule.saving_stddev_pct);
  f("only_possible", schedule.only_possible);
  f("modeled", schedule.modeled);
  f("slower_because", schedule.slower_on_purpose ? std::optional<std::string_view>(schedule.reason) : std::nullopt);
  f("budget", answer_of(schedule.budget));
  f.always("clocks", clocks_shown(schedule.clocks));
  if (!schedule.computations.empty()) f.always("computations", ids_shown(schedule.computations));
  f("shapes", schedule.shapes);
}

void describe(auto& f, const ReportedIterations& reported) { f.always("rejected", reported.rejected); }

void describe(auto& f, const PolicyChanged& changed) { f("warning", changed.warning); }

void describe(auto& f, formats::MaybeConst<StragglerSet::Outcome> auto& notice) {
  f.always("job", notice.job);
  f.always("id", notice.id);
  f.always("pipeline", notice.pipeline);
  f.always("at_s", notice.at_s);
  f("nothing_done", notice.nothing_done);
}
void describe(auto& f, formats::MaybeConst<StragglerSet> auto& set) { f.always("notices", set.notices); }

void describe(auto& f, const StoredProfile& stored) {
  f.always("name", stored.name);
  f.always("stages", stored.stages);
  f.always("ranks", stored.ranks);
  f("doubts", stored.doubts);
}

/// A learned profile without its input.
struct LearnedShown {
  const LearnedProfile& profile;
};
void describe(auto& f, const LearnedShown& shown) {
  const LearnedProfile& one = shown.profile;
  f.always("id", one.id);
  f.always("team", one.team);
  f.always("model", one.model);
  f.always("job", one.job);
  f.always("learned_at_s", one.learned_at_s);
  f.always("confirmed", one.confirmed);
  f("doubted_by", one.doubted_by);
  if (!one.doubted_by.empty()) f.always("doubted_because", one.doubted_because);
}

}  // namespace perseus::jobs
