#include "command_line/interrupt.h"

#include <poll.h>

#include <cmath>
#include <ctime>
#include <iterator>

namespace perseus::cli {
namespace {

volatile std::sig_atomic_t signal_that_came = 0;

extern "C" void remember_signal(int signal) { signal_that_came = signal; }

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction remember = {};
  remember.sa_handler = remember_signal;
  sigemptyset(&remember.sa_mask);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &remember, &before_[i]);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool InterruptGuard::interrupted() { return signal_that_came != 0; }

void InterruptGuard::wait(Seconds time) {
  sigset_t ours, before;
  sigemptyset(&ours);
  for (const int signal : kSignals) sigaddset(&ours, signal);
  sigprocmask(SIG_BLOCK, &ours, &before);  // so that none comes between the question and the sleep
  if (!interrupted()) {
    constexpr double nanoseconds = 1e9;
    const double whole_s = std::floor(time.value());
    const timespec length{static_cast<std::time_t>(whole_s), static_cast<long>((time.value() - whole_s) * nanoseconds)};
    ppoll(nullptr, 0, &length, &before);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void die_if_interrupted() {
  if (signal_that_came != 0) std::raise(signal_that_came);
}

}  // namespace perseus::cli
