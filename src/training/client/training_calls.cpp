#include "training/client/training_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace perseus::client {
namespace {

constexpr std::size_t kStepsOnTheirWay = 8;  ///< in flight to the device, with an event for every boundary
constexpr int kLookForRuntimeEvery = 64;     ///< steps

/// Forward and backward of every microbatch and chunk, in up to three parts, and load; a large default where the
/// job's shape is unknown.
std::size_t computations_a_step(const ClientOptions& options) {
  const std::size_t runs = static_cast<std::size_t>(options.microbatches) * static_cast<std::size_t>(options.chunks);
  return runs == 0 ? 2048 : std::min<std::size_t>(5 * runs + 16, 65536);
}

}  // namespace

TrainingCalls::TrainingCalls(const ClientOptions& options, Complaints& complaints)
    : recorder_(kKeptSteps, computations_a_step(options)), options_(options), complaints_(complaints) {}

void TrainingCalls::step_begin(bool train, int microbatches) {
  if (in_step_) {
    if (!train) drop_step();
    step_end();
  }
  // Before anything is measured or launched: no time or energy that is reported contains the wait.
  const double paced_before_s = pacer_.paced_s();
  pacer_.wait(std::exchange(iteration_began_ns_, 0), [this] { return device_is_idle(); });
  waited_s_ += pacer_.paced_s() - paced_before_s;
  in_step_ = true;
  train_ = train;
  if (!train) {
    begin_evaluation();
    return;
  }
  choose_moment();
  for (auto& of_chunks : counted_) of_chunks.fill(0);
  microbatches_ = std::max(microbatches, 0);
  follower_.begin_step(iteration_, microbatches_);
  note_plan();
  cuda_step_ = use_cuda_ && !cuda_.load(std::memory_order_relaxed)->failed();
  step_helper_ = working_helper();
  if (clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire))
    control->begin_step();
  step_began_ns_ = iteration_began_ns_ = host_now_ns();
  record_step_begin();
  under_way_ = 0;
  ended_any_ = false;
  if (has_news()) take_news(false, false);
  request(follower_.next_clock());
}

/// The training step under way was evaluation: no iteration, and no sample of anything.
void TrainingCalls::drop_step() {
  train_ = false;
  if (Step* const step = recorder_.current()) step->train = step->clean = false;
}

/// As far as the device reports its position.
bool TrainingCalls::device_is_idle() const {
  const clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire);
  if (moment_ != ClockMoment::device || control == nullptr || progress_lost_.load(std::memory_order_relaxed))
    return true;
  return static_cast<std::int32_t>(control->position() - position_) >= 0;
}

void TrainingCalls::note_plan() {
  const ClockPlan* const plan = follower_.plan();
  plan_kind_.store(plan == nullptr ? -1 : static_cast<int>(plan->kind), std::memory_order_relaxed);
  plan_from_.store(plan == nullptr ? 0 : plan->from_iteration, std::memory_order_relaxed);
  planned_time_s_.store(follower_.planned_time_s(), std::memory_order_relaxed);
}

void TrainingCalls::begin_evaluation() {
  cuda_step_ = false;
  step_began_ns_ = host_now_ns();
  if (Step* const step = recorder_.begin_step()) {
    step->train = step->cuda = false;
    step->begin_ns = step_began_ns_;
  }
  if (has_news()) take_news(false, false);
  if (clock_ != 0) request(follower_.clock_outside());
}

void TrainingCalls::record_step_begin() {
  Step* const step = recorder_.begin_step();
  if (step == nullptr) return;
  const ClockPlan* const plan = follower_.plan();
  step->cuda = cuda_step_;
  step->train = true;
  step->iteration = iteration_;
  step->plan_version = plan == nullptr ? 0 : plan->version;
  step->paced_s = waited_s_;
  step->window = plan == nullptr || follower_.over() ? -1 : plan->window;
  step->at_maximum = plan == nullptr || plan->kind == ClockPlan::Kind::maximum_clock || follower_.over();
  step->window_iterations = plan == nullptr ? 0 : plan->iterations;
  step->window_ends = plan != nullptr && plan->then_maximum;
  step->begin_ns = step_began_ns_;
  step->begin_mark = mark();
  // The host's clock does not measure work that a GPU executes later.
  step->clean = step->clean && (cuda_step_ || !use_cuda_);
}

