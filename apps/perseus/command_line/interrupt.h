// Handles Ctrl-C while files are being written: finish the current file, tidy up, then end by the signal.
//
// While an InterruptGuard lives, SIGINT, SIGTERM and SIGHUP only set a flag; otherwise they end the process at once,
// which is right as long as nothing is half done. Call die_if_interrupted() when all is tidy again.
//
// Threads: one guard at a time.
#pragma once

#include <csignal>

#include "base/units.h"

namespace perseus::cli {

class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// Restores the former handlers.
  ~InterruptGuard();

  [[nodiscard]] static bool interrupted();
  /// Sleeps that long, or until a signal comes.
  static void wait(Seconds time);

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3];
};

/// Ends the process by the received signal, if there was one. Call it without a live guard.
void die_if_interrupted();

}  // namespace perseus::cli
