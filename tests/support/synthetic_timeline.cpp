#include "tests/support/synthetic_timeline.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "planning/model/build_dag.h"
#include "planning/model/neighbors.h"

namespace perseus::testing {
namespace {

/// One measurement per stage and instruction of the schedule: of the DAG only the dependencies are used.
model::Profile any_profile(const model::Schedule& schedule) {
  std::set<std::pair<int, model::Instruction>> types;
  for (const auto& rank : schedule.ranks) {
    for (const model::Action& a : rank) types.emplace(a.stage, a.instruction);
  }
  model::Profile profile;
  profile.accelerators.assign(schedule.num_stages, 1);
  model::Measurement one;
  one.time = Seconds(1);
  one.energy = Joules(1);
  for (const auto& [stage, instruction] : types)
    profile.entries.push_back({stage, std::string(name_of(instruction)), {one}});
  return profile;
}

}  // namespace

std::string synthetic_timeline(const SyntheticJob& job) {
  model::PipelineCosts costs;
  costs.transfer_latency.common = Seconds(job.transfer_s);
  costs.blocking_transfers = job.sends == SyntheticJob::Sends::waits;
  const model::ComputationDag dag = build_dag(any_profile(job.schedule), job.schedule, costs).value();
  const auto before = model::neighbors_before_s(dag);
  std::string text = "[";
  double step_start = 0;
  const auto event = [&](std::string_view name, int d, int r, double start, double seconds, int step, int stage,
                         int m) {
    text += fmt::format(
        "{}{{\"ph\":\"X\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.6f},\"dur\":{:.6f},\"args\":{{\"step\":{},"
        "\"stage\":{},\"microbatch\":{}}}}}",
        text.size() == 1 ? "\n" : ",\n", name, d, r, 1e6 * start, 1e6 * seconds, step, stage, m);
  };
  for (int step = 0; step < job.steps; ++step) {
    double last = 0;
    for (int d = 0; d < job.pipelines; ++d) {
      std::vector<double> seconds(dag.computations.size()), end;
      for (int r = 0; r < dag.num_ranks(); ++r) {
        for (std::size_t k = 0; k < dag.rank_order[r].size(); ++k)
          seconds[dag.rank_order[r][k]] = job.seconds(job.schedule.ranks[r][k], d, step);
      }
      last = std::max(last, model::longest_path(
                                before, [&](int i) { return seconds[i]; }, end));
      for (int r = 0; r < dag.num_ranks(); ++r) {
        for (std::size_t k = 0; k < dag.rank_order[r].size(); ++k) {
          const int i = dag.rank_order[r][k];
          const model::Action& a = job.schedule.ranks[r][k];
          const double start = step_start + end[i] - seconds[i];
          event(name_of(a.instruction), d, r, start, seconds[i], step, a.stage, a.microbatch);
          const bool forward = a.instruction == model::Instruction::forward;
          if (job.transfer_s > 0 && a.stage != (forward ? 0 : job.schedule.num_stages - 1))
            event(forward ? "forward_receive" : "backward_receive", d, r, start - job.transfer_s, job.transfer_s, step,
                  a.stage, a.microbatch);
          if (job.sends != SyntheticJob::Sends::none && job.transfer_s > 0 &&
              a.stage != (forward ? job.schedule.num_stages - 1 : 0))
            event(forward ? "forward_send" : "backward_send", d, r, start + seconds[i], job.transfer_s, step, a.stage,
                  a.microbatch);
        }
      }
    }
    for (int d = 0; d < job.pipelines; ++d) {
      for (int r = 0; r < dag.num_ranks(); ++r) event("gradient_reduce", d, r, step_start + last, 0.01, step, -1, -1);
    }
    step_start += last + 0.02;
  }
  return text + "\n]\n";
}

}  // namespace perseus::testing
