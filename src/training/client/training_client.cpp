#include "training/client/training_client.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "training/client/status_json.h"
#include "training/device/ceiling_gpu.h"

namespace perseus::client {
namespace {

// Each wake-up of the watching thread costs some 30 us of cold caches: it wakes for the counter, and otherwise
// rarely, since the recorder keeps many steps.
constexpr double kLeastWatch_s = 0.05, kMostWatch_s = 0.15, kLatencyInterval_s = 0.25;
constexpr double kLearntInterval_s = 0.5, kNewsShare = 0.1;
constexpr std::size_t kKeptSteps = 16;
constexpr std::size_t kStepsOnTheirWay = 8;  ///< in flight to the device, with an event for every boundary
constexpr int kLookForRuntimeEvery = 64;     ///< steps
constexpr double kLatencyPatience_s = 0.15;  ///< wait for the arrival of a clock
constexpr double kLatencyLimit_s = 1;        ///< for all clock changes measured at the start
constexpr std::int64_t kLatencySamples = 6;
constexpr std::int64_t kLeastReached = 32;                  ///< changes until their usual delay is known
constexpr double kPositionPatience_s = 1;                   ///< wait for a position behind the GPU's progress
constexpr std::int64_t kStepsWithoutLoss = 4 * kKeptSteps;  ///< until the complaint about lost records is cleared

/// Forward and backward of every microbatch and chunk, in up to three parts, and load; a large default where the
/// job's shape is unknown.
std::size_t computations_a_step(const ClientOptions& options) {
  const std::size_t runs = static_cast<std::size_t>(options.microbatches) * static_cast<std::size_t>(options.chunks);
  return runs == 0 ? 2048 : std::min<std::size_t>(5 * runs + 16, 65536);
}

/// A device given by CUDA's number: "cuda:1".
constexpr std::string_view kCudaDevice = "cuda:";

std::uint64_t this_thread() { return static_cast<std::uint64_t>(pthread_self()); }

double seconds_now() { return static_cast<double>(host_now_ns()) * 1e-9; }

struct SwitchLatency {
  double seconds, stddev_s;
};
/// Before any clock change was observed: at least the duration of the device's call, with a typical deviation.
SwitchLatency switch_latency_of(const clock_control::ControlStatistics& control) {
  if (control.call_to_clock_p50_s <= 0) return {control.device_call_p50_s, 0.002};
  constexpr double p99_over_p50 = 2.3;  // in standard deviations
  return {control.call_to_clock_p50_s, (control.call_to_clock_p99_s - control.call_to_clock_p50_s) / p99_over_p50};
}

/// A server's reason may begin with the words that the message already contains.
std::string no_plan_message(std::string_view job, std::string_view reason) {
  constexpr std::string_view maximum_clock = "maximum clock: ";
  if (reason.starts_with(maximum_clock)) reason.remove_prefix(maximum_clock.size());
  return fmt::format("the highest clock, no plan for job {}: {}", job, reason);
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

TrainingClient::TrainingClient(ClientOptions options)
    : recorder_(kKeptSteps, computations_a_step(options)),
      options_(std::move(options)),
      complaints_(options_.log, options_.log_pauses),
      guard_(options_.plan_tolerance) {}

TrainingClient::~TrainingClient() { stop(); }

void TrainingClient::start(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) complaints_.say(LogLevel::warning, remark);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.start_limit_s);
  if (options_.device.empty() || options_.device.starts_with(kCudaDevice)) cuda_view_ = device::look_at_cuda();
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
  const double from = seconds_now();
  if (!watching_.stop(options_.start_limit_s / 2)) left_behind_ = true;
  bool opened = false;
  {
    // A thread that hangs before this point ends everything that it has opened by itself, see open().
    const std::lock_guard lock(mutex_);
    opened = opened_;
  }
  if (opened) {
    end_control();
    if (session_) session_->stop(options_.start_limit_s - (seconds_now() - from));
  }
  complaints_.silence(options_.start_limit_s / 2);
  if (left_behind_) return false;
  const std::uint64_t stepping = stepping_thread_.load(std::memory_order_acquire);
  return stepping == 0 || (stepping == this_thread() && !in_step_);
}

void TrainingClient::end_control() {
  usable_control_ = nullptr;
  if (control_) control_->stop();
}

void TrainingClient::step_begin(bool train) {
  if (in_step_) step_end();
  stepping_thread_.store(this_thread(), std::memory_order_release);
  in_step_ = true;
  train_ = train;
  if (!train) {
    cuda_step_ = false;
    step_began_ns_ = host_now_ns();
    if (Step* const step = recorder_.begin_step()) {
      step->train = step->cuda = false;
      step->begin_ns = step_began_ns_;
    }
    if (clock_ != 0) request(follower_.clock_outside());
    return;
  }
  choose_moment();
  for (auto& of_chunks : counted_) of_chunks.fill(0);
  follower_.begin_step(iteration_);
  const ClockPlan* const plan = follower_.plan();
  plan_kind_.store(plan == nullptr ? -1 : static_cast<int>(plan->kind), std::memory_order_relaxed);
  plan_from_.store(plan == nullptr ? 0 : plan->from_iteration, std::memory_order_relaxed);
  planned_time_s_.store(plan == nullptr ? 0 : plan->iteration_time_s, std::memory_order_relaxed);
  cuda_step_ = use_cuda_ && !cuda_.load(std::memory_order_relaxed)->failed();
  step_helper_ = working_helper();
  if (clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire))
    control->begin_step();
  step_began_ns_ = host_now_ns();
  if (Step* const step = recorder_.begin_step()) {
    step->cuda = cuda_step_;
    step->train = true;
    step->iteration = iteration_;
    step->plan_version = plan == nullptr ? 0 : plan->version;
    step->window = plan == nullptr || follower_.over() ? -1 : plan->window;
    step->at_maximum = plan == nullptr || plan->kind == ClockPlan::Kind::maximum_clock || follower_.over();
    step->window_iterations = plan == nullptr ? 0 : plan->iterations;
    step->window_ends = plan != nullptr && plan->then_maximum;
    step->begin_ns = step_began_ns_;
    step->begin_mark = mark();
    // The host's clock does not measure work that a GPU executes later.
    step->clean = step->clean && (cuda_step_ || !use_cuda_);
  }
  under_way_ = 0;
  request(follower_.next_clock());
}

