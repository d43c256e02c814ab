#include "training/clock_control/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "training/clock_control/clock_worker.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/mailbox.h"
#include "training/clock_control/process_state.h"
#include "training/clock_control/urgency.h"
#include "training/clock_control/watchdog.h"
#include "training/clock_control/worker_pulse.h"
#include "training/device/ceiling_gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::clock_control {
namespace {

constexpr int kHungWorkerMs = 2000;
constexpr double kLeaseWait_s = 5;
constexpr std::int64_t kGuardTick = 10'000'000;  // ns

/// Descriptors that end supervisor or worker.
struct Ends {
  int signals = -1;  ///< signalfd of SIGTERM
  int link = -1;     ///< to the other process of the two
};

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

/// Only the helper's files stay open: a training process has sockets and devices that must close when it dies.
void close_other_files() {
  const int first = HelperFds::kNode + 1;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  const auto limit = static_cast<int>(std::min<long>(::sysconf(_SC_OPEN_MAX), 1 << 16));
  for (int fd = first; fd < limit; ++fd) ::close(fd);
}

void take_null_as_standard_streams() {
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0) return;
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  // Standard error stays open: only a crash writes to it.
  if (null > STDERR_FILENO) ::close(null);
}

/// Ignores the terminal's signals; SIGTERM becomes readable.
int arrange_signals() {
  for (const int ignored : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2}) {
    ::signal(ignored, SIG_IGN);
  }
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t terminate;
  ::sigemptyset(&terminate);
  ::sigaddset(&terminate, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &terminate, nullptr);
  return ::signalfd(-1, &terminate, SFD_CLOEXEC);
}

/// Avoids the core of the requesting thread: there, waking this process would stop that thread until the device has
/// been set.
class StepAside {
 public:
  StepAside() {
    if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) CPU_ZERO(&allowed_);
  }
  void from(int cpu) const {
    if (cpu < 0 || cpu >= CPU_SETSIZE || cpu != ::sched_getcpu()) return;
    cpu_set_t others = allowed_;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) > 0) (void)::sched_setaffinity(0, sizeof others, &others);
  }

 private:
  cpu_set_t allowed_{};
};

/// Waits for any of `fds`; returns whether one became ready. Negative: without limit.
bool wait_for(pollfd* fds, nfds_t count, std::int64_t limit_ns) {
  const timespec limit{limit_ns / 1'000'000'000, limit_ns % 1'000'000'000};
  for (nfds_t i = 0; i < count; ++i) fds[i].revents = 0;
  return ::ppoll(fds, count, limit_ns < 0 ? nullptr : &limit, nullptr) > 0;
}

[[noreturn]] void refuse(const device::DeviceError& error) {
  send_refusal(HelperFds::kChannel, error);
  ::_exit(1);
}

/// The training process, its mailbox, or the other of the two processes is gone, or a request to end has come.
std::array<pollfd, 4> ends_of(const Ends& ends) {
  const int owner = is_open(HelperFds::kOwner) ? HelperFds::kOwner : -1;  // poll() skips negative descriptors
  return {{{ends.link, POLLIN, 0}, {HelperFds::kChannel, POLLIN, 0}, {owner, POLLIN, 0}, {ends.signals, POLLIN, 0}}};
}

/// Checks that the client's device node is that of this GPU, opened for writing. Passes if it cannot be checked:
/// backends without a node, and nodes that do not exist for this process.
device::DeviceStatus check_node(const device::GpuIdentity& gpu) {
  struct stat wanted {
  }, given{};
  if (gpu.node.empty() || ::stat(gpu.node.c_str(), &wanted) != 0) return Ok{};
  const bool open =
      ::fstat(HelperFds::kNode, &given) == 0 && (::fcntl(HelperFds::kNode, F_GETFL) & (O_ACCMODE | O_PATH)) == O_RDWR;
  const bool device = S_ISCHR(wanted.st_mode) && S_ISCHR(given.st_mode) && wanted.st_rdev == given.st_rdev;
  const bool file = wanted.st_dev == given.st_dev && wanted.st_ino == given.st_ino;
  if (open && (device || file)) return Ok{};
  return device::DeviceError{device::DeviceFault::no_permission, "the clock daemon refuses " + device::stable_id(gpu) +
                                                                     ": the client cannot open " + gpu.node};
}

