#include "clock_control/clock_controller.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "clock_control/helper_process.h"
#include "clock_control/mailbox.h"
#include "clock_control/start_helper.h"

namespace perseus {
namespace {

constexpr double kStopLimit_s = 1, kRestoreLimit_s = 10;

/// How many forks lie between the process that this code was loaded in and this one.
std::atomic<int>& fork_generation() {
  static std::atomic<int> generation{0};
  return generation;
}

void count_forks() {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, [] { fork_generation().fetch_add(1); }); });
}

OwnedFd own_pidfd() {
#ifdef SYS_pidfd_open
  return OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
#else
  return OwnedFd();
#endif
}

/// Waits for input or the other end's closing; false: neither came in time.
bool readable(int fd, double limit_s) {
  const std::int64_t until_ns = monotonic_ns() + static_cast<std::int64_t>(1e9 * limit_s);
  for (;;) {
    const std::int64_t left_ns = std::max<std::int64_t>(until_ns - monotonic_ns(), 0);
    pollfd waiting{fd, POLLIN, 0};
    const timespec limit{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    const int ready = ::ppoll(&waiting, 1, &limit, nullptr);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

DeviceError no_helper(std::string message) { return {DeviceFault::no_driver, std::move(message)}; }

/// The thread sees none of this process's signals.
template <class Function>
std::thread start_quiet_thread(Function function) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(function));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (const std::system_error&) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }
}

