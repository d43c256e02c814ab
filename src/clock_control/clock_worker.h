// The helper's work: what the newest request in the mailbox asks for is told to the device.
//
// Problem: clocks are asked for faster than a device takes them, devices refuse for many reasons, and whoever locks a
// clock owes the unlocking. Input: a mailbox, a GPU, a lease on its clock. Output: the device's clock, and in the
// mailbox what was done and how long it took. Only the newest request counts. A clock that the device does not have
// becomes the lowest one above: never slower than asked. What the device answers:
//   bad_clock                   the list of clocks is read again, and another try made
//   busy                        again after 1, 2, 4, ... 64 ms while nothing newer comes, then it has failed
//   no_permission, not_supported  refused: the clock is given back, and the caller should end
//   lost, no_driver             lost: the caller should end
// Now and then (the first eight times, then every 64th) it looks how long the device takes to run at the new clock.
// Errors: in the mailbox. Cost: a device call per request, nothing while there is none. Threads: one. Time: given, so
// that tests turn it by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "clock_control/lease.h"
#include "clock_control/mailbox.h"
#include "clock_control/request_rhythm.h"
#include "device/gpu.h"

namespace perseus {

class ClockWorker {
 public:
  using Now = std::function<std::int64_t()>;  ///< monotonic, ns
  ClockWorker(Mailbox& mailbox, Gpu& gpu, Lease& lease, Now now = monotonic_ns);

  /// Unlocks what the lease's last holder left locked, and learns the supported clocks. Then the helper is working.
  DeviceStatus begin();
  /// Does what is due. Returns in how many ns something is due again unless a newer request comes; -1: nothing.
  std::int64_t work();
  /// What to do until then, or until the next request is expected.
  [[nodiscard]] Rest rest(std::int64_t due_ns) const;
  /// Of the newest request that work() has seen.
  [[nodiscard]] ClockRequest seen() const { return seen_; }
  /// Refused or lost: there is nothing more to do than to give back.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Unlocks if it has locked, and empties the lease.
  DeviceStatus give_back();

 private:
  void tell();
  DeviceStatus tell_device(Megahertz clock);
  DeviceStatus lock(Megahertz clock);
  DeviceStatus unlock();
  void applied(std::int64_t began, std::int64_t ended);
  void failed(const DeviceError& error);
  void end(HelperState state, const DeviceError& error);
  [[nodiscard]] Megahertz supported_above(Megahertz clock) const;
  void watch_clock();

  Mailbox& mailbox_;
  Gpu& gpu_;
  Lease& lease_;
  Now now_;
  std::vector<Megahertz> supported_;  ///< highest first; empty: the device does not say
  ClockRequest seen_;
  ClockRequest inherited_;         ///< asked for before this helper was there
  bool inherited_counts_ = false;  ///< ... and no helper before has counted it
  RequestRhythm rhythm_;
  bool pending_ = false;  ///< seen_ is to be told
  int attempts_ = 0;
  std::int64_t due_ns_ = 0;
  bool watching_ = false;  ///< until the device runs at told_
  std::int64_t watch_due_ns_ = 0;
  Megahertz told_;
  bool ended_ = false;
};

}  // namespace perseus