device::DeviceResult<std::unique_ptr<device::Gpu>> open_for(const HelperJob& job, WorkerPulse& pulse) {
  auto gpu = device::open_gpu(job.selector);
  if (!gpu) return gpu.error();
  if (job.needs_node) {
    if (device::DeviceStatus allowed = check_node((*gpu)->identity()); !allowed) return allowed.error();
  }
  auto limited = device::with_ceiling(device::with_ceiling(std::move(*gpu), job.ceiling), job.asked_ceiling, false);
  return std::unique_ptr<device::Gpu>(std::make_unique<PulsedGpu>(std::move(limited), pulse));
}

/// A power budget holds, and the training process lives and still wants its helper.
bool must_keep_ceiling(const Mailbox& mailbox) {
  if (mailbox.limit.ceiling().value() == 0) return false;
  const int owner = is_open(HelperFds::kOwner) ? HelperFds::kOwner : -1;
  std::array<pollfd, 2> ends{{{HelperFds::kChannel, POLLIN, 0}, {owner, POLLIN, 0}}};
  return !wait_for(ends.data(), ends.size(), 0);
}

/// Holds the lease until the training process or the budget ends, then unlocks; or until the next helper starts, which
/// begins with the clock as it is. Without a pidfd the record alone remains, as after the death of all processes.
[[noreturn]] void guard_ceiling(device::Gpu& gpu, Lease& lease, Mailbox& mailbox) {
  ::prctl(PR_SET_NAME, "clockd-guard");
  mailbox.locked.store(0, std::memory_order_release);  // by no helper
  ::close(HelperFds::kChannel);  // the training process waits for that before it starts another helper
  pollfd owner{HelperFds::kOwner, POLLIN, 0};
  while (is_open(HelperFds::kOwner)) {
    const bool over = wait_for(&owner, 1, kGuardTick) || mailbox.limit.ceiling().value() == 0;
    if (over) { ::_exit(give_back_patiently(gpu, lease) ? 0 : 1); }
    if (mailbox.awaits_lease.load(std::memory_order_acquire) != 0) break;
  }
  ::_exit(0);
}