void TrainingCalls::step_end() {
  if (!in_step_) return;
  if (has_news()) take_news(train_, true);
  in_step_ = false;
  const bool ran = train_ && seems_run();
  if (ran) {
    follower_.end_step(forwards());
  } else if (train_) {
    follower_.forget_step();
  }
  const std::uint64_t now = host_now_ns();
  if (Step* const step = recorder_.current()) {
    step->end_ns = now;
    step->ran = ran;
    const std::int64_t helper = working_helper();
    step->controlled = step_helper_ != 0 && step_helper_ == helper;
    step->followed = follower_.followed() && (keeps_clocks() || (step->controlled && moment_ != ClockMoment::none));
    step->graph_clock = follower_.whole_step() ? clock_ : 0;
    if (step_helper_ != helper) step->clean = false;  // the clock is not known
    step->end_mark = mark();
    const std::int64_t missed = missed_calls();
    if (std::exchange(missed_before_, missed) != missed) step->clean = step->followed = false;
    if (train_) record_shape(*step);
    step->comparable = is_comparable(*step);
  }
  // Request the next step's first clock for the time between steps.
  if (train_) request(follower_.first_clock_of(iteration_ + 1));
  const bool by_device = recorder_.current() != nullptr && recorder_.current()->cuda;
  recorder_.end_step();
  if (!train_) return;
  if (ran) {
    waited_s_ = 0;
    if (!by_device) {
      last_iteration_time_s_.store(static_cast<double>(now - step_began_ns_) * 1e-9, std::memory_order_relaxed);
    }
  } else {
    iteration_began_ns_ = 0;  // paced at its begin, in place of the next one
  }
  // Other ranks may have run something in it: all ranks count the same iterations.
  finished_.store(++iteration_, std::memory_order_release);
}

/// Of a training step that ends: a computation has ended in it, or it replays a captured graph, as far as is known.
bool TrainingCalls::seems_run() {
  if (ended_any_ || under_way_ > 0) return ended_any_;
  const Step* const step = recorder_.current();
  const std::uint64_t took_ns =
      step == nullptr || cuda_step_ ? host_now_ns() - step_began_ns_ : mark() - step->begin_mark;
  return graphs_.seems_run(1e-9 * static_cast<double>(took_ns), cuda_step_);
}

/// Of a stage, in this step: the microbatches that ran. 0: not known.
int TrainingCalls::forwards() const {
  const int first = counted_[static_cast<std::size_t>(model::Instruction::forward)][0];
  if (!no_chunks_ || options_.chunks <= 1) return first;
  return first % options_.chunks == 0 ? first / options_.chunks : 0;
}

/// A step that has another shape than the plan in force is none of the plan's.
void TrainingCalls::record_shape(Step& step) const {
  step.microbatches = microbatches_ != 0 ? microbatches_ : forwards();
  step.other_window = -1;
  if (!follower_.foreign()) return;
  step.other_window = std::exchange(step.window, -1);
}

/// A step that followed no plan ran at the highest clock throughout, unless its plan was found not to fit in its
/// course.
bool TrainingCalls::is_comparable(const Step& step) const {
  const auto is_highest = [this](int clock) { return clock == 0 || clock == follower_.maximum(); };
  bool at_highest = is_highest(step.graph_clock);
  recorder_.for_each_begun([&](const RecordedComputation& one, std::size_t) {
    at_highest &= is_highest(one.clock) || model::is_constant_time(one.instruction);
  });
  return step.followed || at_highest;
}

/// The step is of a window that sets no clock, and the times of its computations are known.
bool TrainingCalls::keeps_clocks() const {
  const ClockPlan* const plan = follower_.plan();
  const bool timed = use_cuda_ || moment_ != ClockMoment::none;
  return plan != nullptr && plan->keeps_clocks && timed;
}

