#include "server/profiles/job_profiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "io/formats/profile_csv.h"
#include "server/jobs/event_text.h"
#include "server/jobs/job_shapes.h"
#include "server/profiles/modeled_saving.h"
#include "server/profiles/profiler_input.h"
#include "server/profiling/measured_pipelines.h"
#include "server/profiling/profile_estimate.h"
#include "server/profiling/scaled_profile.h"

namespace perseus::profiles {
namespace {

constexpr int kPlainIterations = 5;  // the paper's "about five"
constexpr std::size_t kKeptRejections = 20;
constexpr double kUsualTimes = 10;
constexpr double kLeastLimitShare = 0.1;
constexpr int kMostOverdue = 2;      // windows in a row
constexpr int kMostAtOneClock = 40;  // windows, until every computation has a usable time and energy
constexpr std::size_t kLeastToScale = 2, kMostToScale = 4;  // windows, the first at the highest clock

profiling::ProfilingOptions options_of(const jobs::Job& job) {
  profiling::ProfilingOptions options;
  if (!job.spec.plain_profiling && !(job.profiling && job.profiling->keeps_clocks)) return options;
  options.mode = profiling::ProfilingMode::plain;
  options.iterations_per_window = kPlainIterations;
  return options;
}

template <class To, class From>
std::vector<std::vector<To>> converted(const std::vector<std::vector<From>>& lists, To (*convert)(From)) {
  std::vector<std::vector<To>> result;
  for (const auto& list : lists) {
    auto& own = result.emplace_back();
    for (const From value : list) own.push_back(convert(value));
  }
  return result;
}

std::vector<std::vector<Megahertz>> clocks_of(const std::vector<std::vector<int>>& mhz) {
  return converted<Megahertz, int>(mhz, [](int value) { return Megahertz(value); });
}
std::vector<std::vector<int>> numbers_of(const std::vector<std::vector<Megahertz>>& clocks) {
  return converted<int, Megahertz>(clocks, [](Megahertz clock) { return clock.value(); });
}

bool without_profile(const jobs::Job& job) {
  return std::ranges::any_of(job.input_of, [](const std::string& input) { return input.empty(); });
}

/// Uses the links that ranks measured, unless the job specifies its links.
void use_links(jobs::PipelineShape& shape, const std::optional<profiling::MeasuredLinks>& links) {
  if (!links || shape.transfer_latency) return;
  shape.transfer_latency = links->latency;
  shape.blocking_transfers = links->blocking_transfers;
  auto& boundaries = shape.transfer_latency->boundaries;
  for (model::BoundaryLatency& b : boundaries) b = {rounded_latency(b.forward), rounded_latency(b.backward)};
  const auto differs = [&](const model::BoundaryLatency& b) {
    return b != boundaries.front() || b.forward != b.backward;
  };
  if (std::ranges::none_of(boundaries, differs)) shape.transfer_latency = boundaries.front().forward;
}

}  // namespace

std::vector<int> unprofiled_pipelines(const jobs::Job& job) {
  std::vector<int> pipelines;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    const bool again = job.measure_again_s > 0 && (job.dropped.contains(job.input_of[p]) ||
                                                   job.dropped.contains(jobs::input_for(job, p, job.prevailing())));
    if (job.input_of[p].empty() || again) pipelines.push_back(p);
  }
  return pipelines;
}

bool awaits_profiling(const jobs::Job& job) {
  const bool ended = job.state == jobs::JobState::failed || job.state == jobs::JobState::deployed;
  const bool open = (job.state == jobs::JobState::registered && !job.unprofiled) || (ended && job.profile_again);
  return open && job.spec.profile_online && job.spec.shape && without_profile(job);
}

bool may_measure_again(const jobs::Job& job, double now_s) {
  const bool open = job.state == jobs::JobState::deployed || job.state == jobs::JobState::failed;
  return open && job.measure_again_s > 0 && now_s >= job.measure_again_s && job.varies.empty() &&
         job.ranks_registered == job.spec.degrees.world_size() && job.uncontrolled.empty() &&
         !unprofiled_pipelines(job).empty();
}

bool is_profiled(const jobs::Job& job) { return job.state == jobs::JobState::profiling && without_profile(job); }

