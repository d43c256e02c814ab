#include "interrupt.h"

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

void die_if_interrupted() {
  if (signal_that_came != 0) std::raise(signal_that_came);
}

}  // namespace perseus::cli
