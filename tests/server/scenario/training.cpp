#include "tests/server/scenario/training.h"

#include <algorithm>

#include "planning/model/make_schedule.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {

using namespace jobs;

Training::Training(ScenarioTarget& target, std::string job, jobs::Degrees degrees, int microbatches,
                   SimulationOptions options, std::uint64_t seed, InventedGpu gpu)
    : target_(target),
      job_(std::move(job)),
      degrees_(degrees),
      options_(std::move(options)),
      seed_(seed),
      gpu_(gpu),
      microbatches_(microbatches),
      simulated_(simulated(microbatches)) {}

SimulatedJob Training::simulated(int microbatches) const {
  InventedGpu gpu = gpu_;
  gpu.stages = degrees_.pp;
  SimulationOptions options = options_;
  options.replica_slowness.assign(degrees_.tp, 1);
  model::Profile truth = invented_profile(gpu, 7);
  for (model::ProfileEntry& entry : truth.entries) {
    if (!slow_ || entry.stage != slow_->stage) continue;
    const Seconds more = (slow_->times - 1) * entry.measurements.front().time;
    for (model::Measurement& one : entry.measurements) {
      const double times = slow_->by_memory ? 1 + more / one.time : slow_->times;
      one.time = one.time * times;
      one.energy = one.energy * times;
    }
  }
  return {std::move(truth), model::make_schedule("1f1b", {degrees_.pp, microbatches, 1}).value(), options, seed_};
}

void Training::change(int microbatches) {
  microbatches_ = microbatches;
  simulated_ = simulated(microbatches);
}

void Training::slow_down(int stage, double times, bool by_memory) {
  slow_ = {stage, times, by_memory};
  simulated_ = simulated(microbatches_);
}

bool Training::runs_window() const { return received(0)->microbatches == microbatches_; }

/// All of its ranks: nothing was measured.
Result<int> Training::miss_window() {
  int reported = 0;
  for (int rank = 0; rank < degrees_.world_size(); ++rank) {
    const auto run = run_.find(rank);
    if (run != run_.end() && run->second == received(rank)->version) continue;
    run_[rank] = received(rank)->version;
    jobs::ReportIterations report;
    report.job = job_;
    report.rank = rank;
    report.window = received(rank)->window;
    report.missed = "steps have another number of microbatches";
    if (Status sent = target_.report_iterations(report); !sent) return sent.error();
    ++reported;
  }
  return reported;
}

jobs::RegisterRank Training::registration(int rank) const {
  jobs::RegisterRank request = rank_of(job_, degrees_, rank);
  const profiling::ProfilingJob simulated = simulated_.job();
  for (const Megahertz clock : simulated.clocks[request.pp_rank]) request.clocks_mhz.push_back(clock.value());
  return request;
}

Status Training::register_ranks() {
  for (int rank = 0; rank < degrees_.world_size(); ++rank) {
    if (Status registered = target_.register_rank(registration(rank)); !registered) return registered;
  }
  return Ok{};
}

Result<int> Training::run_window(const std::set<int>& silent) {
  for (int rank = 0; rank < degrees_.world_size(); ++rank) {
    const std::int64_t have = received_.contains(rank) ? received_[rank]->version : 0;
    const int wait = target_.wait_for_plan({job_, rank, have, iteration_, 0});
    const auto answer = target_.answer_of(wait);
    if (!answer || !*answer) return answer ? answer->error() : Error{ErrorCode::internal, "no answer"};
    if ((*answer)->schedule) received_[rank] = (*answer)->schedule;
  }
  const auto now = window();
  if (!now) return 0;
  if (!runs_window()) return miss_window();
  // Until the window begins, everything runs at the highest clock.
  iteration_ = std::max(iteration_, received(0)->from_iteration) + now->iterations;
  int reported = 0;
  for (int dp = 0; dp < degrees_.dp; ++dp) {
    for (const profiling::RankResult& result : simulated_.run(*now)) {
      const int rank = (dp * degrees_.pp + result.rank) * degrees_.tp + result.replica;
      const auto run = run_.find(rank);
      if (silent.contains(rank) || (run != run_.end() && run->second == received(rank)->version)) continue;
      run_[rank] = received(rank)->version;
      if (Status sent = target_.report_iterations(report(rank, result)); !sent) return sent.error();
      ++reported;
    }
  }
  return reported;
}

/// The last answers to the first pipeline's ranks.
std::optional<profiling::ProfilingWindow> Training::window() const {
  profiling::ProfilingWindow window;
  for (int pp = 0; pp < degrees_.pp; ++pp) {
    const auto schedule = received(pp * degrees_.tp);
    if (!schedule || schedule->kind != jobs::StageSchedule::Kind::profiling_window) return std::nullopt;
    window.number = schedule->window;
    window.iterations = schedule->iterations;
    std::vector<Megahertz>& clocks = window.clocks.emplace_back();
    const Megahertz highest = simulated_.job().clocks[pp].front();  // of a rank that keeps its clock
    for (const formats::ClockedInstruction& one : schedule->clocks) {
      clocks.push_back(one.clock == Megahertz(0) ? highest : one.clock);
    }
  }
  return window;
}

jobs::ReportIterations Training::report(int rank, const profiling::RankResult& result) const {
  jobs::ReportIterations report;
  report.job = job_;
  report.rank = rank;
  report.window = result.window;
  report.last_iteration = iteration_ - 1;
  report.iteration_time = result.iteration_time;
  report.time_s = result.time_s;
  if (begins_) {
    report.begin_s = result.begin_s;
    report.end_s = result.end_s;
  }
  if (!energies_) return report;
  report.iteration_energy = result.iteration_energy;
  report.energy_j = result.energy_j;
  if (result.window < energies_from_) {
    report.energy_j.clear();
    std::ranges::fill(report.iteration_energy, Joules(0));
  }
  return report;
}

std::optional<jobs::ReportIterations> Training::report_of(int rank) {
  const auto now = window();
  if (!now) return std::nullopt;
  for (const profiling::RankResult& result : simulated_.run(*now)) {
    const int in_pipeline = rank % (degrees_.pp * degrees_.tp);
    if (result.rank * degrees_.tp + result.replica == in_pipeline) return report(rank, result);
  }
  return std::nullopt;
}

Status Training::run_until_plan(int most_windows) {
  for (int w = 0; w < most_windows; ++w) {
    const auto ran = run_window();
    if (!ran) return ran.error();
    if (received(0) && received(0)->kind != jobs::StageSchedule::Kind::profiling_window) return Ok{};
  }
  return Error{ErrorCode::usage, "no plan after " + std::to_string(most_windows) + " windows"};
}

std::shared_ptr<const jobs::StageSchedule> Training::received(int rank) const {
  const auto found = received_.find(rank);
  return found == received_.end() ? nullptr : found->second;
}

}  // namespace perseus::testing
