// perseus-clockd as processes: a worker sets the clock and a supervisor only watches, so that no single death, and no
// two of training process, supervisor and worker, leave a clock locked.
//
// Which process unlocks after which death:
// clang-format off
//   training process (also by exec, exit, SIGKILL)  the worker: it waits for a pidfd of that process
//   worker, or worker and training process          the supervisor, by the lease
//   supervisor, or supervisor and training process  the worker: it waits for the other end of their link
//   worker and supervisor                           the training process starts `perseus-clockd --restore LEASE`
//   all three at once                               the next perseus-clockd, doctor or `perseus-clockd --restore`
// clang-format on
// A process whose reset fails repeats it; then the next of these: supervisor, `--restore`, the training process itself.
// A helper of the node's daemon consists of the same two processes; the daemon itself restores in place of
// `--restore`. SIGTERM to either process ends both. The supervisor ends a worker that does not respond within 200 ms
// (watchdog.h) and gives the clock back; it gives the clock back also while the training process is suspended. A
// worker that hangs in the driver while it gives back has two seconds.
//
// Under a power budget (clock_limit.h) the clock of a training process that lives must not become the driver's choice:
// in its place it is limited to the ceiling, and a process of this program holds the lease until the training process
// or the budget ends, and then unlocks, or until the next helper starts.
//
// Problem: the worker can be killed in the middle of a device call.
// Input:   the file descriptors that the training process passes on (HelperFds), a device selector.
// Output:  a HelperHello on the channel, then the mailbox.
// Errors:  HelperHello.
// Threads: none; call it in a process without other threads.
// Source:  docs/decisions/0016-clock-lease.md, docs/decisions/0027-node-daemon-and-leases-by-uuid.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

/// File descriptors from the training process, under these numbers.
struct HelperFds {
  static constexpr int kMailbox = 3;  ///< memfd
  static constexpr int kChannel = 4;  ///< SOCK_SEQPACKET: one HelperHello; closed by either side to end it
  static constexpr int kWake = 5;     ///< eventfd: something was posted while the worker slept
  static constexpr int kOwner = 6;    ///< pidfd of the training process; may be missing (Linux before 5.3)
  static constexpr int kNode = 7;     ///< the GPU's device node as the training process opened it; daemon only
};

/// The first and only message of the helper: ready, or the fault.
struct HelperHello {
  static constexpr std::uint32_t kMagic = 0x50434c48;
  std::uint32_t magic = kMagic;
  std::int32_t fault = -1;  ///< a DeviceFault; -1: ready
  std::int32_t supervisor_pid = 0, worker_pid = 0;
  std::array<char, 32> version{};
  std::array<char, 1024> text{};  ///< of the fault; ready: path of the lease
};

/// With this program's version; cuts a text that is too long.
void send_hello(int channel, HelperHello hello, std::string_view text);
void send_refusal(int channel, const device::DeviceError& why);

/// True if this process has a mailbox and a channel.
bool helper_fds_given();

struct HelperJob {
  std::string selector;
  Megahertz ceiling;             ///< of an administrator, see training/device/ceiling_gpu.h; 0: none
  bool needs_node = false;       ///< refuse a client that could not open the GPU's device node
  Megahertz asked_ceiling = {};  ///< limit that the daemon's client requested: holds while the client lives; 0: none
};

/// Leaves a supervisor and a worker behind; the calling process ends here, without giving control back to the caller.
[[noreturn]] void run_helper(const HelperJob& job);

/// The same, but the calling process becomes the supervisor. Its exit status is 0 if the clock was given back.
[[noreturn]] void run_daemons_helper(const HelperJob& job);

}  // namespace perseus::clock_control