[[noreturn]] void work(const HelperJob& job, Mailbox& mailbox, const Ends& ends, pid_t supervisor, WorkerPulse& pulse) {
  ::prctl(PR_SET_NAME, "clockd-worker");
  const std::int64_t start_limit_ns = mailbox.start_limit_ns.load();
  const std::int64_t began_ns = monotonic_ns();
  auto gpu = open_for(job, pulse);
  if (!gpu) refuse(gpu.error());
  const double left_s = 1e-9 * static_cast<double>(start_limit_ns - (monotonic_ns() - began_ns));
  mailbox.awaits_lease.store(1, std::memory_order_release);
  auto lease = Lease::take((*gpu)->identity(), job.selector, std::max(0.8 * left_s, 0.0), job.ceiling);
  mailbox.awaits_lease.store(0, std::memory_order_release);
  if (!lease) refuse(lease.error());
  mailbox.lease.write(lease->path());
  // The supervisor learns it from this message, not from shared memory that other processes can write.
  (void)::send(ends.link, lease->path().data(), lease->path().size(), MSG_NOSIGNAL);

  const auto look = [&pulse] {
    const std::int64_t now_ns = monotonic_ns();
    pulse.looked_ns.store(now_ns, std::memory_order_relaxed);
    return now_ns;
  };
  ClockWorker worker(mailbox, **gpu, *lease, look);
  if (const device::DeviceStatus begun = worker.begin(); !begun) refuse(begun.error());
  const bool precedes = become_urgent() == Urgency::real_time;
  const StepAside step_aside;
  HelperHello hello;
  hello.supervisor_pid = supervisor;
  hello.worker_pid = ::getpid();
  send_hello(HelperFds::kChannel, hello, lease->path());

  const std::array<pollfd, 4> stops = ends_of(ends);
  std::array<pollfd, 5> fds{{{HelperFds::kWake, POLLIN, 0}, stops[0], stops[1], stops[2], stops[3]}};
  for (;;) {
    const std::int64_t due_ns = worker.work();
    if (worker.ended()) break;
    if (precedes) step_aside.from(mailbox.posted_on_cpu.load(std::memory_order_relaxed));
    const Rest rest = worker.rest(due_ns);
    if (rest.how != HelperRest::awake && !mailbox.may_rest(rest.how, worker.posted_before(), worker.limit_before()))
      continue;
    const bool something = wait_for(fds.data(), fds.size(), rest.limit_ns);
    if (rest.how != HelperRest::awake) mailbox.rest.store(HelperRest::awake, std::memory_order_relaxed);
    if (!something) continue;
    std::uint64_t count = 0;
    if (fds[0].revents != 0) (void)!::read(HelperFds::kWake, &count, sizeof count);
    if (std::any_of(fds.begin() + 1, fds.end(), [](const pollfd& fd) { return fd.revents != 0; })) break;
  }
  if (worker.ended() || !must_keep_ceiling(mailbox)) ::_exit(worker.give_back() ? 0 : 1);
  const bool kept = worker.keep_ceiling().ok();
  // A supervisor that lives guards the ceiling itself. It keeps its end of the link open, also when it wants this
  // process to end.
  pollfd link{ends.link, 0, 0};
  if (kept && wait_for(&link, 1, 0) && (link.revents & POLLHUP) != 0) guard_ceiling(**gpu, *lease, mailbox);
  ::_exit(kept ? 0 : 1);
}

/// The worker is dead: the supervisor must unlock in its place.
bool restore(const HelperJob& job, const std::string& lease, const Mailbox& mailbox) {
  if (lease.empty()) return true;  // it had not come so far
  if (::access(lease.c_str(), F_OK) == 0) return restore_lease(lease, kLeaseWait_s).ok();
  // The folder was cleaned up; then use the mailbox.
  if (mailbox.locked.load(std::memory_order_acquire) == 0) return true;
  auto gpu = device::open_gpu(job.selector);
  return gpu && unlock_patiently(*device::with_ceiling(std::move(*gpu), job.ceiling)).ok();
}

/// The worker is dead, but not the training process, for which a power budget holds: limits the clock to its ceiling.
/// A process of its own guards it, so that the daemon sees this one end.
bool leave_guard(const HelperJob& job, Mailbox& mailbox, const Ends& ends) {
  auto opened = device::open_gpu(job.selector);
  if (!opened) return false;
  const auto gpu = device::with_ceiling(std::move(*opened), job.ceiling);
  auto lease = Lease::take(gpu->identity(), job.selector, kLeaseWait_s, job.ceiling);
  if (!lease || !lease->record() || !limit_patiently(*gpu, mailbox.limit.least_ceiling())) return false;
  if (::fork() == 0) {
    ::close(ends.link);
    guard_ceiling(*gpu, *lease, mailbox);
  }
  return true;
}

Watchdog::Seen seen_of(const Mailbox& mailbox, const WorkerPulse& pulse) {
  // Before and after that the worker's calls have limits of their own.
  const bool at_work = mailbox.state.load(std::memory_order_acquire) == HelperState::working;
  return {monotonic_ns(), at_work && (mailbox.owes_answer() || mailbox.locked.load(std::memory_order_acquire) != 0),
          pulse.looked_ns.load(std::memory_order_relaxed), pulse.call_began_ns.load(std::memory_order_relaxed),
          pulse.calls.load(std::memory_order_relaxed)};
}