std::optional<jobs::ProfilingFailed> profiling_impossible(const jobs::Job& job) {
  const int rank = job.uncontrolled_rank();
  if (rank < 0) return std::nullopt;
  const bool keeps_clocks =
      is_profiled(job) ? job.profiling->keeps_clocks : std::ssize(job.uncontrolled) == job.ranks_registered;
  if (keeps_clocks) return std::nullopt;
  return jobs::ProfilingFailed{jobs::text_of_control(rank, job.ranks[rank]->control, job.ranks[rank]->control_reason) +
                               "; no clocks can be measured: give the job a profile, or the rank the permission"};
}

std::int64_t first_iteration_of(const jobs::WindowHandedOut& window, const jobs::Job& job, std::int64_t earliest) {
  if (earliest == 0) return 0;
  std::int64_t first = earliest;
  if (window.rest > 0) {
    const jobs::WindowHandedOut* const before = job.windows.empty() ? nullptr : &job.windows.back();
    const bool known = before != nullptr && before->from_iteration > 0;
    first = std::max(first, (known ? before->from_iteration + before->iterations : earliest) + window.rest);
  }
  return first;
}

namespace {

std::string no_clocks_known(const jobs::Job& job, const Error& error) {
  const int rank = job.uncontrolled_rank();
  return fmt::format("{}; {}: no saving can be modeled without a profile",
                     jobs::text_of_control(rank, job.ranks[rank]->control, job.ranks[rank]->control_reason),
                     error.message);
}

}  // namespace

jobs::EventBody profiling_start(const jobs::Job& job) {
  if (auto impossible = profiling_impossible(job)) return *impossible;
  jobs::ProfilingStarted start{unprofiled_pipelines(job), {}, job.uncontrolled_rank() >= 0};
  if (job.measure_again_s > 0) start.before = job.input_of[start.pipelines.front()];
  const jobs::PipelineShape shape = profiling_shape(job);
  const auto schedule = jobs::schedule_of(shape, job.spec.degrees.pp);
  if (!schedule) return jobs::ProfilingFailed{schedule.error().message};
  start.clocks_mhz.resize(schedule->num_stages);
  for (int rank = 0; rank < std::min(schedule->num_ranks(), job.spec.degrees.pp); ++rank) {
    const auto clocks = common_clocks(job, start.pipelines.front(), rank);
    if (!clocks && start.keeps_clocks) return jobs::ProfilingFailed{no_clocks_known(job, clocks.error())};
    if (!clocks) return jobs::ProfilingFailed{clocks.error().message};
    for (int tp = 0; tp < job.spec.degrees.tp; ++tp) {
      const int number = job.rank_at[job.coordinate(start.pipelines.front(), rank, tp)];
      if (Status fits = check_instructions(job, number, *schedule); !fits)
        return jobs::ProfilingFailed{fits.error().message};
    }
    for (const model::Action& action : schedule->ranks[rank]) {
      if (start.clocks_mhz[action.stage].empty()) start.clocks_mhz[action.stage] = *clocks;
    }
  }
  // A GPU whose clock is not set runs at the highest one, or as close to it as its limits allow.
  for (auto& clocks : start.clocks_mhz) {
    if (start.keeps_clocks && clocks.size() > 1) clocks.erase(clocks.begin() + 1, clocks.end());
  }
  auto profiled = profiling_job(job, clocks_of(start.clocks_mhz));
  if (!profiled) return jobs::ProfilingFailed{profiled.error().message};
  const auto profiler = profiling::OnlineProfiler::create(*std::move(profiled), options_of(job));
  if (!profiler) return jobs::ProfilingFailed{profiler.error().message};
  return start;
}

double window_limit_s(const jobs::Job& job, double most_s) {
  if (job.longest_window_s == 0) return most_s;
  // The iterations at the highest clock that come first, and a margin until ranks receive the window.
  const int rest = job.windows.empty() ? 0 : job.windows.back().rest;
  return std::clamp(kUsualTimes * job.longest_window_s, kLeastLimitShare * most_s, most_s) +
         2 * rest * job.profiled.highest_s;
}

jobs::SavingModeled not_modeled(const jobs::Job& job, const std::string& why) {
  jobs::SavingModeled modeled;
  for (const auto& rank : job.ranks) {
    if (rank && modeled.gpu.empty()) modeled.gpu = rank->gpu;
  }
  modeled.text = "no saving is modeled: " + why;
  return modeled;
}

