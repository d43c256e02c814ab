#include "client/background_thread.h"

#include <pthread.h>
#include <semaphore.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include "client/call_cost.h"

namespace perseus::client {

struct BackgroundThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  double cpu_s = 0;
  clockid_t cpu_clock{};
};

namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

void BackgroundThread::start(const char* name, Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  try {
    auto state = std::make_shared<State>();
    thread_ = std::thread([state, body = std::move(body), token = stop_.get_token()]() mutable {
      try {
        body(token);
      } catch (...) {  // out of memory: the client goes on without this thread
      }
      body = nullptr;
      const std::lock_guard lock(state->mutex);
      state->cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
      state->ended = true;
      state->changed.notify_all();
    });
    pthread_setname_np(thread_.native_handle(), name);
    pthread_getcpuclockid(thread_.native_handle(), &state->cpu_clock);
    state_ = std::move(state);
  } catch (const std::system_error&) {}
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool BackgroundThread::wait(double limit_s) {
  if (!state_) return true;
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::chrono::duration<double>(std::max(limit_s, 0.0)),
                                  [&] { return state_->ended; });
}

bool BackgroundThread::stop(double limit_s) {
  if (!state_) return true;
  stop_.request_stop();
  const bool ended = wait(limit_s);
  cpu_at_end_s_ = cpu_s();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  state_ = nullptr;
  return ended;
}

double BackgroundThread::cpu_s() const {
  if (!state_) return cpu_at_end_s_;
  const std::lock_guard lock(state_->mutex);
  return state_->ended ? state_->cpu_s : seconds_of(state_->cpu_clock);
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
