#include "server/plans/profiling_windows.h"

#include <fmt/format.h>

#include <utility>

#include "base/cpu_time.h"
#include "server/live/registration_checks.h"
#include "server/plans/job_frontiers.h"

namespace perseus::plans {

void ProfilingWindows::go_on(live::LiveJob& live) {
  if (stopping_ || !profiles::is_profiled(live.job)) {
    if (live.profiling) live.profiling->search.request_stop();
    return;
  }
  const auto windows = static_cast<int>(live.job.windows.size());
  if (auto impossible = prepare(live)) return write(live.job.id, nullptr, windows, {*std::move(impossible)});
  profiles::JobProfiling& profiling = *live.profiling;
  const double now_s = clock_.now_s();
  if (profiling.deciding) return;
  if (!profiling.broken().empty()) {
    return write(live.job.id, nullptr, windows, {jobs::ProfilingFailed{profiling.broken()}});
  }
  if (profiling.windows() != windows) return;  // an append is in progress
  if (now_s < profiling.look_again_s) return;
  if (!profiling.window_complete() && !overdue(live.job, now_s)) return;
  profiling.deciding = true;
  decide_window(live.job.id, live.profiling);
}

std::optional<jobs::ProfilingFailed> ProfilingWindows::prepare(live::LiveJob& live) const {
  if (live.profiling && live.profiling->since() == live.job.profiling_since) return std::nullopt;
  live.windows.clear();
  auto made = profiles::JobProfiling::create(
      live.job, {options_.profiling_tolerance_pct, options_.profiling_iterations, options_.profiling_slowdown_pct,
                 options_.profiling_worst_slowdown_pct});
  if (!made) return jobs::ProfilingFailed{made.error().message};
  live.profiling = *std::move(made);
  return std::nullopt;
}

void ProfilingWindows::look_again(const std::string& id, profiles::JobProfiling& profiling) {
  profiling.deciding = false;
  profiling.look_again_s = clock_.now_s() + live::kRetryAfter_s;
  if (live::LiveJob* now = jobs_.in_memory(id)) jobs_.set_wake(*now, clock_.now_s());
}

void ProfilingWindows::stop() {
  stopping_ = true;
  for (const auto& [id, live] : jobs_.live()) {
    if (live->profiling) live->profiling->search.request_stop();
  }
}

bool ProfilingWindows::overdue(const jobs::Job& job, double now_s) const {
  return !job.windows.empty() && now_s >= job.window_s + profiles::window_limit_s(job, options_.profiling_window_s);
}

std::string ProfilingWindows::why_overdue(const jobs::Job& job) const {
  if (job.all_reported()) return "";
  std::string late;
  int number = 0;
  for (int rank = 0; rank < static_cast<int>(job.ranks.size()); ++rank) {
    if (job.ranks[rank]->dp_rank != job.measured_pipeline() || job.reported.contains(rank)) continue;
    if (++number <= 8) late += fmt::format("{}{}", number > 1 ? ", " : "", rank);
  }
  return fmt::format("{} of {} ranks ({}{}) have not reported profiling window {} in {:.4g} s", number,
                     job.spec.degrees.pp * job.spec.degrees.tp, late, number > 8 ? ", ..." : "", job.windows.size() - 1,
                     profiles::window_limit_s(job, options_.profiling_window_s));
}

void ProfilingWindows::decide_window(const std::string& id, const Profiling& profiling) {
  const live::LiveJob* live = jobs_.in_memory(id);
  const bool same = live != nullptr && live->profiling == profiling && profiles::is_profiled(live->job) &&
                    profiling->windows() == static_cast<int>(live->job.windows.size());
  if (!same) return void(profiling->deciding = false);
  const jobs::Job& job = live->job;
  auto question = profiling->question(job, why_overdue(job), options_.max_computations, options_.plan_deadlines);
  const bool judges = question.trial && !question.trial->results.empty();
  const std::string input = judges ? job.trial->candidate.profile.input : profiling->input_before(job);
  if (input.empty()) return submit_search(id, profiling, std::move(question));
  store_.read<std::optional<std::string>>([key = "input/" + input](store::Store& from) { return from.blob(key); },
                                          [this, id, profiling, judges, question = std::move(question)](
                                              const Result<std::optional<std::string>>& text) mutable {
                                            if (!text && text.error().code == ErrorCode::unavailable) {
                                              return look_again(id, *profiling);
                                            }
                                            (judges ? question.trial->input : question.before) =
                                                text && *text ? **text : "";
                                            submit_search(id, profiling, std::move(question));
                                          });
}

void ProfilingWindows::submit_search(const std::string& id, const Profiling& profiling,
                                     profiles::ProfilingQuestion question) {
  const live::LiveJob* const live = jobs_.in_memory(id);
  if (live == nullptr) return void(profiling->deciding = false);  // the job has ended since
  profiling->search = std::stop_source();
  const Search search{profiling->search.get_token(), options_.planning_budget_s - profiling->planner_s,
                      options_.planning_budget_s};
  characterizations_.in_turn(
      "profile/" + id, planning_owner_of(live->job),
      [this, id, profiling, profiler = profiling->lend(), search, pool = &executor_,
       question = std::move(question)](const Characterizations::TurnOver& turn_over) {
        pool->submit(work::Executor::Kind::planning,
                     [this, id, profiling, profiler, search, question, turn_over]() mutable -> std::function<void()> {
                       auto found = search.run(*profiler, question);
                       return [this, id, profiling, turn_over, window = question.window, found = std::move(found)] {
                         profiling->planner_s += found.planner_s;
                         turn_over(found.planner_s);
                         search_ended(id, profiling, window, found);
                       };
                     });
      });
}

ProfilingWindows::Search::Found ProfilingWindows::Search::run(const profiling::OnlineProfiler& profiler,
                                                              profiles::ProfilingQuestion& question) const {
  const double begin_s = thread_cpu_s();
  bool over_budget = false;
  StopCheck check([&] {
    over_budget = thread_cpu_s() - begin_s > left_s;
    return over_budget || stop.stop_requested();
  });
  auto decided = profiles::decide_profiling(profiler, question, check);
  if (!decided && over_budget && !stop.stop_requested()) {
    question.give_up = true;
    question.overdue = fmt::format(
        "the search for clocks to measure took longer than its budget of {:g} s (planning_budget_s)", budget_s);
    decided = profiles::decide_profiling(profiler, question, StopCheck::never());
  }
  return {std::move(decided), thread_cpu_s() - begin_s};
}

void ProfilingWindows::search_ended(const std::string& id, const Profiling& profiling, int window,
                                    const Search::Found& found) {
  if (const live::LiveJob* now = jobs_.in_memory(id)) profiling->give_back(now->job);
  if (found.decided) return write(id, profiling, window, *found.decided);
  profiling->deciding = false;
  if (live::LiveJob* now = jobs_.in_memory(id)) jobs_.set_wake(*now, clock_.now_s());
}

void ProfilingWindows::write(const std::string& id, const Profiling& profiling, int window,
                             const profiles::ProfilingDecision& decided) {
  const auto judged = std::make_shared<std::optional<jobs::ProfileOnTrial>>();
  const auto decide = [this, window, decided, judged](const jobs::Job& job, double now_s) -> Result<live::Decision> {
    judged->reset();
    if (!profiles::is_profiled(job) || static_cast<int>(job.windows.size()) != window) return live::Decision{};
    if (decided.trial && job.tries_profile()) *judged = job.trial->candidate;
    return events_of(job, decided, *judged, now_s);
  };
  jobs_.execute(id, {decide, [this, id, profiling, judged, ended = decided.trial](const Status& done) {
                       if (profiling) profiling->deciding = false;
                       if (done && *judged) profiles_.note_trial(id, **judged, *ended);
                     }});
}

live::Decision ProfilingWindows::events_of(const jobs::Job& job, const profiles::ProfilingDecision& decided,
                                           const std::optional<jobs::ProfileOnTrial>& judged, double now_s) {
  live::Decision decision;
  if (judged) decision.events.emplace_back(*decided.trial);
  if (const auto* confirmed = std::get_if<profiles::ProfileConfirmed>(&decided.next)) {
    if (!judged) return decision;
    jobs::ProfileKnown known = judged->profile;
    if (confirmed->own_links) {
      known.input = confirmed->own_links->event.input;
      decision.blobs.push_back(confirmed->own_links->blob);
    }
    known.pipelines = profiles::unprofiled_pipelines(job);
    if (static_cast<int>(known.pipelines.size()) == job.num_pipelines()) known.pipelines.clear();
    known.text = decided.trial->text;
    known.by = jobs::kByServer;
    decision.events.emplace_back(std::move(known));
  } else if (const auto* next = std::get_if<jobs::WindowHandedOut>(&decided.next)) {
    jobs::WindowHandedOut event = *next;
    event.version = job.version + 1;
    const live::LiveJob* const live = jobs_.in_memory(job.id);
    const std::int64_t common =
        live == nullptr
            ? 0
            : live->reports.next_common_iteration(live->job, live->frontiers.all(), now_s, options_.margin_iterations);
    event.from_iteration = profiles::first_iteration_of(event, job, common);
    decision.events.emplace_back(std::move(event));
  } else if (const auto* measured = std::get_if<profiles::ProfileMeasured>(&decided.next)) {
    jobs::ProfileKnown event = measured->known.event;
    event.text += profiles::text_of_cost(job);
    event.by = jobs::kByServer;
    decision.events.emplace_back(std::move(event));
    decision.blobs.push_back(measured->known.blob);
    live::note_learned(job, measured->known.event, now_s, decision);
  } else if (const auto* modeled = std::get_if<jobs::SavingModeled>(&decided.next)) {
    decision.events.emplace_back(*modeled);
  } else {
    decision.events.emplace_back(std::get<jobs::ProfilingFailed>(decided.next));
  }
  return decision;
}

std::optional<int> ProfilingWindows::window_of(const live::LiveJob& live, const jobs::ReportIterations& request) {
  if (request.window) return request.window;
  if (!profiles::is_profiled(live.job) || live.job.windows.empty() || request.time_s.empty()) return std::nullopt;
  return live.windows.handed(request.rank).value_or(live.job.windows.back().number);
}

namespace {

jobs::ResultReported result_of(int window, jobs::ReportIterations request) {
  jobs::ResultReported result{request.rank,
                              window,
                              {},
                              {},
                              std::move(request.time_s),
                              std::move(request.energy_j),
                              std::move(request.throttled),
                              std::move(request.missed),
                              std::move(request.begin_s),
                              std::move(request.end_s)};
  for (const Seconds time : request.iteration_time) result.iteration_time_s.push_back(time.value());
  for (const Joules energy : request.iteration_energy) result.iteration_energy_j.push_back(energy.value());
  return result;
}

}  // namespace

void ProfilingWindows::report(live::LiveJob& live, int window, jobs::ReportIterations request,
                              work::Done<jobs::ReportedIterations> done) {
  const jobs::Job& job = live.job;
  if (Status named = check_text("missed", request.missed, 1024); !named) return done(named.error());
  const auto left_out = [&](const std::string& why) { done(jobs::ReportedIterations{{why}}); };
  if (!profiles::is_profiled(job)) return left_out(fmt::format("window {}: the job is not being profiled", window));
  const int last = static_cast<int>(job.windows.size()) - 1;
  if (window < 0 || window > last) {
    return done(Error{ErrorCode::usage, fmt::format("window: {}; {} were handed out, from 0", window, last + 1)});
  }
  live.windows.ran(request.rank, window);
  if (window < last) return left_out(fmt::format("window {} is over: window {} runs now", window, last));
  if (job.ranks[request.rank]->dp_rank != job.measured_pipeline()) return done(jobs::ReportedIterations{});
  const jobs::ResultReported result = result_of(window, std::move(request));
  const bool no_energies = result.missed.empty() && result.iteration_energy_j.empty() && result.energy_j.empty();
  const auto decide = [profiling = live.profiling, result, no_energies](const jobs::Job& now,
                                                                        double) -> Result<live::Decision> {
    live::Decision decision;
    const bool wanted = profiles::is_profiled(now) && result.window + 1 == static_cast<int>(now.windows.size()) &&
                        !now.reported.contains(result.rank);
    if (!wanted) return decision;  // a retry, or too late
    if (no_energies) {
      const std::string why = fmt::format(
          "rank {} measures no energies: its device has no energy counter, does not permit reading it, or shows values "
          "that cannot be right (the rank's log names them)",
          result.rank);
      if (now.profiling->keeps_clocks) {
        decision.events.emplace_back(profiles::not_modeled(now, why));
      } else {
        decision.events.emplace_back(
            jobs::ProfilingFailed{why + "; a plan needs them: upload a profile, or give the job the name of one"});
      }
      return decision;
    }
    const bool checks = profiling && profiling->windows() > result.window && profiling->takes(now.windows.back());
    if (checks && result.missed.empty()) {
      if (Status checked = profiling->check(now, result); !checked) return checked.error();
    }
    decision.events.emplace_back(result);
    return decision;
  };
  jobs_.execute(job.id, {decide, [this, id = job.id, rank = result.rank, window, done](const Status& status) {
                           if (!status) return done(status.error());
                           const live::LiveJob* now = jobs_.in_memory(id);
                           jobs::ReportedIterations reported;
                           if (now != nullptr && now->profiling) {
                             reported.rejected = now->profiling->rejections(rank, window);
                           }
                           done(std::move(reported));
                         }});
}

}  // namespace perseus::plans
