// The helper's work: sets the newest due clock change of the mailbox on the device.
//
// Input:   a mailbox, a GPU, a lease on its clock; the time, so that tests can control it.
// Output:  the device's clock; in the mailbox: the applied clock, its time, and its latency. Only the newest due
//          change counts. A clock that the device does not have becomes the lowest one above: never slower than
//          planned. For the first eight changes, then every 64th, it also measures how long the device takes to run
//          at the new clock.
//          A power budget (clock_limit.h) bounds every clock, also the one that is set when its limits change: the
//          highest clock that the device has at or below the bound.
//          A clock that the device does not run at is set again (clock_watch.h); a device that does not follow, or
//          whose clock another process changes again and again, is refused, except under a power budget.
// Errors:  in the mailbox, by the device's fault:
//          bad_clock                     reads the list of clocks again and tries once more
//          busy                          retries after 1, 2, 4, ... 64 ms; after 8 calls the change has failed, but it
//                                        continues to try; lost after 5 s in which every call failed
//          no_permission, not_supported  refused: gives the clock back; the caller should end
//          lost, no_driver               lost: the caller should end
// Cost:    one device call per change; four readings a second while a clock is set; while changes wait for the device,
//          a check every 0.08 to 0.5 ms; else nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "training/clock_control/clock_watch.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/mailbox.h"
#include "training/clock_control/request_rhythm.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

class ClockWorker {
 public:
  using Now = std::function<std::int64_t()>;  ///< monotonic, ns
  ClockWorker(Mailbox& mailbox, device::Gpu& gpu, Lease& lease, Now now = monotonic_ns);

  /// Unlocks a clock that the lease's last holder left locked, and reads the supported clocks. Then the helper is
  /// working.
  device::DeviceStatus begin();
  /// Processes all due work. Returns in how many ns work is due again unless a newer request comes; -1: none.
  std::int64_t work();
  /// How to wait until then, or until the next change is expected to be due.
  [[nodiscard]] Rest rest(std::int64_t due_ns) const;
  /// Number of posted changes when work() last read the queue.
  [[nodiscard]] std::uint64_t posted_before() const { return posted_before_; }
  /// ClockLimit::changes() then.
  [[nodiscard]] std::uint32_t limit_before() const { return limit_before_; }
  /// Refused or lost: only giving back remains.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Unlocks if it has locked, and empties the lease.
  device::DeviceStatus give_back();
  /// In place of give_back() while a power budget holds and the training process lives: limits the device to the
  /// ceiling. The lease's record stays.
  device::DeviceStatus keep_ceiling();

 private:
  void look_at_limit(std::int64_t now_ns);
  void see(const ClockQueue::Taken& taken);
  void apply();
  device::DeviceStatus set_device();
  device::DeviceStatus lock(Megahertz clock);
  device::DeviceStatus unlock();
  void applied(std::int64_t began, std::int64_t ended);
  /// Every call has failed for so long that the driver must be taken for lost.
  [[nodiscard]] bool driver_is_silent(std::int64_t began, std::int64_t ended);
  void failed(const device::DeviceError& error);
  void end(HelperState state, const device::DeviceError& error);
  [[nodiscard]] Megahertz supported_above(Megahertz clock) const;
  /// The requested clock, without a limit; 0: the driver's choice.
  [[nodiscard]] Megahertz requested() const;
  /// The clock to set now.
  [[nodiscard]] Megahertz target() const;
  void look_at_clock(bool changes);
  void no_reading(const device::DeviceError& error);
  [[nodiscard]] bool arrived_at(Megahertz clock) const;
  void watch_arrival(std::int64_t began, std::int64_t ended, bool wanted);
  void watch_clock();

  Mailbox& mailbox_;
  device::Gpu& gpu_;
  Lease& lease_;
  Now now_;
  std::vector<Megahertz> supported_;  ///< highest first; empty: the device does not report them
  ClockQueue::Taken seen_;            ///< index 0: none yet
  std::int64_t due_since_ns_ = 0;     ///< seen_: posted for now, or first observed to be due
  std::uint64_t posted_before_ = 0;
  std::int64_t looked_ns_ = 0;     ///< when it last read the mailbox
  std::uint64_t inherited_ = 0;    ///< index of a change that was due before this helper started; 0: none
  bool inherited_counts_ = false;  ///< ... and no previous helper has counted it
  RequestRhythm rhythm_;
  bool pending_ = false;   ///< seen_ is to be applied
  bool limiting_ = false;  ///< the clock is to be set again: the limits have changed, or the device runs at another one
  ClockBounds bounds_;
  std::uint32_t limit_before_ = 0;
  int attempts_ = 0;
  std::int64_t due_ns_ = 0;
  int unanswered_ = 0;                    ///< calls since the device was last not busy, ...
  std::int64_t unanswered_since_ns_ = 0;  ///< ... the first of them
  bool watching_ = false;                 ///< until the device runs at clock_set_
  bool arrived_ = true;                   ///< the device runs at clock_set_, as far as is known
  bool settled_ = true;                   ///< no earlier change was in progress when clock_set_ was requested
  bool elsewhere_ = false;                ///< the device ran at another clock then, or was observed at one since
  std::int64_t watch_due_ns_ = 0, called_ns_ = 0, watched_ns_ = 0;
  Megahertz elsewhere_from_;    ///< the clock before clock_set_ was requested
  Megahertz clock_set_before_;  ///< 0: nothing, the clock was the driver's choice
  Megahertz clock_set_;
  ClockWatch watch_;
  std::int64_t unread_since_ns_ = 0;  ///< the clock cannot be read; 0: it can
  bool ended_ = false;
};

}  // namespace perseus::clock_control