void TrainingCalls::begin(model::Instruction instruction, int microbatch, int chunk) {
  __builtin_prefetch(&follower_);
  recorder_.expect_begin();
  __builtin_prefetch(&counted_[static_cast<std::size_t>(instruction)][0], 1);
  if (!in_step_ || !train_) return;
  const bool timed = CallCost::due(begin_calls_);
  const std::uint64_t from = timed ? host_now_ns() : 0;
  if (has_news()) take_news(true, false);
  // Before its begin: the change takes effect when the device has passed the previous boundary.
  if (!follower_.asked()) request(follower_.clock_for(instruction, microbatch, chunk));
  follower_.begun(instruction, microbatch, chunk);
  if (chunk < 0) {
    no_chunks_ = true;
    chunk = 0;
  }
  int& counted = counted_[static_cast<std::size_t>(instruction)][static_cast<std::size_t>(chunk) % 8];
  if (microbatch < 0) microbatch = counted;
  ++counted;
  ++under_way_;
  recorder_.begin(instruction, microbatch, chunk, clock_, mark());
  if (timed) begin_cost_.took(host_now_ns() - from);
}

void TrainingCalls::end(model::Instruction instruction) {
  __builtin_prefetch(&follower_);
  recorder_.expect_end();
  if (!in_step_ || !train_) return;
  const bool timed = CallCost::due(end_calls_);
  const std::uint64_t from = timed ? host_now_ns() : 0;
  if (has_news()) take_news(true, true);
  const std::uint64_t ended = mark();
  const bool marked = moment_ == ClockMoment::device && !cuda_.load(std::memory_order_relaxed)->captured() &&
                      progress_->mark(position_ + 1);
  if (marked) ++position_;
  recorder_.end(instruction, ended, marked ? position_ : 0);
  under_way_ = std::max(under_way_ - 1, 0);
  ended_any_ |= !model::is_constant_time(instruction);
  // The clock of the next computation can change while this rank waits for its input, but not under other work.
  if (under_way_ == 0) request(follower_.next_clock());
  if (timed) end_cost_.took(host_now_ns() - from);
}

void TrainingCalls::set_speed(model::Instruction instruction, int microbatch, int chunk) {
  __builtin_prefetch(&follower_);
  if (!in_step_ || !train_) return;
  const bool timed = CallCost::due(speed_calls_);
  const std::uint64_t from = timed ? host_now_ns() : 0;
  if (has_news()) take_news(true, true);
  request(follower_.clock_for(instruction, microbatch, chunk));
  if (timed) speed_cost_.took(host_now_ns() - from);
}

/// Out of line: most computations run at the clock that was requested already.
void TrainingCalls::request_other(int clock_mhz) {
  clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire);
  if (control == nullptr || moment_ == ClockMoment::none) return;
  // Work captured into a graph runs later, and as a whole.
  if (moment_ == ClockMoment::device && cuda_.load(std::memory_order_relaxed)->captured()) return;
  clock_ = clock_mhz;
  if (moment_ == ClockMoment::device) {
    control->set_from(position_, Megahertz(clock_mhz));
  } else {
    control->set(Megahertz(clock_mhz));
  }
}

/// Out of line: takes what came by take_at_next_call(). `in_middle`: within a training step. `asked_began`: see
/// PlanFollower::take_at_once().
void TrainingCalls::take_news(bool in_middle, bool asked_began) {
  clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire);
  // Work captured into a graph runs later: the cap holds until the next call.
  if (moment_ == ClockMoment::device && cuda_.load(std::memory_order_relaxed)->captured()) return;
  const std::uint32_t ticket = news_.exchange(0, std::memory_order_acquire);
  if (in_middle) {
    const bool taken = follower_.take_at_once(asked_began, [this](const auto& pass) {
      recorder_.for_each_begun(
          [&](const RecordedComputation& one, std::size_t) { pass(one.instruction, one.microbatch, one.chunk); });
    });
    if (taken) note_plan();
  }
  mixed_through_.store(in_middle ? iteration_ : iteration_ - 1, std::memory_order_release);
  if (control == nullptr) return;
  request_again(*control);
  control->lift_cap(ticket);
}

