// Ctrl-C while files are being written: finish the file at hand, tidy up, then die of the signal as one should.
//
// While an InterruptGuard lives, SIGINT, SIGTERM and SIGHUP only set a flag; otherwise they kill at once, which is
// right as long as nothing is half done. die_if_interrupted() is called when all is tidy again. Threads: one guard at a
// time.
#pragma once

#include <csignal>

namespace perseus::cli {

class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// Puts the former handlers back.
  ~InterruptGuard();

  [[nodiscard]] static bool interrupted();

 private:
  static constexpr int signals_[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3];
};

/// Ends the process by the signal that came, if one came. Call it without a guard alive.
void die_if_interrupted();

}  // namespace perseus::cli
