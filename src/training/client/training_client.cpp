#include "training/client/training_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/count_text.h"
#include "training/client/call_cost.h"
#include "training/client/rank_device.h"

namespace perseus::client {
namespace {

// Each wake-up of the watching thread costs some 30 us of cold caches: it wakes for the counter, and otherwise
// rarely, since the recorder keeps many steps.
constexpr double kLeastWatch_s = 0.05, kMostWatch_s = 0.15;
constexpr double kLearnedInterval_s = 0.5;
constexpr std::size_t kMostTables = 64;     ///< action tables, by microbatches
constexpr std::size_t kMostLimited = 64;    ///< times under a limit that are kept
constexpr std::int64_t kLeastReached = 32;  ///< changes until their usual delay is known

}  // namespace

TrainingClient::TrainingClient(ClientOptions options)
    : options_(std::move(options)),
      complaints_(options_.log, options_.log_pauses),
      calls_(options_, complaints_),
      guard_(options_.plan_tolerance, options_.most_slowdown),
      shapes_(options_.microbatches) {}

TrainingClient::~TrainingClient() { stop(); }

void TrainingClient::start(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) complaints_.say(LogLevel::warning, remark);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.start_limit_s);
  if (needs_cuda_view(options_)) cuda_view_ = device::look_at_cuda();
  while (!watching_.running() && std::chrono::steady_clock::now() < until) {
    watching_.start("perseus-watch", [this](const std::stop_token& stop) { watch(stop); });
    if (!watching_.running()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (!watching_.running()) {
    complaints_.say(LogLevel::error, "no thread can be created: nothing is measured and no clock is set");
    return;
  }
  std::unique_lock lock(mutex_);
  const bool opened = changed_.wait_until(lock, until, [&] { return opened_; });
  lock.unlock();
  if (opened && session_) {
    session_->wait_for_job(std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count());
  }
}

bool TrainingClient::stop() {
  const double from = host_now_s();
  calls_.pacer().stop();
  if (!watching_.stop(options_.start_limit_s / 2)) left_behind_ = true;
  bool opened = false;
  {
    // A thread that hangs before this point ends everything that it has opened by itself, see open().
    const std::lock_guard lock(mutex_);
    opened = opened_;
  }
  if (opened) {
    end_control();
    if (session_) session_->stop(options_.start_limit_s - (host_now_s() - from));
  }
  complaints_.silence(options_.start_limit_s / 2);
  return !left_behind_;
}

void TrainingClient::end_control() {
  calls_.stop_control();
  if (!control_) return;
  control_->stop();
  if (const std::string stuck = control_->left_locked(); !stuck.empty()) {
    complaints_.say(LogLevel::error, stuck);
  } else if (locked_before_.value() != 0 && control_->statistics().applied > 0) {
    complaints_.say(LogLevel::info, fmt::format("the driver chooses the GPU's clock again: the lock at {} MHz that was "
                                                "there before is gone",
                                                locked_before_.value()));
  }
  locked_before_ = Megahertz(0);
}

// ---- The watching thread: all work that may take time

/// False: stop() came first.
bool TrainingClient::open(const std::stop_token& stop) {
  // Again, after memory ran out: the training thread may use the controller already.
  if (!control_) open_device(stop);
  meter_ = std::make_unique<IterationMeter>(gpu_.get(), !options_.no_energy, facts_.clocks_mhz, options_.chunks,
                                            complaints_);
  if (!control_) meter_->without_control();
  if (!stop.stop_requested()) open_session();
  {
    const std::lock_guard lock(mutex_);
    opened_ = !stop.stop_requested();
    changed_.notify_all();
  }
  if (opened_) return true;
  end_control();
  session_.reset();
  return false;
}

void TrainingClient::watch(const std::stop_token& stop) {
  if (!opened_ && !open(stop)) return;  // opened already: this thread runs again after it ran out of memory
  double now = host_now_s();
  const auto interval_s = [this] {
    return std::clamp(2 * calls_.last_iteration_time_s(), kLeastWatch_s, kMostWatch_s);
  };
  while (sleep_for(stop, std::clamp(meter_->next_look_s() - now, 0.0, interval_s()))) {
    now = host_now_s();
    measure(now, false);
    look_after(now);
    now = host_now_s();
  }
  measure(host_now_s(), true);
  complaints_.remind(true);
}

void TrainingClient::open_device(const std::stop_token& stop) {
  RankDevice opened = open_rank_device(options_, cuda_view_, complaints_, stop);
  facts_ = std::move(opened.facts);
  no_control_ = std::move(opened.no_control);
  gpu_ = std::move(opened.gpu);
  locked_before_ = opened.locked_before;
  control_ = std::move(opened.control);
  if (!control_) return;
  calls_.use_control(*control_, facts_.clocks_mhz.front());
  budget_.use_control(control_.get(), facts_.clocks_mhz);
  look_after_control();
}

RankGpu TrainingClient::rank_gpu() const {
  RankGpu shown;
  if (gpu_) shown.name = gpu_->identity().name;
  if (helper_ == 0) shown.no_control = control_ ? control_->why() : no_control_;
  return shown;
}

void TrainingClient::open_session() {
  if (options_.server.empty()) return;
  SessionListener listener;
  listener.on_job = [this](const std::string& job) {
    jobs_.push_back(job);
    job_.store(jobs_.back().c_str(), std::memory_order_release);
  };
  listener.on_registered = [this, gpu = rank_gpu()](const std::string& job) {
    if (options_.rank == 0) complaints_.note(News::job, start_message(job, options_, facts_, gpu));
  };
  listener.on_plan = [this, messages = PlanMessages(options_.rank == 0)](std::unique_ptr<ClockPlan> plan) mutable {
    const bool sets_clocks = !options_.advice_only && control_ != nullptr;
    if (const auto message = messages.arrived(job(), *plan, sets_clocks)) {
      complaints_.note(news_of(plan->kind), *message);
    }
    take_plan(std::move(plan));
  };
  listener.on_answer = [this](const Answered& answer) {
    if (budget_.answered(answer)) calls_.pacer().move_later(budget_.later_paces());
    hold_as_needed();
  };
  listener.on_held = [this](bool held) {
    {
      const std::lock_guard lock(holding_);
      server_holds_ = held;
    }
    if (held) calls_.pacer().set(0);
    hold_as_needed();
  };
  listener.iteration = [this] { return calls_.finished_iterations(); };
  listener.clocks = [this] { return seen_clocks(); };
  RankFacts facts = facts_;
  if (helper_ == 0) {
    if (gpu_) facts.gpu = gpu_->identity().name;
    facts.control = options_.advice_only ? "advice" : "none";
    facts.control_reason = control_ ? control_->why() : no_control_;
  }
  learned_.registered(facts);
  session_ = std::make_unique<Session>(options_, std::move(facts), std::move(listener), complaints_);
}

void TrainingClient::take_plan(std::unique_ptr<ClockPlan> plan) {
  if (plan->budget) {
    guard_.rest();
  } else {
    guard_.arrives(*plan);
  }
  shapes_.planned(*plan);
  const std::uint32_t ticket = budget_.arrives(*plan, follows_plan());
  calls_.follower().set_ceiling(budget_.now(host_now_s()).ceiling_mhz);
  hold_as_needed();
  const bool paces = options_.paces && plan->budget;
  const double period_s = paces ? plan->budget->paced_iteration_s : 0;
  calls_.follower().put(std::move(plan));  // before a wait ends: the step that waited follows it
  calls_.pacer().set(period_s, paces ? budget_.later_paces() : std::vector<LaterPace>{});
  if (ticket != 0) calls_.take_at_next_call(ticket);
}

/// The rank runs at the clocks of a plan or a profiling window, as far as another thread than the training thread
/// knows.
bool TrainingClient::follows_plan() const {
  const std::optional<ClockPlan::Kind> kind = calls_.plan_kind();
  const PlanFollower& follower = calls_.follower();
  return kind && kind != ClockPlan::Kind::maximum_clock && !follower.held() && follower.misfit_version() == 0;
}

/// Reads the counter, if it is time, and processes all steps that the training thread has completed since.
void TrainingClient::measure(double now_s, bool all) {
  if (meter_->next_look_s() <= now_s) meter_->look(now_s);
  if (control_) {
    take_applied_clocks();
    device_clock_ = control_->device_clock();
  }
  if (CudaEvents* const events = calls_.events()) events->probe();
  while (const Step* const step = calls_.recorder().oldest()) {
    if (!step->cuda) {
      take_step(*step, now_s);
    } else if (!take_step_of_device(*step, now_s, all)) {
      break;
    }
    if (step->ran) learned_.ran(*step);
    calls_.recorder().release();
  }
  if (session_ && now_s >= next_learned_s_) {
    send_news();
    next_learned_s_ = now_s + kLearnedInterval_s;
  }
  for (MeasuredIteration& iteration : meter_->measured(now_s, all)) {
    if (iteration.throttled) ++throttled_iterations_;
    if (session_) session_->report(std::move(iteration));
  }
}

void TrainingClient::take_applied_clocks() {
  control_->applied_since(applied_read_, [this](const clock_control::AppliedClock& applied) {
    meter_->clock_set(static_cast<double>(applied.call_ns) * 1e-9, applied.clock_mhz);
    const bool was_limited = !limited_.empty() && limited_.back().to_ns == 0;
    if (applied.limited && !was_limited) limited_.push_back({applied.call_ns, 0});
    if (!applied.limited && was_limited) limited_.back().to_ns = applied.call_ns;
    if (limited_.size() > kMostLimited) limited_.pop_front();
    if (!applied.at_device_time) return;
    if (CudaEvents* const events = calls_.events()) {
      events->reached_by(applied.position, static_cast<std::uint64_t>(applied.call_ns));
    }
    positions_.applied(applied);
  });
}

/// Of a step timed by the device's events. False: the GPU is not there yet, so try again later; not if `all`.
bool TrainingClient::take_step_of_device(const Step& step, double now_s, bool all) {
  CudaEvents* const events = calls_.events();
  if (!events->finished(step) && !all) return false;
  if (events->finished(step)) {
    const Step timed = events->on_host(step);
    positions_.completed(timed);
    if (control_ && !calls_.progress_lost() && positions_.stays_behind(timed, control_->position(), now_s)) {
      calls_.lose_progress();
    }
    take_step(timed, now_s);
  }
  events->release(step);
  if (events->failed()) {
    complaints_.raise(Cause::cuda, "CUDA events fail; computations are timed by the host's clock");
  }
  return true;
}

/// The step ran under two plans, or under a limit that is no plan's, or not at the clocks of its plan.
bool TrainingClient::is_mixed(const Step& step) const {
  if (step.iteration <= calls_.mixed_through() || off_clock()) return true;
  const auto begin_ns = static_cast<std::int64_t>(step.cuda ? step.begin_mark : step.begin_ns);
  const auto end_ns = static_cast<std::int64_t>(step.cuda ? step.end_mark : step.end_ns);
  return std::ranges::any_of(limited_, [&](const LimitedTime& one) {
    return one.from_ns < end_ns && (one.to_ns == 0 || one.to_ns > begin_ns);
  });
}

void TrainingClient::take_step(const Step& step, double now_s) {
  if (step.train && !calls_.graphs().ran(step)) return end_guarded(step);
  if (!step.train || !is_mixed(step)) return take_whole_step(step, now_s);
  Step mixed = step;
  mixed.followed = false;  // so its energy is of no plan
  mixed.comparable &= step.iteration > calls_.mixed_through() && !off_clock();
  take_whole_step(mixed, now_s);
}

void TrainingClient::take_whole_step(const Step& step, double now_s) {
  guard(step);
  meter_->take(step, now_s);
  look_at_shape(step, now_s);
  if (!step.train || !step.clean) return;
  LastStep shown = last_step_of(step);
  const std::lock_guard lock(mutex_);
  last_step_ = std::move(shown);
}

/// Tells the server which shapes the steps have, and logs once if no plan can fit them.
void TrainingClient::look_at_shape(const Step& step, double now_s) {
  shapes_.ran(step, now_s);
  if (const auto window = shapes_.window_missed(); window && session_) {
    MeasuredIteration missed;
    missed.iteration = step.iteration;
    missed.plan_version = step.plan_version;
    missed.window = *window;
    missed.ends_window = true;
    missed.missed = "steps have " + count_text(step.microbatches, "microbatch") + ", the window is for others";
    session_->report(std::move(missed));
  }
  const std::optional<ShapeNews> news = shapes_.news();
  if (!news) return;
  hold_as_needed();
  if (!news->varies.empty() && options_.rank == 0) {
    complaints_.raise(Cause::shape,
                      fmt::format("no plan can fit: {}; the highest clock until they settle. Fill batches "
                                  "by tokens at a fixed number of microbatches, or pad them",
                                  news->varies));
  } else if (!shapes_.vary()) {
    complaints_.clear(Cause::shape, "the numbers of microbatches have settled");
  }
  // The ranks of a pipeline see the same steps, and one of them decides what prevails in the job.
  const bool tells = options_.pp_rank == 0 && options_.tp_rank == 0 && (!news->prevails || options_.dp_rank == 0);
  if (!session_ || !tells) return;
  SeenShape seen{news->microbatches, news->prevails, news->varies, ""};
  {
    const std::lock_guard lock(mutex_);
    if (const auto table = tables_.find(news->microbatches); table != tables_.end()) seen.action_table = table->second;
  }
  session_->shape_seen(std::move(seen));
}

void TrainingClient::add_table(int microbatches, std::string action_table) {
  const std::lock_guard lock(mutex_);
  if (tables_.size() < kMostTables || tables_.contains(microbatches)) tables_[microbatches] = std::move(action_table);
}

void TrainingClient::hold_as_needed() {
  const std::lock_guard lock(holding_);
  calls_.follower().allow_shapes(calls_.controlled() ? guard_.allowed() : std::nullopt);
  calls_.follower().hold_maximum(server_holds_ || shapes_.vary() || budget_.now(host_now_s()).expired());
}

/// Passes an iteration to the guard, once the next step has begun.
void TrainingClient::end_guarded(const Step& step) {
  const bool follows =
      calls_.controlled() && step.train && step.clean && guarded_ && step.iteration == guarded_->number + 1;
  if (follows) {
    // From begin to begin: a plan may let this rank end later where it has slack, but not the job.
    guarded_->iteration.time_s = 1e-9 * static_cast<double>(step.begin_mark - guarded_->begin_mark);
    guarded_->iteration.other_clock |= off_clock();
    guard_.take(guarded_->iteration);
    const auto degree = straggler_.ran(guarded_->iteration.plan_version, guarded_->iteration.time_s,
                                       device_clock_.limited_by != 0, guarded_->iteration.microbatches);
    if (degree && session_ && options_.reports_straggler) session_->straggles(*degree);
  }
  guarded_.reset();
}

/// Has the last iteration judged, and acts on the judgment.
void TrainingClient::guard(const Step& step) {
  end_guarded(step);
  if (step.train && step.cuda && step.end_mark > step.begin_mark) {
    calls_.step_took(1e-9 * static_cast<double>(step.end_mark - step.begin_mark));
  }
  if (!step.train || !step.clean) return;
  for (std::size_t i = 0; i < step.count; ++i) late_clocks_.ran(step.computations[i].instruction);
  const int highest_mhz = facts_.clocks_mhz.empty() ? 0 : facts_.clocks_mhz.front();
  guarded_ = {step.iteration, step.begin_mark, guarded_iteration(step, highest_mhz)};
  if (guarded_) guarded_->iteration.other_clock = off_clock();
  hold_as_needed();
  act_on_guard(step);
}

void TrainingClient::act_on_guard(const Step& step) {
  if (complaints_.raised(Cause::slowdown) && step.followed && !step.at_maximum && !guard_.paused()) {
    complaints_.clear(Cause::slowdown, fmt::format("plan {} runs", step.plan_version));
  }
  if (const auto remark = guard_.take_remark()) complaints_.note(News::trial, *remark);
  if (const std::optional<DroppedPlan> dropped = guard_.take_dropped()) {
    ++plans_dropped_;
    complaints_.raise_again(Cause::slowdown,
                            fmt::format("plan {} is dropped: {}; the highest clock until another plan comes, or for "
                                        "{:.0f} min",
                                        dropped->version, dropped->text, dropped->pause_s / 60));
    if (session_ && !dropped->not_allowed) session_->plan_dropped(*dropped);
  }
}

/// Time from a boundary until its clock is in effect: the position becomes visible, the helper sees it and calls, and
/// the GPU changes its clock. 0: not known.
double TrainingClient::boundary_to_clock_s() const {
  const double call_to_clock_s = control_->statistics().call_to_clock_p50_s;
  if (call_to_clock_s <= 0 || positions_.reached_to_call().count() < kLeastReached) return call_to_clock_s;
  return call_to_clock_s + positions_.reached_to_call().quantile_s(0.5);
}

SeenClocks TrainingClient::seen_clocks() const {
  SeenClocks seen{0, 0, meter_->facts().late, throttled_iterations_.load(std::memory_order_relaxed)};
  if (!control_) return seen;
  const clock_control::ControlStatistics control = control_->statistics();
  seen.set_mhz = control.last_set.value();
  seen.failed = control.failed;
  return seen;
}

void TrainingClient::send_news() {
  LearnedFacts::Now now;
  if (control_ && options_.switch_latency_s <= 0) now.switch_latency_s = boundary_to_clock_s();
  if (options_.blocking_power_w == 0) now.blocking = meter_->facts().blocking;
  now.clocks_mhz = facts_.clocks_mhz;
  now.has_control = control_ != nullptr;
  now.sets_clocks = helper_ != 0 && device_follows(host_now_s());
  now.why_no_clocks = [this] { return control_->why(); };
  if (std::optional<RankFacts> news = learned_.news(now, host_now_s())) session_->learned(std::move(*news));
}

// ---- Status and statistics

int TrainingClient::state_now(bool opened) const {
  const std::optional<ClockPlan::Kind> kind = calls_.plan_kind();
  if (!opened || (!kind && session_ && !complaints_.raised(Cause::server))) return PERSEUS_STARTING;
  const PlanFollower& follower = calls_.follower();
  const int fallback = follower.limited() ? PERSEUS_CEILING : PERSEUS_MAXIMUM_CLOCK;
  if (!kind || follower.held() || follower.misfit_version() != 0) return fallback;
  if (kind == ClockPlan::Kind::plan) return PERSEUS_PLANNED;
  return kind == ClockPlan::Kind::profiling_window ? PERSEUS_PROFILING : fallback;
}

/// Why the ceiling rules; empty: a plan or a profiling window does.
std::string_view TrainingClient::why_ceiling(const RankBudget::Now& budget) {
  if (budget.fallen) return "a limit has fallen as announced, and no plan has come since";
  if (budget.expired()) return "no answer about the plan";
  {
    const std::lock_guard lock(holding_);
    if (server_holds_) return "the job is over";
  }
  if (calls_.follower().misfit_version() != 0) return "the plan does not fit what this rank runs";
  const std::optional<ClockPlan::Kind> kind = calls_.plan_kind();
  if (!kind) return "no plan is in force yet";
  return kind == ClockPlan::Kind::maximum_clock ? "the server has no plan" : "";
}

void TrainingClient::statistics(perseus_statistics& s) {
  bool opened = false;
  {
    const std::lock_guard lock(mutex_);
    opened = opened_;
  }
  s.state = state_now(opened);
  calls_.statistics(s);
  s.plans_dropped = plans_dropped_.load(std::memory_order_relaxed);
  const RankBudget::Now budget = budget_.now(host_now_s());
  s.ceiling_mhz = budget.ceiling_mhz;
  s.lease_left_s = budget.lease_left_s;
  s.last_iteration_energy_j = -1;
  s.blocking_power_w = options_.blocking_power_w;
  s.client_cpu_s = watching_.cpu_s() + (opened && session_ ? session_->cpu_s() : 0);
  s.server_failures = opened && session_ ? session_->failures() : 0;
  s.server_reached = opened && session_ && session_->reached() ? 1 : 0;
  s.controls_clock = 0;
  if (opened) add_energy(s, meter_->facts());
  if (opened && control_) {
    add_control(s, control_->statistics(), positions_.reached_to_call());
    s.controls_clock = control_->working_helper() != 0 ? 1 : 0;
  }
}

std::string TrainingClient::status() {
  ClientStatus status;
  statistics(status.statistics);
  status.job = job();
  status.device = options_.device;
  status.rank = options_.rank;
  status.device_time = calls_.device_time();
  status.record_bytes = calls_.recorder().bytes();
  status.complaints = complaints_.all();
  if (const RankBudget::Now budget = budget_.now(host_now_s()); budget.ceiling_mhz != 0) {
    status.budget = {budget.ceiling_mhz, budget.lease_s, budget.lease_left_s, why_ceiling(budget),
                     calls_.pacer().period_s()};
  }
  {
    const std::lock_guard lock(mutex_);
    if (opened_) status.energy = meter_->facts();
    status.last_step = last_step_;
    if (opened_ && control_) {
      status.helper_pid = control_->helper_pid();
      status.switch_latency_s = switch_latency_of(control_->statistics()).seconds;
    }
  }
  return status_json(status);
}

}  // namespace perseus::client