/// Replaces every clock that was requested before. Never leaves one unchanged: it may be too high.
void TrainingCalls::request_again(clock_control::ClockController& control) {
  if (moment_ == ClockMoment::device) return queue_again(control);
  const int next = train_ && moment_ == ClockMoment::host ? follower_.next_clock() : 0;
  const int clock = next != 0 ? next : follower_.maximum();
  control.set(Megahertz(clock));
  clock_ = moment_ == ClockMoment::none ? 0 : clock;
}

/// The device may be many computations behind the host: each that it has not ended gets its clock of the plan in force.
void TrainingCalls::queue_again(clock_control::ClockController& control) {
  const std::uint32_t here = control.position();
  std::uint32_t boundary = here;
  int queued = 0;  // clock of the last one; 0: none
  const auto queue = [&](int clock) {
    if (queued == 0) {
      control.set(Megahertz(clock));  // discards what is queued
    } else {
      control.set_from(boundary, Megahertz(clock));
    }
    queued = clock;
  };
  recorder_.for_each_kept([&](const RecordedComputation& one, std::size_t place) {
    if (one.end != 0 && static_cast<std::int32_t>(one.end_position - here) <= 0) return;  // ended, or has no position
    if (!model::is_constant_time(one.instruction)) {
      queue(follower_.clock_of(one.instruction, one.microbatch, one.chunk, place));
    }
    if (one.end_position != 0) boundary = one.end_position;
  });
  // While a computation is open, the next one's clock is requested at its end.
  if (under_way_ == 0 || queued == 0) {
    const int next = train_ ? follower_.next_clock() : 0;
    boundary = position_;
    queue(next != 0 ? next : follower_.maximum());
  }
  clock_ = queued;
}

/// At a step's begin: decides whether clocks change at the call, at the device's moment, or not at all.
void TrainingCalls::choose_moment() {
  clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire);
  ClockMoment moment = ClockMoment::host;
  if (use_cuda_) {
    moment = control != nullptr && open_progress(*control) ? ClockMoment::device : ClockMoment::none;
  } else if (!options_.synchronous && now_ns_ == nullptr) {
    if (iteration_ % kLookForRuntimeEvery == 0) asynchronous_ = CudaDriver::asynchronous_here();
    if (asynchronous_) moment = ClockMoment::none;
  }
  const ClockMoment before = std::exchange(moment_, moment);
  if (control == nullptr) return;
  told_moment_.store(static_cast<int>(moment), std::memory_order_relaxed);
  if (before == moment || clock_ == 0) return;
  // Changes that wait for positions which are no longer reported must not wait forever; and where no moment is known
  // the clock is the highest one.
  control->set(Megahertz(moment == ClockMoment::none ? follower_.maximum() : clock_));
  if (moment == ClockMoment::none) clock_ = 0;
}

/// False: the device's progress cannot be observed in this step, or that failed. Opened once, in the first step that
/// can.
bool TrainingCalls::open_progress(clock_control::ClockController& control) {
  const bool events_fail = cuda_.load(std::memory_order_relaxed)->failed();
  const bool works =
      progress_ != nullptr && !events_fail && !progress_->failed() && !progress_lost_.load(std::memory_order_relaxed);
  if (!works && (progress_owner_ || events_fail || !no_progress_.empty())) {
    progress_ = nullptr;
    no_way_.store(no_progress_.empty() ? nullptr : no_progress_.c_str(), std::memory_order_release);
    return false;
  }
  // A thread gets its context by its first call of a runtime, which may come after this step's begin.
  const bool has_context = driver_->has_context();
  no_way_.store(has_context ? nullptr : "the thread that begins the step has no CUDA context yet",
                std::memory_order_release);
  if (works || !has_context) return has_context;
  clock_control::ClockController::SharedMemory memory = control.share_memory();
  // No earlier boundary is pending on the device.
  position_ = control.position();
  auto opened = DeviceProgress::open(driver_, stream_, {memory.begin, memory.bytes, memory.position, memory.reached},
                                     options_.progress_way);
  if (!opened) {
    no_progress_ = opened.error().message;
    no_way_.store(no_progress_.c_str(), std::memory_order_release);
    return false;
  }
  progress_owner_ = std::move(*opened);
  progress_ = progress_owner_.get();
  control.position_comes_from_cpu(progress_->way() != ProgressWay::write_value);
  way_.store(name_of(progress_->way()).data(), std::memory_order_release);
  return true;
}

