// A thread of clock control inside a training process: it blocks all signals, and no exception of its function ends the
// process.
//
// Input:   a function that keeps its progress outside of itself: if it throws (no memory), it runs again after 0.1 s.
// Output:  the thread; not joinable where none can be created.
// Threads: any.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>
#include <exception>
#include <thread>
#include <utility>

namespace perseus::clock_control {

template <class Function>
std::thread start_quiet_thread(Function function) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  std::thread thread;
  try {
    thread = std::thread([function = std::move(function)] {
      for (constexpr timespec pause{0, 100'000'000};; ::nanosleep(&pause, nullptr)) {
        try {
          return function();
        } catch (...) {}
      }
    });
  } catch (const std::exception&) {}
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace perseus::clock_control