void TrainingClient::step_end() {
  if (!std::exchange(in_step_, false)) return;
  if (train_) follower_.end_step();
  const std::uint64_t now = host_now_ns();
  if (Step* const step = recorder_.current()) {
    step->end_ns = now;
    const std::int64_t helper = working_helper();
    step->controlled = step_helper_ != 0 && step_helper_ == helper;
    step->followed = follower_.followed() && step->controlled && moment_ != Moment::none;
    if (step_helper_ != helper) step->clean = false;  // the clock is not known
    step->end_mark = mark();
  }
  // Request the next step's first clock for the time between steps.
  if (train_) request(follower_.first_clock_of(iteration_ + 1));
  const bool by_device = recorder_.current() != nullptr && recorder_.current()->cuda;
  recorder_.end_step();
  if (!train_) return;
  if (!by_device) {
    last_iteration_time_s_.store(static_cast<double>(now - step_began_ns_) * 1e-9, std::memory_order_relaxed);
  }
  finished_.store(++iteration_, std::memory_order_release);
}

void TrainingClient::begin(model::Instruction instruction, int microbatch, int chunk) {
  __builtin_prefetch(&follower_);
  recorder_.expect_begin();
  __builtin_prefetch(&counted_[static_cast<std::size_t>(instruction)][0], 1);
  if (!in_step_ || !train_) return;
  const bool timed = CallCost::due(begin_calls_);
  const std::uint64_t from = timed ? host_now_ns() : 0;
  // Before its begin: the change takes effect when the device has passed the previous boundary.
  if (!follower_.asked()) request(follower_.clock_for(instruction, microbatch, chunk));
  follower_.begun(instruction, microbatch, chunk);
  chunk = std::max(chunk, 0);
  int& counted = counted_[static_cast<std::size_t>(instruction)][static_cast<std::size_t>(chunk) % 8];
  if (microbatch < 0) microbatch = counted;
  ++counted;
  ++under_way_;
  recorder_.begin(instruction, microbatch, chunk, clock_, mark());
  if (timed) begin_cost_.took(host_now_ns() - from);
}