bool TrainingCalls::time_with_cuda(void* stream) {
  if (CudaEvents* const events = cuda_.load(std::memory_order_relaxed); events != nullptr && !events->failed()) {
    events->set_stream(stream);
    if (progress_ != nullptr) progress_->set_stream(stream);
    stream_ = stream;
    use_cuda_ = true;
    return true;
  }
  if (cuda_owner_) return false;  // failed before, and was logged
  const auto fails = [&](const Error& error) {
    complaints_.raise(
        Cause::cuda, fmt::format("computations are timed by the host's clock, and no clock is set: {}", error.message));
    return false;
  };
  auto driver = CudaDriver::load();
  if (!driver) return fails(driver.error());
  const std::size_t boundaries = 2 * std::min<std::size_t>(computations_a_step(options_), 2048) + 2;
  auto opened = CudaEvents::open(*driver, stream, kStepsOnTheirWay * boundaries);
  if (!opened) return fails(opened.error());
  complaints_.clear(Cause::cuda, "computations are timed by CUDA events");
  driver_ = std::move(*driver);
  cuda_owner_ = std::move(*opened);
  cuda_.store(cuda_owner_.get(), std::memory_order_release);
  stream_ = stream;
  use_cuda_ = true;
  return true;
}

void TrainingCalls::time_with(std::uint64_t (*now_ns)(void*), void* context) {
  use_cuda_ = false;
  now_ns_ = now_ns;
  now_context_ = context;
}

void TrainingCalls::use_control(clock_control::ClockController& control, int highest_mhz) {
  follower_.set_maximum(highest_mhz);
  usable_control_.store(&control, std::memory_order_release);
}

std::optional<ClockMoment> TrainingCalls::clock_moment() const {
  const int moment = told_moment_.load(std::memory_order_relaxed);
  return moment < 0 ? std::nullopt : std::optional(static_cast<ClockMoment>(moment));
}

std::string TrainingCalls::progress_fault() const {
  if (const char* const why = no_way_.load(std::memory_order_acquire)) return why;
  if (progress_lost_) return fmt::format("the GPU's position does not arrive by {}", way_.load());
  return "CUDA calls fail";
}

std::string_view TrainingCalls::device_time() const {
  const std::optional<ClockMoment> moment = clock_moment();
  if (moment == ClockMoment::device) return progress_way();
  return moment == ClockMoment::host ? "call" : "unknown";
}

std::optional<ClockPlan::Kind> TrainingCalls::plan_kind() const {
  const int kind = plan_kind_.load(std::memory_order_relaxed);
  return kind < 0 ? std::nullopt : std::optional(static_cast<ClockPlan::Kind>(kind));
}

void TrainingCalls::statistics(perseus_statistics& s) const {
  s.iteration = finished_iterations();
  s.plan_version = follower_.version_in_force();
  s.plan_from_iteration = plan_from_.load(std::memory_order_relaxed);
  s.planned_iteration_time_s = planned_time_s_.load(std::memory_order_relaxed);
  s.last_iteration_time_s = last_iteration_time_s();
  s.begin_end_ns = begin_cost_.median_ns() + end_cost_.median_ns();
  s.set_speed_ns = speed_cost_.median_ns();
  s.paced_s = pacer_.paced_s();
}

}  // namespace perseus::client
