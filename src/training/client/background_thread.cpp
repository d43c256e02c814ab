#include "training/client/background_thread.h"

#include <pthread.h>
#include <semaphore.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/cpu_time.h"
#include "training/client/call_cost.h"
#include "training/clock_control/restart_pause.h"

namespace perseus::client {

struct BackgroundThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  double cpu_s = 0;
  clockid_t cpu_clock{};
};

namespace {

/// Runs the body until it returns. A body that throws (no memory, no descriptors, no thread) runs again after a
/// pause.
void run(const BackgroundThread::Body& body, const std::stop_token& stop) {
  clock_control::RestartPause pause({0.1, 5});
  while (true) {
    const double began_s = host_now_s();
    try {
      return body(stop);
    } catch (...) {}
    if (!sleep_for(stop, pause.after(host_now_s() - began_s))) return;
  }
}

}  // namespace

void BackgroundThread::start(const char* name, Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  try {
    auto state = std::make_shared<State>();
    thread_ = std::thread([state, body = std::move(body), token = stop_.get_token()]() mutable {
      run(body, token);
      body = nullptr;
      const std::lock_guard lock(state->mutex);
      state->cpu_s = thread_cpu_s();
      state->ended = true;
      state->changed.notify_all();
    });
    pthread_setname_np(thread_.native_handle(), name);
    pthread_getcpuclockid(thread_.native_handle(), &state->cpu_clock);
    const std::lock_guard lock(mutex_);
    state_ = std::move(state);
  } catch (const std::exception&) {}  // no thread or no memory: running() is false
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::shared_ptr<BackgroundThread::State> BackgroundThread::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool BackgroundThread::wait(double limit_s) {
  const std::shared_ptr<State> state = this->state();
  if (!state) return true;
  std::unique_lock lock(state->mutex);
  return state->changed.wait_for(lock, std::chrono::duration<double>(std::max(limit_s, 0.0)),
                                 [&] { return state->ended; });
}

bool BackgroundThread::stop(double limit_s) {
  if (!running()) return true;
  stop_.request_stop();
  const bool ended = wait(limit_s);
  const double used_s = cpu_s();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  const std::lock_guard lock(mutex_);
  cpu_at_end_s_ = used_s;
  state_ = nullptr;
  return ended;
}

double BackgroundThread::cpu_s() const {
  std::shared_ptr<State> state;
  {
    const std::lock_guard lock(mutex_);
    if (!state_) return cpu_at_end_s_;
    state = state_;
  }
  const std::lock_guard lock(state->mutex);
  return state->ended ? state->cpu_s : cpu_s_of(state->cpu_clock);
}

bool sleep_for(const std::stop_token& stop, double seconds) {
  // Not a condition variable: with a stop token that is two locks, an allocation and four libraries' pages.
  const std::uint64_t until_ns = host_now_ns() + static_cast<std::uint64_t>(1e9 * seconds);
  const timespec until{static_cast<time_t>(until_ns / 1'000'000'000), static_cast<long>(until_ns % 1'000'000'000)};
  sem_t stopped;
  sem_init(&stopped, 0, 0);
  {
    const std::stop_callback wake(stop, [&stopped] { sem_post(&stopped); });
    while (sem_clockwait(&stopped, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {}
  }
  sem_destroy(&stopped);
  return !stop.stop_requested();
}

}  // namespace perseus::client