/// Restores locks that earlier helpers could not give back, on other GPUs. In a separate process: each GPU that is
/// still lost takes a while, and this one must watch its worker. Returns that process.
pid_t restore_others(const Ends& ends, const std::string& lease) {
  if (const pid_t restorer = ::fork(); restorer != 0) return restorer;
  ::prctl(PR_SET_NAME, "clockd-restore");
  ::close(ends.link);
  ::close(HelperFds::kChannel);  // its other end waits for the helper's processes alone
  (void)restore_expired_leases(device::open_gpu, lease);
  ::_exit(0);
}

/// Runs until one of the processes ends, the worker hangs, or the training process is suspended. Before that the
/// worker sends one message: the path of its lease.
Watchdog::Advice watch(pid_t worker, Mailbox& mailbox, WorkerPulse& pulse, const Ends& ends, std::string& lease) {
  const pid_t owner = process_of(HelperFds::kOwner);
  Watchdog watchdog([worker] { return process_state(worker); }, [owner] { return process_state(owner); });
  const std::array<pollfd, 4> stops = ends_of(ends);
  std::array<pollfd, 7> fds{{stops[0],
                             stops[1],
                             stops[2],
                             stops[3],
                             {HelperFds::kWake, POLLIN, 0},
                             {pulse.bell, POLLIN, 0},
                             {-1, POLLIN, 0}}};
  pid_t restorer = 0;  // fds[6]: its pidfd
  // It must see the worker's end, and give the clock back, also where other programs keep every CPU.
  const bool precedes = become_urgent() == Urgency::real_time;
  const StepAside step_aside;
  Watchdog::Advice advice = Watchdog::Advice::sleep;
  for (bool paused = true;;) {
    if (precedes) step_aside.from(mailbox.posted_on_cpu.load(std::memory_order_relaxed));
    // A request wakes the supervisor only if it sleeps; the worker may see the request first, and signals the bell
    // when it locks the clock.
    const bool sleeps = advice == Watchdog::Advice::sleep && paused;
    pulse.supervisor_sleeps.exchange(sleeps ? 1 : 0);
    if (sleeps && seen_of(mailbox, pulse).busy) {
      advice = Watchdog::Advice::look_again;
      continue;
    }
    fds[4].fd = sleeps ? HelperFds::kWake : -1;
    const bool something = wait_for(fds.data(), fds.size(), sleeps ? -1 : Watchdog::kTick);
    paused = !something;
    if (std::any_of(fds.begin() + 1, fds.begin() + 4, [](const pollfd& fd) { return fd.revents != 0; })) break;
    std::uint64_t count = 0;
    if (fds[5].revents != 0) (void)!::read(pulse.bell, &count, sizeof count);
    if (fds[0].revents != 0) {
      std::array<char, 4096> path{};
      const ssize_t got = ::recv(ends.link, path.data(), path.size(), 0);
      if (got <= 0) break;
      lease.assign(path.data(), static_cast<std::size_t>(got));
      restorer = restore_others(ends, lease);
      fds[6].fd = static_cast<int>(::syscall(SYS_pidfd_open, restorer, 0));
    }
    if (fds[6].revents != 0) {
      ::waitpid(restorer, nullptr, 0);
      ::close(std::exchange(fds[6].fd, -1));
    }
    advice = watchdog.look(seen_of(mailbox, pulse));
    if (advice == Watchdog::Advice::worker_hangs || advice == Watchdog::Advice::owner_suspended) return advice;
    if (advice == Watchdog::Advice::wake_worker) {
      const std::uint64_t one = 1;
      (void)!::write(HelperFds::kWake, &one, sizeof one);
    }
  }
  return Watchdog::Advice::sleep;
}