double cpu_s(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (pid <= 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace

struct ClockController::State {
  ~State() { unmap_mailbox(mailbox); }
  DeviceStatus shake_hands(pid_t child, double limit_s, double used_s);
  void watch();
  [[nodiscard]] bool here() const { return generation == fork_generation().load(std::memory_order_relaxed); }

  // What set() looks at, in one line of the cache: after a computation none of it is there any more.
  alignas(64) Mailbox* mailbox = nullptr;
  OwnedFd wake;
  int generation = 0;
  std::atomic<bool> gone{false};

  OwnedFd channel, stop;
  pid_t supervisor = 0, worker = 0;
  std::string program, lease;
  std::thread watcher;
};

DeviceStatus ClockController::State::shake_hands(pid_t child, double limit_s, double used_s) {
  const bool answered = readable(channel.get(), std::max(limit_s - used_s, 0.0));
  HelperHello hello;
  const ssize_t got = answered ? ::recv(channel.get(), &hello, sizeof hello, MSG_DONTWAIT) : -1;
  reap(child, answered ? 1 : 0);  // a perseus-clockd has left orphans at work, and ended
  if (!answered) return no_helper(fmt::format("{} did not get ready in {} s", program, limit_s));
  if (got != sizeof hello || hello.magic != HelperHello::kMagic) {
    return no_helper(fmt::format("{} is not a perseus-clockd that this Perseus ({}) can use: it ended without a word",
                                 program, PERSEUS_VERSION));
  }
  hello.version.back() = hello.text.back() = 0;
  if (std::string_view(hello.version.data()) != PERSEUS_VERSION) {
    return no_helper(fmt::format("{} is version {}, this is {}", program, hello.version.data(), PERSEUS_VERSION));
  }
  if (hello.fault >= 0) return DeviceError{static_cast<DeviceFault>(hello.fault), hello.text.data()};
  supervisor = hello.supervisor_pid;
  worker = hello.worker_pid;
  lease = hello.text.data();
  return Ok{};
}

/// Until the helper's last process has closed the channel, or a second after we want it to. If both processes died
/// before one could unlock, a third does.
void ClockController::State::watch() {
  std::array<pollfd, 2> fds{{{channel.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {}
  const bool ended = fds[0].revents != 0 || readable(channel.get(), kStopLimit_s);
  gone.store(true, std::memory_order_release);
  if (!ended || mailbox->locked.load(std::memory_order_acquire) == 0) return;
  const auto restorer = spawn_helper(program, {"--restore", lease}, {});
  if (restorer) reap(*restorer, kRestoreLimit_s);
}

DeviceResult<std::unique_ptr<ClockController>> ClockController::start(ClockControllerOptions options) {
  count_forks();
  const std::int64_t began_ns = monotonic_ns();
  auto program = find_helper(options.helper);
  if (!program) return program.error();
  auto state = std::make_unique<State>();
  state->program = std::move(*program);
  state->generation = fork_generation().load();

  const OwnedFd mailbox_fd(create_mailbox_fd());
  if (mailbox_fd.valid()) state->mailbox = map_mailbox(mailbox_fd.get());
  std::array<int, 2> channel{-1, -1};
  if (state->mailbox == nullptr || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel.data()) != 0) {
    return no_helper(fmt::format("no shared memory or sockets for the helper: {}", std::strerror(errno)));
  }
  state->channel = OwnedFd(channel[0]);
  OwnedFd helpers_channel(channel[1]);
  state->wake = OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  state->stop = OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state->wake.valid() || !state->stop.valid()) {
    return no_helper(fmt::format("no eventfd for the helper: {}", std::strerror(errno)));
  }
  state->mailbox->start_limit_ns = static_cast<std::int64_t>(1e9 * options.start_limit_s);

  const OwnedFd owner = own_pidfd();
  const auto child = spawn_helper(state->program, {"--device", options.device},
                                  {mailbox_fd.get(), helpers_channel.get(), state->wake.get(), owner.get()});
  if (!child) return child.error();
  helpers_channel.reset();
  const double used_s = 1e-9 * static_cast<double>(monotonic_ns() - began_ns);
  if (const DeviceStatus met = state->shake_hands(*child, options.start_limit_s, used_s); !met) return met.error();
  state->watcher = start_quiet_thread([&watched = *state] { watched.watch(); });
  if (!state->watcher.joinable()) return no_helper("no thread to watch the helper with");
  return std::unique_ptr<ClockController>(new ClockController(std::move(state)));
}

ClockController::ClockController(std::unique_ptr<State> state) : state_(std::move(state)) {}

ClockController::~ClockController() {
  if (!state_->here()) {
    // A forked child: the helper and the thread are the parent's. Files stay open, which closing would not hurt either.
    (void)state_.release();
    return;
  }
  ::shutdown(state_->channel.get(), SHUT_WR);
  const std::uint64_t one = 1;
  (void)!::write(state_->stop.get(), &one, sizeof one);
  state_->watcher.join();
}

void ClockController::set(Megahertz clock) noexcept {
  State& state = *state_;
  state.mailbox->expect_post();
  if (!state.here() || state.gone.load(std::memory_order_relaxed) ||
      state.mailbox->state.load(std::memory_order_relaxed) != HelperState::working) {
    return;
  }
  state.mailbox->post(clock, state.wake.get());
}

void ClockController::begin_step() noexcept {
  if (state_->here()) state_->mailbox->begin_step();
}

ControlState ClockController::state() const noexcept {
  if (!state_->here()) return ControlState::gone;
  const HelperState helper = state_->mailbox->state.load(std::memory_order_acquire);
  if (state_->gone.load(std::memory_order_acquire) || helper == HelperState::lost) return ControlState::gone;
  return helper == HelperState::refused ? ControlState::refused : ControlState::working;
}

std::string ClockController::why() const {
  switch (state()) {
    case ControlState::working:
      return {};
    case ControlState::refused:
      return state_->mailbox->why_refused.read();
    case ControlState::gone:
      break;
  }
  if (!state_->here()) return "this process was forked from the one that controls the clock";
  std::string lost = state_->mailbox->why_lost.read();
  return lost.empty() ? fmt::format("perseus-clockd has ended (it was process {})", state_->worker) : lost;
}

ControlStatistics ClockController::statistics() const {
  const Mailbox& box = *state_->mailbox;
  ControlStatistics statistics;
  const bool pending = box.target.load() != box.handled.load();
  statistics.applied = box.applied.load();
  statistics.failed = box.failed.load();
  statistics.requested = box.requested.load();
  statistics.woken = box.woken.load();
  statistics.superseded =
      std::max<std::int64_t>(statistics.requested - statistics.applied - statistics.failed - (pending ? 1 : 0), 0);
  statistics.last_set = Megahertz(static_cast<int>(box.clock_set_mhz.load()));
  statistics.request_to_device_p50_s = box.request_to_device.quantile_s(0.5);
  statistics.request_to_device_p99_s = box.request_to_device.quantile_s(0.99);
  statistics.device_call_p50_s = box.device_call.quantile_s(0.5);
  statistics.device_call_p99_s = box.device_call.quantile_s(0.99);
  statistics.request_to_clock_p50_s = box.request_to_clock.quantile_s(0.5);
  statistics.request_to_clock_p99_s = box.request_to_clock.quantile_s(0.99);
  statistics.clock_changes_watched = box.request_to_clock.count();
  statistics.helper_cpu_s = cpu_s(state_->supervisor) + cpu_s(state_->worker);
  return statistics;
}

int ClockController::helper_pid() const noexcept { return state_->worker; }
int ClockController::supervisor_pid() const noexcept { return state_->supervisor; }

}  // namespace perseus
