#include "server/reports/iteration_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "server/jobs/report_checks.h"
#include "server/live/job_view.h"
#include "server/live/registration_checks.h"
#include "server/savings/job_savings.h"

namespace perseus::reports {

namespace {

constexpr std::int64_t kLeastCounted = 10;     // iterations; fewer are written together with the next ones
constexpr std::int64_t kMostUncounted = 1000;  // limit of iterations that a crash of the server may lose

/// The plan version that the iterations of a report followed; 0: everything at the highest clock; nothing: not known,
/// or at the ceiling of a power budget.
std::optional<std::int64_t> version_followed(const live::LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  if (request.plan_version) {
    const bool window = !job.plan || job.plan->version != *request.plan_version;
    if (*request.plan_version == 0 && job.plan && job.plan->budget) return std::nullopt;
    // Reports without a window that name its version are of iterations after it.
    if (*request.plan_version == 0 || (window && *request.plan_version == job.version)) return 0;
    if (window) return std::nullopt;
    return job.plan->of(job.ranks[request.rank]->dp_rank).point < 0 ? 0 : *request.plan_version;
  }
  if (!job.plan || job.plan->version != job.version || !request.last_iteration) return std::nullopt;
  if (*request.last_iteration - count + 1 < job.plan->from_iteration) return std::nullopt;
  return job.plan->of(job.ranks[request.rank]->dp_rank).point < 0 ? 0 : job.plan->version;
}

}  // namespace

void IterationReports::report(jobs::ReportIterations request, work::Done<jobs::ReportedIterations> done) {
  if (stopping_) return done(Error{ErrorCode::unavailable, "the server is stopping: try again"});
  const std::string id = request.job;
  const int rank = request.rank;
  const std::int64_t version = request.plan_version.value_or(0);
  access_.with_rank(
      id, rank, version,
      [this, request = std::move(request), done = std::move(done)](const Result<live::LiveJob*>& live) mutable {
        if (!live) return done(live.error());
        take(**live, std::move(request), std::move(done));
      });
}

void IterationReports::take(live::LiveJob& live, jobs::ReportIterations request,
                            work::Done<jobs::ReportedIterations> done) {
  const jobs::Job& job = live.job;
  if (Status held = live::check_holder(job, request.rank, request.epoch); !held) return done(held.error());
  jobs_.rank_called(live, request.rank);
  if (access_.revive_if_expired(live)) return done(live::job_is_revived(job.id));
  if (!job.live()) return done(live::job_is_over(job));
  if (Status checked = jobs::check_report(request); !checked) return done(checked.error());
  request.microbatches.resize(request.iteration_time.size());
  std::ranges::replace(request.microbatches, 0, job.microbatches);
  if (request.clocks) {
    clock_counts_ += live.clocks.report(request.rank, *request.clocks, request.epoch, clock_.now_s());
  }
  const bool counts = job.ranks[request.rank]->restarts == job.restarts, numbered = request.last_iteration.has_value();
  std::vector<std::string> rejected;
  if (const auto count = std::ssize(request.iteration_time);
      counts && numbered &&
      !live.reports.note_reported(live.job, live.frontiers.all(), request.rank, *request.last_iteration, count,
                                  clock_.now_s())) {
    rejected.push_back(
        fmt::format("iteration_time_s: {} values; since the job registered {} iterations are possible: "
                    "these do not count",
                    count, live.reports.possible));
    request.last_iteration.reset();
  }
  if (request.last_iteration && counts &&
      !live.reports.note_progress(live.job, live.frontiers.all(), request.rank, *request.last_iteration,
                                  *request.last_iteration, clock_.now_s())) {
    rejected.push_back(fmt::format(
        "last_iteration: {}; {}", *request.last_iteration,
        job.spec.degrees.world_size() > 1 ? "no other rank has reached it" : "no later report has continued from it"));
    request.last_iteration.reset();
  }
  if (live.reports.has_put_off(job)) jobs_.plan_anew(live, clock_.now_s());
  if (request.plan_version && *request.plan_version > job.version && !live::is_provisional(*request.plan_version)) {
    // Of a server whose database was restored from a backup, or of a faulty client: counted for no plan.
    rejected.push_back(fmt::format("plan_version: {}; the job's last version is {}: the iterations do not count",
                                   *request.plan_version, job.version));
  }
  if (const auto window = plans::ProfilingWindows::window_of(live, request)) {
    return windows_.report(live, *window, std::move(request), std::move(done));
  }
  std::ranges::move(jobs::leave_out_energies(request), std::back_inserter(rejected));
  std::int64_t repeated = 0;
  if (request.last_iteration && counts) {
    repeated =
        live.reports.measured.repeated(request.rank, *request.last_iteration, std::ssize(request.iteration_time));
    note_measured(live, request);
    note_followed(live, request);
    keep_count(live, request);
  }
  stragglers_.detect(live, request);
  if (!numbered || (request.last_iteration && counts)) observe_energies(live, request, repeated);
  done(jobs::ReportedIterations{std::move(rejected)});
}

void IterationReports::note_measured(live::LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  const bool controlled = !job.uncontrolled.contains(request.rank);
  // Reports that do not name their plan follow the one in force from its first iteration on.
  std::int64_t version = request.plan_version.value_or(0);
  if (!request.plan_version && job.plan && *request.last_iteration - count + 1 >= job.plan->from_iteration) {
    version = job.plan->version;
  }
  if (!controlled || savings::plan_of_version(job, version) == nullptr) version = 0;
  const bool straggles = std::ranges::any_of(job.notices, &jobs::Notice::in_force);
  history_.add(live, live.reports.measured.report({request.rank, job.spec.degrees.world_size(), controlled, version,
                                                   *request.last_iteration, request.iteration_time,
                                                   request.iteration_energy, straggles, request.microbatches}));
}

void IterationReports::note_followed(live::LiveJob& live, const jobs::ReportIterations& request) {
  const jobs::Job& job = live.job;
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  if (!request.plan_version) live.reports.without_plan = true;
  if (!request.plan_version || count == 0) return;
  // From the first report that names its plan on, only such reports count: those before are counted first.
  if (!job.kept) {
    jobs_.execute(job.id, {[](const jobs::Job& now, double) -> Result<live::Decision> {
                             live::Decision decision;
                             if (now.live() && !now.kept) decision.events.emplace_back(jobs::ReportsKept{});
                             return decision;
                           },
                           {}});
  }
  // Iterations after a profiling window may name its version: they follow no plan. A rank that sets no clocks follows
  // none.
  const jobs::PlanDeployed* const known = savings::plan_of_version(job, *request.plan_version);
  const bool controlled = !job.uncontrolled.contains(request.rank);
  const std::int64_t version = known == nullptr || !controlled ? 0 : known->version;
  const bool asked = controlled && job.plan && job.plan->of(job.ranks[request.rank]->dp_rank).point >= 0;
  const bool straggles = std::ranges::any_of(job.notices, &jobs::Notice::in_force);
  live.reports.followed.report({request.rank, job.spec.degrees.world_size(), asked || version != 0, version,
                                *request.last_iteration, count, request.iteration_energy, straggles,
                                request.microbatches});
}

void IterationReports::keep_count(live::LiveJob& live, const jobs::ReportIterations& request) {
  const auto count = [this, last = *request.last_iteration,
                      reported = static_cast<std::int64_t>(request.iteration_time.size())](
                         const jobs::Job& job) -> std::vector<jobs::IterationsCounted> {
    const live::LiveJob* const now = jobs_.in_memory(job.id);
    if (now == nullptr || !job.live() || !job.plan) return {};
    // Counts that are not written are lost with this server: no other server has these reports.
    const std::int64_t enough = std::clamp(job.total.iterations / 8, kLeastCounted, kMostUncounted);
    if (now->reports.name_plans(now->job)) {
      if (std::ssize(now->reports.followed.whole()) < enough) return {};  // in memory, including counts being written
    } else {
      if (now->replan.plan_held_back) return {};
      if (job.counted_to < 0) {
        const auto first = savings::first_count(job, now->frontiers.all(), last, reported);
        return first ? std::vector{*first} : std::vector<jobs::IterationsCounted>{};
      }
      if (last - job.counted_to < enough) return {};
    }
    auto counts = live::counts_since(*now);
    std::int64_t iterations = 0;
    for (const jobs::IterationsCounted& one : counts) iterations += one.iterations;
    return iterations < enough ? std::vector<jobs::IterationsCounted>{} : std::move(counts);
  };
  const double now_s = clock_.now_s();
  if (count(live.job).empty()) {
    if (live.reports.uncounted_since_s || live::counts_since(live).empty()) return;
    live.reports.uncounted_since_s = now_s;
    return jobs_.set_wake(live, now_s);
  }
  jobs_.execute(live.job.id, {[count](const jobs::Job& now, double) -> Result<live::Decision> {
                                live::Decision decision;
                                for (const jobs::IterationsCounted& one : count(now)) {
                                  decision.events.emplace_back(one);
                                }
                                return decision;
                              },
                              {}});
}

void IterationReports::keep(live::LiveJob& live, work::Done<Ok> done) {
  jobs_.execute(live.job.id, {[this](const jobs::Job& job, double) -> Result<live::Decision> {
                                live::Decision decision;
                                live::LiveJob* const now = jobs_.in_memory(job.id);
                                if (now == nullptr || !job.live()) return decision;
                                std::int64_t counted_to = job.counted_to;
                                for (const jobs::IterationsCounted& count : live::counts_since(*now)) {
                                  counted_to = count.last_iteration;
                                  decision.events.emplace_back(count);
                                }
                                if (!now->reports.followed.known()) return decision;
                                jobs::ReportsKept kept = now->reports.followed.kept(counted_to);
                                if (kept != job.kept) decision.events.emplace_back(std::move(kept));
                                return decision;
                              },
                              std::move(done)});
}

void IterationReports::observe_energies(live::LiveJob& live, const jobs::ReportIterations& request,
                                        std::int64_t repeated) {
  const jobs::Job& job = live.job;
  if (request.iteration_energy.empty()) return;
  const auto version = version_followed(live, request);
  if (!version) return;
  // Iterations with a straggler are not comparable.
  if (std::ranges::any_of(job.notices, &jobs::Notice::in_force)) return;
  std::int64_t left_out = 0;
  if (request.last_iteration) {
    // The first iterations of a training warm up. The first ones after a plan still run at its clocks, on this rank or
    // on another.
    constexpr std::int64_t warm_up = 2;
    const std::int64_t comparable = *version == 0 ? std::max(live.reports.followed.settled_from(), warm_up) : warm_up;
    const std::int64_t count = std::ssize(request.iteration_time);
    left_out = std::clamp<std::int64_t>(comparable - (*request.last_iteration - count + 1), repeated, count);
  }
  // Like with like.
  std::map<int, std::pair<std::vector<Joules>, std::vector<Seconds>>> of_shape;
  for (auto i = static_cast<std::size_t>(left_out); i < request.iteration_time.size(); ++i) {
    auto& [energies, times] = of_shape[request.microbatches[i]];
    times.push_back(request.iteration_time[i]);
    energies.push_back(i < request.iteration_energy.size() ? request.iteration_energy[i] : Joules(0));
  }
  for (const auto& [shape, values] : of_shape) {
    live.reports.energies.report(*version, shape, request.rank, values.first, values.second);
    if (const auto measured = live.reports.energies.take(*version, shape, job.spec.degrees.world_size())) {
      write_measured(job.id, *measured);
    }
  }
}

void IterationReports::write_measured(const std::string& job, const jobs::EnergyMeasured& measured) {
  jobs_.execute(job, {[this, measured](const jobs::Job& now, double) -> Result<live::Decision> {
                        live::Decision decision;
                        // A restarted server has seen fewer iterations than its predecessor.
                        const auto& of_shape = measured.version == 0 ? now.measured_highest : now.measured_plan;
                        const auto known = of_shape.find(measured.shape);
                        const bool fewer = known != of_shape.end() && known->second.version == measured.version &&
                                           known->second.iterations > measured.iterations;
                        const bool of_now =
                            measured.version == 0 || (now.plan && now.plan->version == measured.version);
                        if (!now.live() || !of_now || fewer) return decision;
                        jobs::EnergyMeasured with_waiting = measured;
                        if (const live::LiveJob* const live = jobs_.in_memory(now.id); live != nullptr) {
                          const auto cost = savings::iteration_cost(now, live->frontiers.all());
                          if (cost) with_waiting.waiting_w = cost->waiting.value();
                        }
                        decision.events.emplace_back(with_waiting);
                        return decision;
                      },
                      {}});
}

}  // namespace perseus::reports