[[noreturn]] void supervise(const HelperJob& job, pid_t worker, Mailbox& mailbox, WorkerPulse& pulse,
                            const Ends& ends) {
  ::prctl(PR_SET_NAME, "clockd-super");
  std::string lease;
  const Watchdog::Advice why = watch(worker, mailbox, pulse, ends, lease);
  if (why == Watchdog::Advice::worker_hangs) {
    // In the driver it may take long to die: the training process must not count on its clocks until then.
    ::kill(worker, SIGKILL);
    mailbox.why_ended.write("perseus-clockd did not answer for 200 ms: its supervisor has ended it");
    mailbox.state.store(HelperState::lost, std::memory_order_release);
  }
  // The worker sees its end of the link close, and gives the clock back.
  ::shutdown(ends.link, SHUT_WR);
  pollfd link{ends.link, POLLIN, 0};
  std::array<char, 4096> path{};
  const std::int64_t until_ns = monotonic_ns() + std::int64_t{1'000'000} * kHungWorkerMs;
  for (;;) {
    if (!wait_for(&link, 1, std::max<std::int64_t>(until_ns - monotonic_ns(), 0))) {
      ::kill(worker, SIGKILL);
      break;
    }
    const ssize_t got = ::recv(ends.link, path.data(), path.size(), 0);
    if (got <= 0) break;
    lease.assign(path.data(), static_cast<std::size_t>(got));
  }
  ::waitpid(worker, nullptr, 0);
  const bool keeps = !lease.empty() && must_keep_ceiling(mailbox);
  const bool restored = keeps ? leave_guard(job, mailbox, ends) : restore(job, lease, mailbox);
  if (restored) mailbox.locked.store(0, std::memory_order_release);
  if (why == Watchdog::Advice::owner_suspended) {
    mailbox.why_ended.write("the training process was suspended: its clock was given back until it continues");
  }
  ::_exit(restored ? 0 : 1);
}

/// Shared by supervisor and worker alone.
WorkerPulse* new_pulse() {
  void* memory = ::mmap(nullptr, sizeof(WorkerPulse), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) WorkerPulse;
}

}  // namespace

void send_hello(int channel, HelperHello hello, std::string_view text) {
  const std::string_view version = PERSEUS_VERSION;
  std::copy_n(version.data(), std::min(version.size(), hello.version.size() - 1), hello.version.data());
  std::copy_n(text.data(), std::min(text.size(), hello.text.size() - 1), hello.text.data());
  (void)::send(channel, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void send_refusal(int channel, const device::DeviceError& why) {
  HelperHello hello;
  hello.fault = static_cast<std::int32_t>(why.fault);
  send_hello(channel, hello, why.message);
}

bool helper_fds_given() {
  return is_open(HelperFds::kMailbox) && is_open(HelperFds::kChannel) && is_open(HelperFds::kWake);
}

void run_helper(const HelperJob& job) {
  // No child of the training process, so that a training process that waits for its children does not wait for the
  // helper.
  if (const pid_t itself = ::fork(); itself != 0) {
    if (itself < 0) refuse({device::DeviceFault::busy, "perseus-clockd cannot fork"});
    ::_exit(0);
  }
  run_daemons_helper(job);
}

void run_daemons_helper(const HelperJob& job) {
  Mailbox* mailbox = map_mailbox(HelperFds::kMailbox);
  if (mailbox == nullptr) {
    refuse({device::DeviceFault::no_driver,
            "this perseus-clockd (" PERSEUS_VERSION ") has another version: unknown mailbox"});
  }
  close_other_files();
  take_null_as_standard_streams();
  const pid_t supervisor = ::getpid();
  std::array<int, 2> link{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link.data()) != 0) {
    refuse({device::DeviceFault::busy, "perseus-clockd has no socket pair"});
  }
  WorkerPulse* pulse = new_pulse();
  if (pulse == nullptr) refuse({device::DeviceFault::busy, "perseus-clockd has no memory"});
  pulse->bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int signals = arrange_signals();
  const pid_t worker = ::fork();
  if (worker < 0) refuse({device::DeviceFault::busy, "perseus-clockd cannot fork"});
  if (worker == 0) {
    ::close(link[0]);
    work(job, *mailbox, {signals, link[1]}, supervisor, *pulse);
  }
  ::close(link[1]);
  supervise(job, worker, *mailbox, *pulse, {signals, link[0]});
}

}  // namespace perseus::clock_control