std::string text_of_cost(const jobs::Job& job) {
  const jobs::Job::Profiled& profiled = job.profiled;
  if (profiled.highest_s <= 0) return "";
  const std::int64_t phase = std::max<std::int64_t>(
      profiled.iterations, profiled.first_iteration > 0 ? profiled.last_iteration - profiled.first_iteration + 1 : 0);
  return fmt::format(
      "; of {} iterations, {} measured, the mean was {:.1f} % slower, the worst {:.1f} %: {:.3g} s and {:.1f} J in all",
      phase, profiled.iterations,
      100 * profiled.extra_s / profiled.highest_s / static_cast<double>(std::max<std::int64_t>(1, phase)),
      profiled.worst_slowdown_pct, profiled.extra_s,
      static_cast<double>(job.profiling->pipelines.size()) * profiled.extra_j);
}

namespace {

using NextStep = decltype(ProfilingDecision::next);

std::string not_measured(const std::string& why, const Error& error) {
  return fmt::format("no saving is modeled: {}{}{}", why, why.empty() ? "" : "; ", error.message);
}

jobs::WindowHandedOut at_highest(jobs::WindowHandedOut window, const ProfilingQuestion& question) {
  window.iterations = question.plain ? kPlainIterations : 1;
  window.clocks_mhz = question.maximum_clocks;
  window.highest = true;
  return window;
}

/// Computations that could be measured at one of their clocks only. `all`: every one, so that no plan can save
/// anything.
struct AtOneClock {
  std::string first;
  int count = 0;
  bool all = true;
  Seconds least{std::numeric_limits<double>::infinity()}, most;  ///< that they take
};

AtOneClock at_one_clock(const profiling::ProfileEstimate& estimate, const model::Profile& measured) {
  AtOneClock found;
  for (std::size_t e = 0; e < measured.entries.size(); ++e) {
    const model::ProfileEntry& entry = measured.entries[e];
    const bool one = entry.measurements.size() == 1;
    if (one && estimate.profile.entries[e].measurements.size() > 1) {
      if (found.count++ == 0) found.first = fmt::format("{} of stage {}", entry.instruction, entry.stage);
      found.least = std::min(found.least, entry.measurements[0].time);
      found.most = std::max(found.most, entry.measurements[0].time);
    }
    found.all = found.all && one;
  }
  found.all = found.all && found.count > 0;
  return found;
}

NextStep profile_measured(const model::Profile& profile, const jobs::PipelineShape& shape,
                          const profiling::ProfileEstimate& estimate, const ProfilingQuestion& question,
                          const std::string& why) {
  auto known = known_input(formats::format_profile_csv(profile), shape, question.limits, "measured online",
                           question.pipelines, question.fixed_latency);
  if (!known) return jobs::ProfilingFailed{known.error().message};
  known->event.text = why;
  known->event.doubts.clear();  // the server has judged these measurements itself
  if (estimate.links && !question.shape.transfer_latency) {
    known->event.text += fmt::format("; transfers take {}{}", perseus::model::text_of(*shape.transfer_latency),
                                     shape.blocking_transfers ? ", and senders wait for them" : "");
  }
  return ProfileMeasured{*std::move(known)};
}

/// The profile before, with the computations scaled that deviate from it; nothing: that is not enough.
std::optional<NextStep> scaled_before(const profiling::OnlineProfiler& profiler, const ProfilingQuestion& question) {
  const auto before = jobs::parse_input(question.before, "profile");
  if (!before) return std::nullopt;
  auto profile = formats::parse_profile_csv(before->profile_csv, "profile");
  const auto estimate = profiler.estimate();
  if (!profile || !estimate) return std::nullopt;
  const auto scaled = profiling::scaled_profile(*std::move(profile), *estimate);
  if (!scaled) return std::nullopt;
  jobs::PipelineShape shape = question.shape;
  use_links(shape, estimate->links);
  return profile_measured(scaled->profile, with_constants_of(shape, before->shape), *estimate, question,
                          fmt::format("after {} iterations {}", profiler.iterations_handed_out(), scaled->text));
}

/// Nothing if `check` stopped the search.
std::optional<NextStep> next_step(const profiling::OnlineProfiler& profiler, const ProfilingQuestion& question,
                                  StopCheck& check) {
  jobs::WindowHandedOut window;
  window.number = question.window;
  window.microbatches = question.microbatches;
  window.overdue = question.overdue;
  if (!question.overdue.empty() && !question.give_up) return at_highest(std::move(window), question);
  if (!question.before.empty()) {
    if (auto scaled = scaled_before(profiler, question)) return scaled;
  }
  std::string why = question.overdue;
  const bool goes_on = !question.give_up && !(question.keeps_clocks && question.window >= kMostAtOneClock);
  if (goes_on) {
    const std::optional<profiling::ProfilingStep> next = profiler.next(check);
    if (!next) return std::nullopt;
    if (const profiling::ProfilingWindow* found = next->window()) {
      window.iterations = found->iterations;
      window.warm_up = found->warm_up;
      window.confirming = found->confirming;
      window.clocks_mhz = numbers_of(found->clocks);
      window.rest = found->rest;
      window.slowdown_pct = found->slowdown_pct;
      window.highest = window.clocks_mhz == question.maximum_clocks;
      window.uncertainty_pct = next->doubt.worst_bound_pct;
      window.text = next->doubt.text;
      return window;
    }
    why = next->done()->why;
  }
  const auto estimate = profiler.estimate();
  if (!estimate && question.keeps_clocks) {
    if (goes_on) return at_highest(std::move(window), question);
    return jobs::SavingModeled{question.gpu, {}, {}, not_measured(question.overdue, estimate.error())};
  }
  if (!estimate) return jobs::ProfilingFailed{fmt::format("{}; {}", why, estimate.error().message)};
  jobs::PipelineShape shape = question.shape;
  if (!shape.blocking_power) shape.blocking_power = estimate->blocking_power;  // no rank measured it
  use_links(shape, estimate->links);
  if (question.keeps_clocks) {
    auto modeled = saving_modeled(
        {profiling::for_planning(*estimate), shape, question.gpu, question.clocks, question.gpus, question.limits},
        check);
    return modeled ? std::optional<NextStep>(*std::move(modeled)) : std::nullopt;
  }
  const model::Profile measured = profiling::for_planning(*estimate);
  const AtOneClock one_clock = at_one_clock(*estimate, measured);
  if (one_clock.all) {
    return jobs::ProfilingFailed{fmt::format(
        "{}, no computation could be measured at another clock than the highest: they take {:.3g} to {:.3g} ms{}; "
        "all run at the highest clock, which saves nothing",
        why, 1e3 * one_clock.least.value(), 1e3 * one_clock.most.value(),
        shape.switch_latency ? fmt::format(", and a clock change {:.3g} ms", 1e3 * shape.switch_latency->value())
                             : "")};
  }
  if (one_clock.count > 0) {
    why += fmt::format("; measured at one clock only: {}{}", one_clock.first,
                       one_clock.count > 1 ? fmt::format(" and {} more", one_clock.count - 1) : "");
  }
  return profile_measured(measured, shape, *estimate, question, why);
}

/// A learned profile was measured on other links. Nothing: the job specifies its links, its ranks did not measure
/// them, or they equal those of the profile.
std::optional<KnownInput> with_own_links(const ProfilingQuestion& question) {
  if (question.shape.transfer_latency) return std::nullopt;
  const auto learned = jobs::parse_input(question.trial->input, "profile");
  if (!learned) return std::nullopt;
  const auto schedule = jobs::schedule_of(learned->shape, learned->ranks);
  if (!schedule) return std::nullopt;
  profiling::MeasuredPipelines measured(*schedule);
  for (const profiling::RankResult& result : question.trial->results) measured.add(result);
  jobs::PipelineShape shape = learned->shape;
  shape.transfer_latency.reset();
  use_links(shape, measured.links());
  if (!shape.transfer_latency || shape == learned->shape) return std::nullopt;
  auto known =
      known_input(learned->profile_csv, shape, question.limits, "learned", question.pipelines, question.fixed_latency);
  return known ? std::optional(*std::move(known)) : std::nullopt;
}

}  // namespace