void TrainingClient::end(model::Instruction instruction) {
  __builtin_prefetch(&follower_);
  recorder_.expect_end();
  if (!in_step_ || !train_) return;
  const bool timed = CallCost::due(end_calls_);
  const std::uint64_t from = timed ? host_now_ns() : 0;
  const std::uint64_t ended = mark();
  const bool marked =
      moment_ == Moment::device && !cuda_.load(std::memory_order_relaxed)->captured() && progress_->mark(position_ + 1);
  if (marked) ++position_;
  recorder_.end(instruction, ended, marked ? position_ : 0);
  under_way_ = std::max(under_way_ - 1, 0);
  // The clock of the next computation can change while this rank waits for its input, but not under other work.
  if (under_way_ == 0) request(follower_.next_clock());
  if (timed) end_cost_.took(host_now_ns() - from);
}

void TrainingClient::set_speed(model::Instruction instruction, int microbatch, int chunk) {
  __builtin_prefetch(&follower_);
  if (!in_step_ || !train_) return;
  const bool timed = CallCost::due(speed_calls_);
  const std::uint64_t from = timed ? host_now_ns() : 0;
  request(follower_.clock_for(instruction, microbatch, chunk));
  if (timed) speed_cost_.took(host_now_ns() - from);
}

/// Out of line: most computations run at the clock that was requested already.
void TrainingClient::request_other(int clock_mhz) {
  clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire);
  if (control == nullptr || moment_ == Moment::none) return;
  // Work captured into a graph runs later, and as a whole.
  if (moment_ == Moment::device && cuda_.load(std::memory_order_relaxed)->captured()) return;
  clock_ = clock_mhz;
  if (moment_ == Moment::device) {
    control->set_from(position_, Megahertz(clock_mhz));
  } else {
    control->set(Megahertz(clock_mhz));
  }
}

/// At a step's begin: decides whether clocks change at the call, at the device's moment, or not at all.
void TrainingClient::choose_moment() {
  clock_control::ClockController* const control = usable_control_.load(std::memory_order_acquire);
  Moment moment = Moment::host;
  if (use_cuda_) {
    moment = control != nullptr && open_progress(*control) ? Moment::device : Moment::none;
  } else if (!options_.synchronous && now_ns_ == nullptr) {
    if (iteration_ % kLookForRuntimeEvery == 0) asynchronous_ = CudaDriver::asynchronous_here();
    if (asynchronous_) moment = Moment::none;
  }
  const Moment before = std::exchange(moment_, moment);
  if (control == nullptr) return;
  told_moment_.store(static_cast<int>(moment), std::memory_order_relaxed);
  if (before == moment || clock_ == 0) return;
  // Changes that wait for positions which are no longer reported must not wait forever; and where no moment is known
  // the clock is the highest one.
  control->set(Megahertz(moment == Moment::none ? facts_.clocks_mhz.front() : clock_));
  if (moment == Moment::none) clock_ = 0;
}

