#include "simulation/simulated_cuda/engine.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <thread>
#include <utility>

namespace perseus::simulated_cuda {
double Engine::now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Result<Engine*> Engine::start(const std::string& gpu, KnobBoard& knobs, HostAccess memory) {
  auto attached = simulated_gpu::SimulatedGpu::attach(gpu);
  if (!attached) return attached.error();
  auto* const engine = new Engine(*std::move(attached), knobs, memory);
  engine->gpu_->wait();
  engine->free_s_ = now_s();
  std::thread([engine] { engine->run(); }).detach();
  std::thread([engine] { engine->run_host_functions(); }).detach();
  return engine;
}

std::shared_ptr<Stream> Engine::make_stream(const void* domain, bool legacy, bool blocking) {
  auto stream = std::make_shared<Stream>(domain, legacy, blocking);
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return stream;
}

void Engine::destroy(Stream& stream) {
  const std::lock_guard lock(mutex_);
  stream.destroyed_ = true;
  gpu_->tell_change();
}

void Engine::destroy_all(const void* domain) {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) {
    if (stream->domain_ == domain) stream->destroyed_ = true;
  }
  gpu_->tell_change();
}

int Engine::wait(Lock& lock, const std::function<bool()>& condition) {
  changed_.wait(lock, [&] { return failure_ != 0 || condition(); });
  return failure_;
}

int Engine::enqueue(Stream& stream, Operation operation) {
  const auto room = static_cast<std::size_t>(std::max(1.0, knobs_.get().launch_queue));
  if (stream.pending_ >= room) {
    Lock lock(mutex_);
    wait(lock, [&] { return stream.pending_ < room; });
  }
  if (failure_ != 0) return failure_;
  bool was_empty = false;
  {
    const std::lock_guard arriving(stream.arriving_mutex_);
    operation.enqueued_s = now_s();
    operation.number = next_number_++;
    stream.arriving_.push_back(std::move(operation));
    // Else the engine takes it in after it has completed the operations before it.
    was_empty = stream.pending_++ == 0;
  }
  if (was_empty) gpu_->tell_change();
  return kSuccess;
}

void Engine::take_in(Stream& stream) {
  const std::lock_guard arriving(stream.arriving_mutex_);
  std::ranges::move(stream.arriving_, std::back_inserter(stream.waiting_));
  stream.arriving_.clear();
}

void Engine::pop(Stream& stream) {
  stream.waiting_.pop_front();
  --stream.pending_;
}

int Engine::enqueue(Stream& stream, const std::vector<Operation>& graph) {
  for (const Operation& operation : graph) {
    if (const int code = enqueue(stream, operation); code != 0) return code;
  }
  return kSuccess;
}

bool Engine::done(const Stream& stream) const { return stream.pending_ == 0 && stream.effects_.empty(); }

int Engine::query(Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (failure_ != 0) return failure_;
  return done(stream) ? kSuccess : kNotReady;
}

int Engine::synchronize(Stream& stream) {
  Lock lock(mutex_);
  const std::uint64_t until = next_number_;
  take_in(stream);
  // Operations enqueued during the wait are not waited for.
  return wait(lock, [&] {
    return (stream.waiting_.empty() || stream.waiting_.front().number >= until) && stream.effects_.empty();
  });
}

int Engine::synchronize_all(const void* domain) {
  Lock lock(mutex_);
  return wait(lock, [&] {
    return std::ranges::all_of(streams_,
                               [&](const auto& stream) { return stream->domain_ != domain || done(*stream); });
  });
}

int Engine::query(const EventRecord& record) {
  const std::lock_guard lock(mutex_);
  if (failure_ != 0) return failure_;
  return record.visible ? kSuccess : kNotReady;
}

int Engine::synchronize(const EventRecord& record) {
  Lock lock(mutex_);
  return wait(lock, [&] { return record.visible; });
}

int Engine::elapsed_ms(const EventRecord& from, const EventRecord& to, float& milliseconds) {
  const double resolution_s = 1e-6 * knobs_.get().event_resolution_us;
  const auto ticks = [&](double time_s) {
    return resolution_s > 0 ? std::floor(time_s / resolution_s) * resolution_s : time_s;
  };
  const std::lock_guard lock(mutex_);
  if (failure_ != 0) return failure_;
  if (!from.visible || !to.visible) return kNotReady;
  milliseconds = static_cast<float>(1e3 * (ticks(to.time_s) - ticks(from.time_s)));
  return kSuccess;
}

int Engine::deliver(std::uint64_t message, double time_s) {
  const std::lock_guard lock(mutex_);
  if (failure_ != 0) return failure_;
  if (!messages_.emplace(message, time_s).second) return kInvalidValue;
  gpu_->tell_change();
  return kSuccess;
}

void Engine::fail(int code) {
  Lock lock(mutex_);
  int none = 0;
  failure_.compare_exchange_strong(none, code);
  drop_all();
  changed_.notify_all();
  gpu_->tell_change();
  changed_.wait(lock, [&] { return !telling_; });
}

void Engine::drop_all() {
  for (const auto& stream : streams_) {
    take_in(*stream);
    stream->pending_ -= stream->waiting_.size();
    stream->waiting_.clear();
    stream->effects_.clear();
    stream->running_ = false;
  }
  computing_.reset();
  calls_.clear();
}

}  // namespace perseus::simulated_cuda