std::optional<ProfilingDecision> decide_profiling(const profiling::OnlineProfiler& profiler,
                                                  const ProfilingQuestion& question, StopCheck& check) {
  std::optional<jobs::TrialEnded> ended;
  if (question.trial) ended = judge_trial(*question.trial);
  if (ended && ended->agreed) return ProfilingDecision{ProfileConfirmed{with_own_links(question)}, ended};
  std::optional<NextStep> next = next_step(profiler, question, check);
  if (!next) return std::nullopt;
  auto* const window = std::get_if<jobs::WindowHandedOut>(&*next);
  const bool compares = (question.trial && !ended) || question.again;
  if (compares && window != nullptr && window->highest)
    window->iterations = std::max(window->iterations, kTrialIterations);
  return ProfilingDecision{*std::move(next), ended};
}

JobProfiling::JobProfiling(std::int64_t since, model::Schedule schedule, profiling::OnlineProfiler profiler)
    : since_(since),
      schedule_(std::move(schedule)),
      profiler_(std::make_shared<profiling::OnlineProfiler>(std::move(profiler))) {}

Result<std::shared_ptr<JobProfiling>> JobProfiling::create(const jobs::Job& job, const ProfilingLimits& limits) {
  auto profiled = profiling_job(job, clocks_of(job.profiling->clocks_mhz));
  if (!profiled) return profiled.error();
  model::Schedule schedule = profiled->schedule;
  profiling::ProfilingOptions options = options_of(job);
  options.tolerance_pct = limits.tolerance_pct;
  options.max_iterations = limits.most_iterations;
  options.mean_slowdown_pct = job.spec.profiling_slowdown_pct.value_or(limits.slowdown_pct);
  options.worst_slowdown_pct = job.spec.profiling_worst_slowdown_pct.value_or(limits.worst_slowdown_pct);
  auto profiler = profiling::OnlineProfiler::create(*std::move(profiled), options);
  if (!profiler) return profiler.error();
  std::shared_ptr<JobProfiling> made(new JobProfiling(job.profiling_since, std::move(schedule), *std::move(profiler)));
  auto result = job.results.begin();
  for (const jobs::WindowHandedOut& window : job.windows) {
    made->feed(job, {0, window});
    for (; result != job.results.end() && result->window == window.number; ++result) made->feed(job, {0, *result});
  }
  return made;
}