/// False: the device's progress cannot be observed, or that failed. Opened once.
bool TrainingClient::open_progress(clock_control::ClockController& control) {
  const bool events_fail = cuda_.load(std::memory_order_relaxed)->failed();
  if (progress_ != nullptr && !events_fail && !progress_->failed() && !progress_lost_.load(std::memory_order_relaxed)) {
    return true;
  }
  if (progress_owner_ || events_fail || no_way_.load(std::memory_order_relaxed) != nullptr) {
    progress_ = nullptr;
    return false;
  }
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

bool TrainingClient::time_with_cuda(void* stream) {
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

void TrainingClient::time_with(std::uint64_t (*now_ns)(void*), void* context) {
  use_cuda_ = false;
  now_ns_ = now_ns;
  now_context_ = context;
}

// ---- The watching thread: all work that may take time

/// False: stop() came first.
bool TrainingClient::open(const std::stop_token& stop) {
  open_device(stop);
  const std::lock_guard lock(mutex_);
  if (stop.stop_requested()) {
    end_control();
    return false;
  }
  meter_ = std::make_unique<IterationMeter>(gpu_.get(), !options_.no_energy, facts_.clocks_mhz, options_.chunks,
                                            complaints_);
  open_session();
  opened_ = true;
  changed_.notify_all();
  return true;
}

void TrainingClient::watch(const std::stop_token& stop) {
  if (!opened_ && !open(stop)) return;  // opened already: this thread runs again after it ran out of memory
  double now = seconds_now();
  const auto interval_s = [this] {
    return std::clamp(2 * last_iteration_time_s_.load(std::memory_order_relaxed), kLeastWatch_s, kMostWatch_s);
  };
  while (sleep_for(stop, std::clamp(meter_->next_look_s() - now, 0.0, interval_s()))) {
    now = seconds_now();
    measure(now, false);
    look_after(now);
    now = seconds_now();
  }
  measure(seconds_now(), true);
}

void TrainingClient::choose_gpu() {
  device::DeviceRequest request{std::nullopt, options_.rank};
  if (!selector_.empty()) request.cuda_number = std::atoi(selector_.c_str() + kCudaDevice.size());
  const device::DeviceChoice choice = device::choose_device(
      device::list_gpus(), cuda_view_, [](const char* name) { return std::getenv(name); }, request);
  selector_ = choice.selector.empty() ? "none" : choice.selector;
  if (!choice.why_not.empty()) {
    no_control_ = choice.why_not;
    complaints_.raise(Cause::device, fmt::format("no energy is measured and no clock is set: {}", choice.why_not));
  }
}

void TrainingClient::open_device(const std::stop_token& stop) {
  facts_ = {};
  no_control_ = options_.advice_only ? "advice only, as asked for" : "no GPU (device \"none\")";
  facts_.host = host_name();
  facts_.accelerator = options_.accelerator;
  selector_ = options_.device;
  if (selector_.empty() || selector_.starts_with(kCudaDevice)) choose_gpu();
  if (selector_ == "none") return;
  auto gpu = device::open_gpu(selector_);
  if (!gpu) {
    no_control_ = gpu.error().message;
    complaints_.raise(Cause::device, fmt::format("{}: {}; training runs without measuring energy or setting clocks",
                                                 selector_, gpu.error().message));
    return;
  }
  // Clocks above the ceiling are not planned either. The controller reports a ceiling that cannot be read.
  const auto ceiling = device::ceiling_of_environment();
  gpu_ = device::with_ceiling(std::move(*gpu), ceiling ? *ceiling : Megahertz(0));
  if (facts_.accelerator.empty()) facts_.accelerator = gpu_->identity().uuid;
  const auto clocks = gpu_->supported_clocks();
  if (!clocks) {
    no_control_ = clocks.error().message;
    complaints_.raise(Cause::device, clocks.error().message);
    return;
  }
  for (const Megahertz clock : *clocks) facts_.clocks_mhz.push_back(clock.value());
  if (options_.advice_only || facts_.clocks_mhz.empty() || stop.stop_requested()) return;
  auto started = clock_control::ClockController::start(
      {selector_, options_.helper, options_.start_limit_s, options_.helper_restart, {}, {}, gpu_->identity()});
  if (!started) {
    no_control_ = started.error().message;
    complaints_.raise(Cause::clock_control, fmt::format("no clock is set: {}", no_control_));
    return;
  }
  control_ = std::move(*started);
  follower_.set_maximum(facts_.clocks_mhz.front());
  measure_switch_latency(stop);
  look_after_control();
  usable_control_.store(control_.get(), std::memory_order_release);
}

/// A plan without the latency assumes that clocks arrive in time. While training runs, the latency cannot be measured
/// where clocks change more often than that.
void TrainingClient::measure_switch_latency(const std::stop_token& stop) {
  facts_.switch_latency_s = std::max(options_.switch_latency_s, 0.0);
  const std::vector<int>& clocks = facts_.clocks_mhz;
  if (options_.switch_latency_s != 0 || options_.server.empty() || clocks.size() < 2) return;
  const std::size_t low = clocks.size() - 1;
  const std::array<std::size_t, 5> targets{low / 2, 0, low, 0, low / 3};
  const double end_s = seconds_now() + kLatencyLimit_s;
  // On a busy host some arrivals are observed too late to count.
  for (std::size_t i = 0; seconds_now() < end_s && control_->working_helper() != 0; ++i) {
    const std::int64_t watched = control_->statistics().clock_changes_watched;
    if (watched >= kLatencySamples) break;
    const double until_s = seconds_now() + kLatencyPatience_s;
    control_->set(Megahertz(clocks[targets[i % targets.size()]]));
    while (control_->statistics().clock_changes_watched == watched && seconds_now() < until_s) {
      if (control_->working_helper() == 0 || !sleep_for(stop, 0.001)) break;
    }
    if (stop.stop_requested()) break;
  }
  control_->set(Megahertz(0));
  facts_.switch_latency_s = control_->statistics().call_to_clock_p50_s;
}

void TrainingClient::open_session() {
  if (options_.server.empty()) return;
  SessionListener listener;
  listener.on_job = [this](const std::string& job) {
    jobs_.push_back(job);
    job_.store(jobs_.back().c_str(), std::memory_order_release);
  };
  listener.on_plan = [this, said = std::string()](std::unique_ptr<ClockPlan> plan) mutable {
    const bool no_plan = plan->kind == ClockPlan::Kind::maximum_clock && !plan->reason.empty();
    if (no_plan && std::exchange(said, plan->reason) != plan->reason) {
      complaints_.say(LogLevel::info, no_plan_message(job(), plan->reason));
    }
    guard_.arrives(*plan);
    hold_as_needed();
    follower_.put(std::move(plan));
  };
  listener.on_held = [this](bool held) {
    {
      const std::lock_guard lock(holding_);
      server_holds_ = held;
    }
    hold_as_needed();
  };
  listener.iteration = [this] { return finished_.load(std::memory_order_acquire); };
  // Only ranks that name their clocks take part in online profiling: a rank that cannot set any must not be requested
  // to vary them.
  RankFacts facts = facts_;
  if (helper_ == 0 && options_.profile.empty()) facts.clocks_mhz.clear();
  if (helper_ == 0) {
    facts.control = options_.advice_only ? "advice" : "none";
    facts.control_reason = control_ ? control_->why() : no_control_;
  }
  learnt_ = facts;
  session_ = std::make_unique<Session>(options_, std::move(facts), std::move(listener), complaints_);
}

/// Reads the counter, if it is time, and processes all steps that the training thread has completed since.
void TrainingClient::measure(double now_s, bool all) {
  if (meter_->next_look_s() <= now_s) meter_->look(now_s);
  if (control_) {
    control_->applied_since(applied_read_, [this](const clock_control::AppliedClock& applied) {
      meter_->clock_set(static_cast<double>(applied.call_ns) * 1e-9, applied.clock_mhz);
      if (!applied.at_device_time) return;
      if (CudaEvents* const events = cuda_.load(std::memory_order_acquire)) {
        events->reached_by(applied.position, static_cast<std::uint64_t>(applied.call_ns));
      }
      reached_.push_back(applied);
    });
  }
  if (CudaEvents* const events = cuda_.load(std::memory_order_acquire)) events->probe();
  while (const Step* const step = recorder_.oldest()) {
    if (step->cuda) {
      CudaEvents* const events = cuda_.load(std::memory_order_acquire);
      if (!events->finished(*step) && !all) break;  // the GPU is not there yet
      if (events->finished(*step)) {
        const Step timed = events->on_host(*step);
        measure_reached(timed);
        check_position(timed, now_s);
        guard(timed);
        meter_->take(timed, now_s);
      }
      events->release(*step);
      if (events->failed())
        complaints_.raise(Cause::cuda, "CUDA events fail; computations are timed by the host's clock");
    } else {
      guard(*step);
      meter_->take(*step, now_s);
    }
    if (learnt_.instructions.empty() && step->train && step->clean) {
      for (std::size_t i = 0; i < step->count; ++i) {
        learnt_.instructions.emplace_back(name_of(step->computations[i].instruction));
      }
    }
    recorder_.release();
  }
  if (session_ && now_s >= next_learnt_s_) {
    tell_what_was_learnt();
    next_learnt_s_ = now_s + kLearntInterval_s;
  }
  for (MeasuredIteration& iteration : meter_->measured(now_s, all)) {
    if (session_) session_->report(std::move(iteration));
  }
}

/// Measures the delay from the device passing a boundary to the helper's call for the clock behind it.
void TrainingClient::measure_reached(const Step& step) {
  for (std::size_t i = 0; i < step.count && !reached_.empty(); ++i) {
    const RecordedComputation& c = step.computations[i];
    if (c.end_position == 0) continue;
    while (!reached_.empty() && static_cast<std::int32_t>(c.end_position - reached_.front().position) >= 0) {
      if (reached_.front().position == c.end_position) {
        reached_to_call_.record(reached_.front().call_ns - static_cast<std::int64_t>(c.end));
      }
      reached_.pop_front();
    }
  }
}

/// The GPU has completed the step, so its position must be at the step's end, or arrive there soon.
void TrainingClient::check_position(const Step& step, double now_s) {
  if (!control_ || progress_lost_.load(std::memory_order_relaxed)) return;
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < step.count; ++i) {
    if (step.computations[i].end_position != 0) last = step.computations[i].end_position;
  }
  const bool behind = last != 0 && static_cast<std::int32_t>(control_->position() - last) < 0;
  if (!behind) {
    behind_since_s_ = 0;
  } else if (behind_since_s_ == 0) {
    behind_since_s_ = now_s;
  } else if (now_s - behind_since_s_ > kPositionPatience_s) {
    progress_lost_ = true;
  }
}

std::string TrainingClient::progress_fault() const {
  if (const char* const why = no_way_.load(std::memory_order_acquire)) return why;
  if (progress_lost_) return fmt::format("the GPU's position does not arrive by {}", way_.load());
  return "CUDA calls fail";
}

void TrainingClient::hold_as_needed() {
  const std::lock_guard lock(holding_);
  follower_.hold_maximum(server_holds_ || (usable_control_.load() != nullptr && guard_.holds()));
}

/// Passes an iteration to the guard, once the next one has begun, and acts on its decision.
void TrainingClient::guard(const Step& step) {
  const bool controlled = usable_control_.load() != nullptr;
  const bool follows = controlled && step.train && step.clean && guarded_ && step.iteration == guarded_->number + 1;
  if (follows) {
    // From begin to begin: a plan may let this rank end later where it has slack, but not the job.
    guarded_->iteration.time_s = 1e-9 * static_cast<double>(step.begin_mark - guarded_->begin_mark);
    guard_.take(guarded_->iteration);
  }
  guarded_.reset();
  if (step.train && step.cuda && step.end_mark > step.begin_mark) {
    last_iteration_time_s_.store(1e-9 * static_cast<double>(step.end_mark - step.begin_mark),
                                 std::memory_order_relaxed);
  }
  if (!step.train || !step.clean) return;
  for (std::size_t i = 0; i < step.count; ++i) late_clocks_.ran(step.computations[i].instruction);
  const int highest_mhz = facts_.clocks_mhz.empty() ? 0 : facts_.clocks_mhz.front();
  guarded_ = {step.iteration, step.begin_mark, guarded_iteration(step, highest_mhz)};
  hold_as_needed();
  if (dropped_version_ != 0 && step.plan_version != dropped_version_ && !step.at_maximum) {
    dropped_version_ = 0;
    complaints_.clear(Cause::slowdown, fmt::format("plan {} replaces the one that was dropped", step.plan_version));
  }
  if (const auto remark = guard_.take_remark()) complaints_.say(LogLevel::info, *remark);
  if (const std::optional<DroppedPlan> dropped = guard_.take_dropped()) {
    dropped_version_ = dropped->version;
    ++plans_dropped_;
    complaints_.raise(Cause::slowdown, fmt::format("plan {} is dropped: {}; the highest clock until another plan comes",
                                                   dropped->version, dropped->text));
    if (session_) session_->plan_dropped(*dropped);
  }
}

/// Time from a boundary until its clock is in effect: the position becomes visible, the helper sees it and calls, and
/// the GPU changes its clock. 0: not known.
double TrainingClient::boundary_to_clock_s() const {
  const double call_to_clock_s = control_->statistics().call_to_clock_p50_s;
  if (call_to_clock_s <= 0 || reached_to_call_.count() < kLeastReached) return call_to_clock_s;
  return call_to_clock_s + reached_to_call_.quantile_s(0.5);
}

/// The rank registered before these facts were known.
void TrainingClient::tell_what_was_learnt() {
  const auto is_news = [](double found, double told) {
    return found > 0 && std::abs(found - told) > kNewsShare * told;
  };
  bool news = !std::exchange(told_instructions_, !learnt_.instructions.empty()) && !learnt_.instructions.empty();
  if (control_ && options_.switch_latency_s <= 0) {
    const double latency_s = boundary_to_clock_s();
    if (is_news(latency_s, learnt_.switch_latency_s)) {
      learnt_.switch_latency_s = latency_s;
      news = true;
    }
  }
  const PowerEstimate blocking = meter_->facts().blocking;
  const bool known = options_.blocking_power_w == 0 && blocking.stddev_w < kNewsShare / 2 * blocking.power_w;
  if (known && is_news(blocking.power_w, learnt_.blocking_power_w)) {
    learnt_.blocking_power_w = blocking.power_w;
    news = true;
  }
  // For a rank that could set no clock when it registered.
  if (helper_ != 0 && learnt_.clocks_mhz.empty() && !facts_.clocks_mhz.empty()) {
    learnt_.clocks_mhz = facts_.clocks_mhz;
    news = true;
  }
  if (control_changed()) news = true;
  if (news) session_->learnt(learnt_);
}

/// An ended helper usually has a successor: report only a permanent loss to the server.
bool TrainingClient::control_changed() {
  constexpr double away_s = 10;
  if (!control_) return false;
  if (helper_ != 0) {
    control_lost_s_ = 0;
    if (learnt_.control.empty() || learnt_.control == "clocks") return false;
    learnt_.control = "clocks";
    learnt_.control_reason.clear();
    return true;
  }
  const double now_s = seconds_now();
  if (control_lost_s_ == 0) control_lost_s_ = now_s;
  if (learnt_.control == "none" || now_s - control_lost_s_ < away_s) return false;
  learnt_.control = "none";
  learnt_.control_reason = control_->why();
  return true;
}

/// Complaints that the training thread must not log itself.
void TrainingClient::look_after(double now_s) {
  if (session_) session_->keep_running();
  complaints_.remind();
  if (const std::int64_t misfit = follower_.misfit_version(); misfit != told_misfit_) {
    if (misfit != 0) {
      const int ran = follower_.misfit_instruction();
      complaints_.raise(Cause::plan,
                        fmt::format("plan {} does not fit what this rank runs: computation {} is {}; the highest clock "
                                    "until a plan fits",
                                    misfit, follower_.misfit_position() + 1,
                                    ran < 0 ? "missing" : name_of(static_cast<model::Instruction>(ran))));
    } else {
      complaints_.clear(Cause::plan, "the plan fits what this rank runs");
    }
    told_misfit_ = misfit;
  }
  if (control_) {
    if (now_s >= next_latency_s_) {
      const SwitchLatency latency = switch_latency_of(control_->statistics());
      meter_->switch_latency(latency.seconds, latency.stddev_s);
      next_latency_s_ = now_s + kLatencyInterval_s;
    }
    look_after_control();
    watch_progress();
    late_clocks_.judge(meter_->facts().late, complaints_);
  }
  const std::int64_t finished = finished_.load(std::memory_order_acquire);
  if (const std::int64_t lost = recorder_.lost_steps(); lost != lost_steps_) {
    complaints_.raise(Cause::records, "iterations come faster than they can be taken in; some are not recorded");
    lost_steps_ = lost;
    finished_at_loss_ = finished;
  } else if (finished - finished_at_loss_ > kStepsWithoutLoss) {
    complaints_.clear(Cause::records, "iterations are all recorded again");
  }
}

/// Checks whether the device reports its position, and complains if not.
void TrainingClient::watch_progress() {
  const int moment = told_moment_.load(std::memory_order_relaxed);
  if (moment == static_cast<int>(Moment::none)) {
    complaints_.raise(Cause::device_time,
                      cuda_.load(std::memory_order_acquire) == nullptr
                          ? "no clock is set: the GPU computes later than the host calls, and when is not known; call "
                            "perseus_time_with_cuda(), or set PERSEUS_SYNCHRONOUS if the program waits for its GPU in "
                            "every computation"
                          : "no clock is set: nothing tells where the GPU is (" + progress_fault() + ")");
  } else if (moment >= 0) {
    complaints_.clear(Cause::device_time, moment == static_cast<int>(Moment::device)
                                              ? fmt::format("clocks change when the GPU gets there ({})", way_.load())
                                              : "clocks change at the call");
  }
  if (follower_.whole_step()) {
    complaints_.raise(Cause::graph, "steps run without begin and end (captured as CUDA graphs): one clock per step");
  } else {
    complaints_.clear(Cause::graph, "steps run computation by computation");
  }
}

/// Clock control restarts an ended helper and gives the new one the newest clock. Another refusal by the device is
/// not reported again.
void TrainingClient::look_after_control() {
  const std::int64_t helper = control_->working_helper();
  const std::int64_t before = std::exchange(helper_, helper);
  if (helper == 0 || (before != 0 && helper != before)) {
    const std::string why = control_->why();
    complaints_.raise(Cause::clock_control, fmt::format("no clock is set: {}; clock control tries again",
                                                        why.empty() ? "perseus-clockd ended" : why));
  }
  if (helper != 0 && complaints_.raised(Cause::clock_control) && !control_->statistics().pending &&
      control_->working_helper() == helper) {
    complaints_.clear(Cause::clock_control, fmt::format("clocks are set again, by perseus-clockd {}", helper));
  }
}

// ---- Status and statistics

void TrainingClient::statistics(perseus_statistics& s) {
  bool opened = false;
  {
    const std::lock_guard lock(mutex_);
    opened = opened_;
  }
  const int kind = plan_kind_.load(std::memory_order_relaxed);
  const bool controlled = opened && control_ && control_->working_helper() != 0;
  const bool wrong = follower_.held() || follower_.misfit_version() != 0;
  s.state = !opened || (kind < 0 && session_ && !complaints_.raised(Cause::server)) ? PERSEUS_STARTING
            : kind < 0 || wrong                                                     ? PERSEUS_MAXIMUM_CLOCK
            : kind == static_cast<int>(ClockPlan::Kind::plan)                       ? PERSEUS_PLANNED
            : kind == static_cast<int>(ClockPlan::Kind::profiling_window)           ? PERSEUS_PROFILING
                                                                                    : PERSEUS_MAXIMUM_CLOCK;
  s.iteration = finished_.load(std::memory_order_acquire);
  s.plan_version = follower_.version_in_force();
  s.plan_from_iteration = plan_from_.load(std::memory_order_relaxed);
  s.planned_iteration_time_s = planned_time_s_.load(std::memory_order_relaxed);
  s.last_iteration_time_s = last_iteration_time_s_.load(std::memory_order_relaxed);
  s.plans_dropped = plans_dropped_.load(std::memory_order_relaxed);
  s.last_iteration_energy_j = -1;
  s.blocking_power_w = options_.blocking_power_w;
  if (opened) {
    const EnergyFacts energy = meter_->facts();
    s.last_iteration_energy_j = energy.last_iteration_j;
    s.energy_total_j = energy.total_j;
    if (s.blocking_power_w == 0) s.blocking_power_w = energy.blocking.power_w;
    s.samples = energy.intervals;
    s.samples_throttled = energy.throttled;
    s.samples_rejected = energy.rejected;
    s.computations_mixed = energy.mixed;
    s.computations_unsure = energy.unsure;
  }
  if (opened && control_) {
    const clock_control::ControlStatistics control = control_->statistics();
    s.clocks_requested = control.requested;
    s.clocks_applied = control.applied;
    s.clocks_superseded = control.superseded;
    s.clocks_failed = control.failed;
    s.helper_restarts = std::max<std::int64_t>(control.helpers - 1, 0);
    // At device time: from the device passing the boundary, by its own events; else from the call.
    const double reached_p50_s = reached_to_call_.quantile_s(0.5), reached_p99_s = reached_to_call_.quantile_s(0.99);
    const bool by_device = reached_to_call_.count() > 0;
    s.request_to_device_p50_s = by_device ? reached_p50_s + control.device_call_p50_s : control.request_to_device_p50_s;
    s.request_to_device_p99_s = by_device ? reached_p99_s + control.device_call_p99_s : control.request_to_device_p99_s;
  }
  const double helper_cpu_s = opened && control_ ? control_->statistics().helper_cpu_s : 0;
  s.begin_end_ns = begin_cost_.median_ns() + end_cost_.median_ns();
  s.set_speed_ns = speed_cost_.median_ns();
  s.client_cpu_s = watching_.cpu_s() + (opened && session_ ? session_->cpu_s() : 0) + helper_cpu_s;
  s.server_failures = opened && session_ ? session_->failures() : 0;
  s.server_reached = opened && session_ && session_->reached() ? 1 : 0;
  s.controls_clock = controlled ? 1 : 0;
}

/// How the moment of a clock change is determined.
std::string_view TrainingClient::device_time() const {
  const int moment = told_moment_.load(std::memory_order_relaxed);
  if (moment == static_cast<int>(Moment::device)) return way_.load(std::memory_order_acquire);
  return moment == static_cast<int>(Moment::host) ? "call" : "unknown";
}

std::string TrainingClient::status() {
  ClientStatus status;
  statistics(status.statistics);
  status.job = job();
  status.rank = options_.rank;
  status.device = options_.device;
  status.device_time = device_time();
  status.record_bytes = recorder_.bytes();
  status.complaints = complaints_.all();
  {
    const std::lock_guard lock(mutex_);
    if (opened_) status.energy = meter_->facts();
    if (opened_ && control_) {
      status.helper_pid = control_->helper_pid();
      status.switch_latency_s = switch_latency_of(control_->statistics()).seconds;
    }
  }
  return status_json(status);
}

}  // namespace perseus::client
