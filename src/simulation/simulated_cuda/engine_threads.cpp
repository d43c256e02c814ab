// The threads of the engine: the device, which executes operations, and the driver's thread for host functions.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "simulation/simulated_cuda/engine.h"

namespace perseus::simulated_cuda {
namespace {

constexpr double kPollInterval = 20e-6;  // of memory that a stream polls
constexpr double kLongestSleep = 1.0;

thread_local bool runs_host_function = false;

/// A busy host must not slow the device: its thread wakes up on time, and with priority where that is allowed.
void become_device() {
  prctl(PR_SET_TIMERSLACK, 1000);
  const sched_param priority{.sched_priority = 1};
  pthread_setschedparam(pthread_self(), SCHED_RR, &priority);
}

/// Comparisons are cyclic, as the documentation of cuStreamWaitValue32 defines them.
bool satisfied(const Operation& o, std::uint64_t found) {
  const std::uint64_t mask = o.bytes == 8 ? ~0ULL : 0xffffffffULL;
  switch (o.flags & 3U) {
    case kWaitGreaterOrEqual:
      return o.bytes == 8 ? static_cast<std::int64_t>(found - o.value) >= 0
                          : static_cast<std::int32_t>(static_cast<std::uint32_t>(found - o.value)) >= 0;
    case kWaitEqual:
      return found == (o.value & mask);
    case kWaitAnd:
      return (found & o.value & mask) != 0;
    default:
      return (~(found | o.value) & mask) != 0;
  }
}

}  // namespace

bool Engine::in_host_function() { return runs_host_function; }

void Engine::run() {
  become_device();
  while (true) {
    const std::uint32_t seen = gpu_->changes();
    double sleep_s = kLongestSleep;
    {
      Lock lock(mutex_);
      sleep_s = pump(lock);
    }
    if (sleep_s > 0) gpu_->wait_change(seen, sleep_s);
  }
}

double Engine::pump(Lock& lock) {
  const Knobs& knobs = knobs_.get();
  for (bool moved = true; moved;) {
    moved = false;
    next_s_ = now_s() + kLongestSleep;
    if (failure_ != 0) {
      drop_all();
      return kLongestSleep;
    }
    if (finish_kernel()) moved = true;
    // Streams may be created and destroyed while a message is delivered.
    const std::vector<std::shared_ptr<Stream>> streams = streams_;
    for (const auto& stream : streams) take_in(*stream);
    for (const auto& stream : streams) {
      if (show_effects(*stream, now_s())) moved = true;
      while (step(lock, stream, knobs)) moved = true;
    }
    if (start_kernel(knobs)) moved = true;
    if (moved) changed_.notify_all();
  }
  std::erase_if(streams_, [&](const auto& stream) { return stream->destroyed_ && done(*stream); });
  double sleep_s = kLongestSleep;
  if (computing_) sleep_s = std::min(sleep_s, gpu_->remaining().value());
  const double now = now_s();
  sleep_s = std::min(sleep_s, next_s_ - now);
  for (const auto& stream : streams_) {
    if (!stream->effects_.empty()) sleep_s = std::min(sleep_s, stream->effects_.front().due_s - now);
    if (!stream->waiting_.empty() && stream->waiting_.front().kind == Operation::Kind::wait_value) {
      sleep_s = std::min(sleep_s, kPollInterval);
    }
  }
  return sleep_s;
}

bool Engine::show_effects(Stream& stream, double now) {
  bool shown = false;
  while (!stream.effects_.empty() && stream.effects_.front().due_s <= now) {
    const Stream::Effect effect = std::move(stream.effects_.front());
    stream.effects_.pop_front();
    shown = true;
    if (effect.record) {
      effect.record->visible = true;
    } else if (!memory_.write(effect.address, effect.bytes, effect.value)) {
      failure_ = kIllegalAddress;
      drop_all();
      return true;
    }
  }
  return shown;
}

/// The legacy stream and the blocking streams of its context: each waits for the earlier operations of the other.
bool Engine::behind_others(const Stream& stream, const Operation& operation) const {
  if (!stream.legacy_ && !stream.blocking_) return false;
  return std::ranges::any_of(streams_, [&](const auto& other) {
    const bool related = other->domain_ == stream.domain_ && (stream.legacy_ ? other->blocking_ : other->legacy_);
    return related && other.get() != &stream && !other->waiting_.empty() &&
           other->waiting_.front().number < operation.number;
  });
}

/// In device time.
void Engine::meet_others(Stream& stream) const {
  if (!stream.legacy_ && !stream.blocking_) return;
  for (const auto& other : streams_) {
    const bool related = other->domain_ == stream.domain_ && (stream.legacy_ ? other->blocking_ : other->legacy_);
    if (related) stream.time_s_ = std::max(stream.time_s_, other->time_s_);
  }
}

/// If false, the device gets there later, and the engine checks again then.
bool Engine::is_now(double time_s) {
  if (time_s <= now_s()) return true;
  next_s_ = std::min(next_s_, time_s);
  return false;
}

/// The earliest start of that stream's kernel, for the stream and the GPU.
double Engine::free_s(const Stream& stream) const { return std::max(stream.time_s_, free_s_); }

double Engine::start_s(const Stream& stream, const Knobs& knobs) const {
  return std::max(free_s(stream), stream.waiting_.front().enqueued_s + 1e-6 * knobs.launch_latency_us);
}

bool Engine::step(Lock& lock, const std::shared_ptr<Stream>& stream, const Knobs& knobs) {
  if (stream->running_ || stream->waiting_.empty()) return false;
  const Operation& o = stream->waiting_.front();
  if (o.kind == Operation::Kind::kernel || behind_others(*stream, o)) return false;
  meet_others(*stream);
  if (!is_now(stream->time_s_)) return false;
  if (o.kind == Operation::Kind::host_function) return call_host_function(stream, knobs);
  if (o.kind == Operation::Kind::tell) {
    tell(lock, *stream);
    return true;
  }
  const Execution execution = execute(*stream, knobs);
  if (execution == Execution::done) pop(*stream);
  return execution != Execution::later;
}

Engine::Execution Engine::execute(Stream& stream, const Knobs& knobs) {
  using Kind = Operation::Kind;
  Operation& o = stream.waiting_.front();
  double& time_s = stream.time_s_;
  const auto due_s = [&] { return time_s + 1e-6 * knobs.visible_after_us; };
  switch (o.kind) {
    case Kind::record:
      time_s = std::max(time_s, o.enqueued_s);
      o.record->time_s = time_s;
      o.record->reached = true;
      stream.effects_.push_back({due_s(), o.record, nullptr, 0, 0});
      return Execution::done;
    case Kind::wait_event:
      if (!o.record->reached) return Execution::later;
      time_s = std::max(time_s, o.record->time_s);
      return Execution::done;
    case Kind::write:
      time_s = std::max(time_s, o.enqueued_s);
      stream.effects_.push_back({due_s(), nullptr, o.address, o.value, o.bytes});
      return Execution::done;
    case Kind::wait_value:
      return poll_value(stream);
    case Kind::await_message: {
      const auto found = messages_.find(o.message);
      if (found == messages_.end()) return Execution::later;
      time_s = std::max(time_s, found->second + o.latency_s);
      messages_.erase(found);
      return Execution::done;
    }
    case Kind::stamp:
      *o.stamp = stream.last_;
      o.stamp->time_s = time_s;
      o.stamp->energy_j = gpu_->energy(time_s).value();
      return Execution::done;
    default:
      return Execution::done;
  }
}

Engine::Execution Engine::poll_value(Stream& stream) {
  const Operation& o = stream.waiting_.front();
  std::uint64_t found = 0;
  if (!memory_.read(o.address, o.bytes, found)) {
    failure_ = kIllegalAddress;
    drop_all();
    return Execution::failed;
  }
  if (!satisfied(o, found)) return Execution::later;
  stream.time_s_ = std::max(stream.time_s_, now_s());  // the time of the write is not known
  return Execution::done;
}

/// False: the function may read results of earlier operations that the host does not see yet.
bool Engine::call_host_function(const std::shared_ptr<Stream>& stream, const Knobs& knobs) {
  if (!stream->effects_.empty()) return false;
  const Operation& o = stream->waiting_.front();
  stream->running_ = true;
  calls_.push_back({stream, o.function, o.user, now_s() + 1e-6 * knobs.host_function_after_us});
  called_.notify_one();
  return true;
}

void Engine::tell(Lock& lock, Stream& stream) {
  const ReachedFunction reached = stream.waiting_.front().reached;
  void* const user = stream.waiting_.front().user;
  const double at_s = stream.time_s_;
  pop(stream);
  stream.running_ = true;  // operations behind it must wait
  telling_ = true;
  lock.unlock();
  reached(user, at_s);
  lock.lock();
  telling_ = false;
  stream.running_ = false;
  changed_.notify_all();
}

bool Engine::finish_kernel() {
  if (!computing_ || gpu_->remaining() > Seconds(0)) return false;
  const simulated_gpu::SimulatedGpu::Finished finished = gpu_->finish();
  Stream& stream = *computing_;
  stream.last_.end_s = finished.at_s;
  stream.last_.kernel_energy_j = finished.energy.value();
  stream.last_.kernel_clock_mhz = gpu_->clock().value();
  stream.time_s_ = free_s_ = finished.at_s;
  stream.running_ = false;
  pop(stream);
  computing_.reset();
  return true;
}

bool Engine::start_kernel(const Knobs& knobs) {
  if (computing_) return false;
  std::shared_ptr<Stream> first;
  for (const auto& stream : streams_) {
    if (stream->running_ || stream->waiting_.empty()) continue;
    const Operation& o = stream->waiting_.front();
    if (o.kind != Operation::Kind::kernel || behind_others(*stream, o)) continue;
    meet_others(*stream);
    if (!is_now(start_s(*stream, knobs))) continue;
    if (!first || o.number < first->waiting_.front().number) first = stream;
  }
  if (!first) return false;
  const double could_s = free_s(*first), should_s = start_s(*first, knobs);
  const double late_s = now_s() - should_s;
  const double began_s = gpu_->begin_in_the_past(first->waiting_.front().computation, should_s);
  const double lost_s = std::max(0.0, began_s - should_s);
  Stamp& last = first->last_;
  last.start_s = began_s;
  last.made_up_s += std::max(0.0, late_s - lost_s);
  last.lost_s += lost_s;
  last.starved_s += should_s - could_s;
  first->running_ = true;
  computing_ = first;
  return true;
}

// ---- The driver's thread for host functions

void Engine::run_host_functions() {
  Lock lock(mutex_);
  while (true) {
    called_.wait(lock, [&] { return !calls_.empty(); });
    const HostCall call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    if (const double wait_s = call.due_s - now_s(); wait_s > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
    }
    if (failure_ == 0) {
      runs_host_function = true;
      call.function(call.user);
      runs_host_function = false;
    }
    lock.lock();
    if (failure_ != 0) continue;
    call.stream->time_s_ = std::max(call.stream->time_s_, now_s());
    call.stream->running_ = false;
    pop(*call.stream);
    changed_.notify_all();
    gpu_->tell_change();
  }
}

}  // namespace perseus::simulated_cuda