void JobProfiling::take(const jobs::Job& job, std::int64_t sequence, const jobs::Event& event) {
  const bool matters = sequence > since_ && (std::holds_alternative<jobs::WindowHandedOut>(event.body) ||
                                             std::holds_alternative<jobs::ResultReported>(event.body));
  if (!matters) return;
  if (lent_) {
    later_.push_back(event);
  } else {
    feed(job, event);
  }
}

/// 0: as the job registered.
void JobProfiling::change_shape(const jobs::Job& job, int microbatches) {
  if (microbatches == microbatches_ || !broken_.empty()) return;
  const auto shape = profiling_shape(job, microbatches);
  const auto schedule = shape ? jobs::schedule_of(*shape, job.spec.degrees.pp) : Result<model::Schedule>(shape.error());
  Status changed = schedule ? profiler_->change_schedule(*schedule) : Status(schedule.error());
  if (!changed) {
    broken_ = fmt::format("steps have {} microbatches now: {}", microbatches, changed.error().message);
    return;
  }
  schedule_ = *schedule;
  microbatches_ = microbatches;
}

void JobProfiling::feed(const jobs::Job& job, const jobs::Event& event) {
  if (const auto* handed_out = std::get_if<jobs::WindowHandedOut>(&event.body)) {
    change_shape(job, handed_out->microbatches);
    profiling::ProfilingWindow window{handed_out->number,
                                      handed_out->iterations,
                                      handed_out->warm_up,
                                      handed_out->confirming,
                                      clocks_of(handed_out->clocks_mhz),
                                      handed_out->rest,
                                      handed_out->slowdown_pct};
    if (Status taken = profiler_->hand_out(std::move(window)); !taken) broken_ = taken.error().message;
    return;
  }
  const auto& result = std::get<jobs::ResultReported>(event.body);
  const bool late = static_cast<std::size_t>(result.window) < job.windows.size() && !takes(job.windows[result.window]);
  if (!result.missed.empty() || late) {
    const jobs::Rank& rank = *job.ranks[result.rank];
    if (Status taken = profiler_->miss(rank.pp_rank, rank.tp_rank, result.window); !taken) {
      broken_ = taken.error().message;
      return;
    }
    reject(result, fmt::format("rank {}, window {}: nothing was measured: {}", result.rank, result.window,
                               late ? "steps have another number of microbatches since" : result.missed));
    return;
  }
  const auto rejections = profiler_->report(rank_result(job, result, schedule_));
  if (!rejections) {
    broken_ = rejections.error().message;
    return;
  }
  for (const profiling::Rejection& rejection : *rejections) {
    const bool same_name = rejection.rank == result.rank && rejection.replica == 0;
    std::string text = same_name ? rejection.message : fmt::format("rank {}: {}", result.rank, rejection.message);
    reject(result, std::move(text));
  }
}

void JobProfiling::reject(const jobs::ResultReported& result, std::string text) {
  rejections_[{result.rank, result.window}].push_back(text);
  last_rejections_.push_back(std::move(text));
  if (last_rejections_.size() > kKeptRejections) last_rejections_.pop_front();
  ++rejected_;
}

Status JobProfiling::check(const jobs::Job& job, const jobs::ResultReported& result) const {
  return profiler_->check(rank_result(job, result, schedule_));
}

namespace {

/// The GPU of the ranks that measure.
void add_gpu(const jobs::Job& job, ProfilingQuestion& question) {
  question.gpus = job.spec.degrees.world_size();
  if (const auto clocks = common_clocks(job, job.measured_pipeline(), 0)) {
    for (const int clock : *clocks) question.clocks.emplace_back(clock);
  }
  std::optional<std::string> gpu;
  for (const auto& rank : job.ranks) {
    if (!rank || rank->dp_rank != job.measured_pipeline()) continue;
    if (gpu && *gpu != rank->gpu) return;
    gpu = rank->gpu;
  }
  question.gpu = gpu.value_or("");
}

}  // namespace

std::string JobProfiling::input_before(const jobs::Job& job) const {
  const bool in_time = job.windows.size() >= kLeastToScale && job.windows.size() <= kMostToScale;
  return in_time && !job.spec.plain_profiling ? job.profiling->before : "";
}

ProfilingQuestion JobProfiling::question(const jobs::Job& job, const std::string& overdue, int max_computations,
                                         int deadlines) {
  change_shape(job, job.prevailing() == own_shape(job).microbatches ? 0 : job.prevailing());
  ProfilingQuestion question;
  question.microbatches = microbatches_;
  question.window = static_cast<int>(job.windows.size());
  question.plain = job.spec.plain_profiling || job.profiling->keeps_clocks;
  question.overdue = overdue;
  question.give_up = !overdue.empty() && job.windows_overdue + 1 >= kMostOverdue;
  for (const auto& actions : schedule_.ranks) {
    auto& clocks = question.maximum_clocks.emplace_back();
    for (const model::Action& action : actions) {
      clocks.push_back(model::is_constant_time(action.instruction) ? 0
                                                                   : job.profiling->clocks_mhz[action.stage].front());
    }
  }
  question.keeps_clocks = job.profiling->keeps_clocks;
  if (question.keeps_clocks) add_gpu(job, question);
  question.pipelines = unprofiled_pipelines(job);
  if (static_cast<int>(question.pipelines.size()) == job.num_pipelines()) question.pipelines.clear();
  const auto shape = profiling_shape(job, microbatches_);
  question.shape = shape ? *shape : profiling_shape(job);
  question.fixed_latency = own_shape(job).switch_latency || job.spec.switch_latency_s;
  question.limits = {job.spec.degrees.pp, max_computations, deadlines};
  question.again = !job.profiling->before.empty() && !question.plain;
  if (job.tries_profile()) {
    TrialQuestion& trial = question.trial.emplace();
    for (const auto& clocks : job.profiling->clocks_mhz) trial.highest_mhz.push_back(clocks.front());
    const bool usable =
        !job.windows.empty() && job.windows.back().highest && !job.windows.back().warm_up && takes(job.windows.back());
    for (const jobs::ResultReported& result : job.results) {
      if (!usable || result.window != job.windows.back().number || !result.missed.empty()) continue;
      trial.results.push_back(rank_result(job, result, schedule_));
    }
  }
  return question;
}

std::shared_ptr<const profiling::OnlineProfiler> JobProfiling::lend() {
  lent_ = true;
  return profiler_;
}

void JobProfiling::give_back(const jobs::Job& job) {
  lent_ = false;
  for (const jobs::Event& event : std::exchange(later_, {})) feed(job, event);
}

std::vector<std::string> JobProfiling::rejections(int rank, int window) const {
  const auto found = rejections_.find({rank, window});
  return found == rejections_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace perseus::profiles
