#include "training/clock_control/clock_controller.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <future>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "training/clock_control/daemon_protocol.h"
#include "training/clock_control/helper_process.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/mailbox.h"
#include "training/clock_control/quiet_thread.h"
#include "training/clock_control/start_helper.h"
#include "training/device/ceiling_gpu.h"

namespace perseus::clock_control {
namespace {

constexpr double kStopLimit_s = 1, kRestoreLimit_s = 10;
constexpr double kLockedLimit_s = 3;  // after kStopLimit_s, for a helper that still holds a locked clock
constexpr double kHereLimit_s = 2;    // for calls of the driver in this process
constexpr double kSlowStart_s = 60;   // after start(), which nobody waits for: a busy host starts processes late

OwnedFd own_pidfd() {
#ifdef SYS_pidfd_open
  return OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
#else
  return OwnedFd();
#endif
}

/// Waits for input or for the other end to close. False: neither came in time (negative: without limit), or `stop`
/// (-1: none) became readable.
bool readable(int fd, double limit_s, int stop) {
  const std::int64_t until_ns = monotonic_ns() + static_cast<std::int64_t>(1e9 * limit_s);
  for (;;) {
    const std::int64_t left_ns = std::max<std::int64_t>(until_ns - monotonic_ns(), 0);
    std::array<pollfd, 2> waiting{{{fd, POLLIN, 0}, {stop, POLLIN, 0}}};  // poll() skips negative descriptors
    const timespec limit{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    const int ready = ::ppoll(waiting.data(), waiting.size(), limit_s < 0 ? nullptr : &limit, nullptr);
    if (ready > 0) return waiting[0].revents != 0;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// Waits until all processes have closed the other end.
bool closes(int channel, double limit_s, int stop) {
  while (readable(channel, limit_s, stop)) {
    HelperHello late;
    if (::recv(channel, &late, sizeof late, MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

device::DeviceError no_helper(std::string message) { return {device::DeviceFault::no_driver, std::move(message)}; }

double cpu_s(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (pid <= 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// The result of a call that may hang in a driver; false where it takes longer.
template <class Call>
bool within(double limit_s, const Call& call) {
  auto result = std::make_shared<std::promise<bool>>();
  std::future<bool> done = result->get_future();
  std::thread thread = start_quiet_thread([result, call] { result->set_value(call()); });
  if (!thread.joinable()) return false;
  thread.detach();
  return done.wait_for(std::chrono::duration<double>(limit_s)) == std::future_status::ready && done.get();
}

}  // namespace

struct ClockController::State {
  explicit State(ClockControllerOptions given) : options(std::move(given)), pause(options.restart) {}
  ~State();
  device::DeviceStatus prepare();
  device::DeviceStatus start_helper(double limit_s);
  device::DeviceStatus go_on(device::DeviceStatus met);
  device::DeviceStatus ask_daemon_for_helper(const std::string& socket);
  device::DeviceResult<pid_t> spawn_own_helper();
  device::DeviceStatus shake_hands(double limit_s);
  void end_start(double limit_s);
  void note_failure(const device::DeviceStatus& started);
  void watch();
  void see_helper_end();
  bool restore();
  void end_budget();
  std::string restore_at_exit();
  [[nodiscard]] std::string text_of_lock() const;
  /// It starts as a helper does.
  [[nodiscard]] double restore_limit_s() const { return std::max(kRestoreLimit_s, options.start_limit_s); }
  [[nodiscard]] Megahertz ceiling() const {
    if (options.ceiling.value() > 0) return options.ceiling;
    const auto given = device::ceiling_of_environment();
    return given ? *given : Megahertz(0);
  }
  [[nodiscard]] bool stops() const { return readable(stop.get(), 0, -1); }
  [[nodiscard]] bool here() const { return generation == fork_generation().load(std::memory_order_relaxed); }

  // Read by set(); in one cache line, since none is cached any more after a computation.
  alignas(64) Mailbox* mailbox = nullptr;  ///< stays the same from helper to helper
  OwnedFd wake;
  int generation = 0;
  std::atomic<bool> keeps_memory{false};  ///< a device may still write into the mailbox

  ClockControllerOptions options;
  OwnedFd mailbox_fd, stop;
  std::atomic<pid_t> supervisor{0}, worker{0};  ///< 0: none
  std::atomic<std::int64_t> helpers{0};         ///< number of helpers that started to work so far
  std::atomic<bool> gone{true};                 ///< no helper works
  std::atomic<bool> stopped{false};             ///< no budget any more

  // Used by the watching thread; until it runs, by the thread that starts it.
  OwnedFd channel;
  std::optional<pid_t> starts;           ///< the helper that has not answered yet; 0: a daemon's
  bool own_helper = false;               ///< this process has started the last helper, and no daemon has
  std::atomic<bool> helper_ended{true};  ///< the last one
  bool tried_at_stop = false;            ///< restore() ran after the request to stop
  std::string program, lease;            ///< of an own helper; written under mutex
  RestartPause pause;
  std::int64_t working_since_ns = 0;  ///< 0: it did not start
  std::int64_t before_given_up = 0;   ///< DeviceClock::given_up when the last helper started
  bool left_at_ceiling = false;       ///< by --keep-ceiling: no process gives the clock back by itself
  std::thread watcher;

  std::mutex mutex;  ///< guards the next line, and the mailbox's texts
  std::string why_gone, left_locked;
};

device::DeviceStatus ClockController::State::prepare() {
  if (const auto given = device::ceiling_of_environment(); !given) return given.error();
  mailbox_fd = OwnedFd(create_mailbox_fd());
  if (mailbox_fd.valid()) mailbox = map_mailbox(mailbox_fd.get());
  wake = OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop = OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (mailbox == nullptr || !wake.valid() || !stop.valid()) {
    return no_helper(fmt::format("no shared memory or eventfd for the helper: {}", std::strerror(errno)));
  }
  mailbox->start_limit_ns = static_cast<std::int64_t>(1e9 * options.start_limit_s);
  add_open_mailbox(*mailbox, wake.get(), generation, [this] { return restore_at_exit(); });
  return Ok{};
}

ClockController::State::~State() {
  remove_open_mailbox(mailbox);
  if (!keeps_memory) unmap_mailbox(mailbox);
}

/// Call while no helper works. One that is late goes on starting: see watch().
device::DeviceStatus ClockController::State::start_helper(double limit_s) {
  const std::int64_t began_ns = monotonic_ns();
  working_since_ns = 0;
  const std::string socket = daemon_socket(options.daemon);
  device::DeviceResult<pid_t> child = pid_t{0};  // a daemon's helper is no child of ours
  bool own = socket.empty();
  if (!own) {
    device::DeviceStatus asked = ask_daemon_for_helper(socket);
    // A socket that a previous daemon has left behind counts as no daemon.
    own = !asked && asked.error().fault == device::DeviceFault::no_driver && options.daemon.empty() &&
          socket == kDaemonSocket;
    if (!asked && !own) return asked;
  }
  if (own) child = spawn_own_helper();
  if (!child) return child.error();
  const double used_s = 1e-9 * static_cast<double>(monotonic_ns() - began_ns);
  starts = *child;
  return go_on(shake_hands(std::max(limit_s - used_s, 0.0)));
}

device::DeviceStatus ClockController::State::go_on(device::DeviceStatus met) {
  if (!met) return met;
  working_since_ns = monotonic_ns();
  left_at_ceiling = false;
  {
    const std::lock_guard lock(mutex);
    left_locked.clear();  // it has given back first
  }
  helpers.fetch_add(1, std::memory_order_release);
  gone.store(false, std::memory_order_release);
  return Ok{};
}

device::DeviceStatus ClockController::State::ask_daemon_for_helper(const std::string& socket) {
  {
    const std::lock_guard lock(mutex);
    program = fmt::format("the clock daemon at {}", socket);
    lease.clear();
    own_helper = false;
    mailbox->begin_again();
  }
  const std::string selector = device::stable_selector(options.gpu, options.device);
  auto connection = ask_daemon(socket, selector, ceiling(), mailbox_fd.get(), wake.get());
  if (!connection) return connection.error();
  channel = std::move(*connection);
  return Ok{};
}

device::DeviceResult<pid_t> ClockController::State::spawn_own_helper() {
  auto found = find_helper(options.helper);
  if (!found) return found.error();
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return no_helper(fmt::format("no sockets for the helper: {}", std::strerror(errno)));
  }
  channel = OwnedFd(ends[0]);
  const OwnedFd helpers_channel(ends[1]);
  {
    const std::lock_guard lock(mutex);
    program = std::move(*found);
    lease.clear();
    own_helper = true;
    mailbox->begin_again();
  }
  const OwnedFd owner = own_pidfd();
  // By its UUID: the helper may start while the GPU is lost and reports none.
  std::vector<std::string> arguments{"--device", device::stable_selector(options.gpu, options.device)};
  if (ceiling().value() > 0) {
    arguments.emplace_back("--ceiling");
    arguments.push_back(std::to_string(ceiling().value()));
  }
  return spawn_helper(program, arguments, {mailbox_fd.get(), helpers_channel.get(), wake.get(), owner.get()});
}

/// The process that the helper's processes come from.
void ClockController::State::end_start(double limit_s) {
  if (const pid_t child = std::exchange(starts, std::nullopt).value_or(0); child > 0) reap(child, limit_s);
}

/// Of the helper that starts. Not answered: it starts still.
device::DeviceStatus ClockController::State::shake_hands(double limit_s) {
  const bool answered = readable(channel.get(), limit_s, stop.get());
  HelperHello hello;
  if (!answered) {
    // Usually the helper waits for a lease, and on a busy host its message comes too late.
    const std::string holder = device::stable_id(options.gpu).empty() ? "" : clock_holder(options.gpu);
    return no_helper(fmt::format("{}{}{} did not get ready in {} s", holder, holder.empty() ? "" : "; ", program,
                                 options.start_limit_s));
  }
  const ssize_t got = ::recv(channel.get(), &hello, sizeof hello, MSG_DONTWAIT);
  const bool own = starts.value_or(0) > 0;
  end_start(1);  // perseus-clockd has left orphans at work, and ended
  if (got != sizeof hello || hello.magic != HelperHello::kMagic) {
    return no_helper(
        fmt::format("{} is not a perseus-clockd that this Perseus ({}) can use: it ended without an answer", program,
                    PERSEUS_VERSION));
  }
  hello.version.back() = hello.text.back() = 0;
  if (std::string_view(hello.version.data()) != PERSEUS_VERSION) {
    return no_helper(fmt::format("{} is version {}, this is {}", program, hello.version.data(), PERSEUS_VERSION));
  }
  if (hello.fault >= 0) return device::DeviceError{static_cast<device::DeviceFault>(hello.fault), hello.text.data()};
  // A daemon outside of this PID namespace has other PIDs, and restores leases itself.
  const bool numbers = own || listener_of(channel.get()) > 0;
  supervisor = numbers ? hello.supervisor_pid : 0;
  worker = numbers ? hello.worker_pid : 0;
  return Ok{};
}

/// Waits until the helper's last process has closed the channel, or for a second after the request to end. If both
/// processes died before either could unlock, a third unlocks.
void ClockController::State::see_helper_end() {
  end_start(0);
  if (!channel.valid()) return;
  bool ended = working_since_ns != 0 && closes(channel.get(), -1, stop.get());
  // For a helper that is no longer wanted, or did not get ready: it sees the shutdown, and ends.
  if (!ended) ::shutdown(channel.get(), SHUT_WR);
  ended = ended || closes(channel.get(), -1, stop.get()) || closes(channel.get(), kStopLimit_s, -1);
  const auto locked = [this] { return mailbox->locked.load(std::memory_order_acquire) != 0; };
  ended = ended || (locked() && closes(channel.get(), kLockedLimit_s, -1));
  if (ended) mailbox->device_clock.forget();
  {
    const std::lock_guard lock(mutex);
    if (!gone) {
      why_gone = mailbox->why_ended.read();
      if (why_gone.empty()) why_gone = fmt::format("perseus-clockd has ended (it was process {})", worker.load());
    }
    gone.store(true, std::memory_order_release);
  }
  supervisor = worker = 0;
  channel.reset();
  helper_ended = ended;
  if (own_helper) {
    const std::lock_guard lock(mutex);
    lease = mailbox->lease.read();
  }
  const bool left = locked() && !(ended && restore());
  const std::lock_guard lock(mutex);
  left_locked = left ? text_of_lock() : "";
}

/// In place of an own helper whose processes all died, or could not give the clock back: another perseus-clockd, then
/// this process. Its driver session may be older than a driver library that was replaced, which refuses new processes.
bool ClockController::State::restore() {
  const std::string path = lease;
  if (path.empty()) return false;
  // This process trains on: its clock must not become the driver's choice.
  tried_at_stop = stops();
  const Megahertz ceiling = tried_at_stop ? Megahertz(0) : mailbox->limit.least_ceiling();
  left_at_ceiling = ceiling.value() != 0;
  std::vector<std::string> arguments{"--restore", path};
  if (left_at_ceiling) arguments = {"--keep-ceiling", path, std::to_string(ceiling.value())};
  const auto restorer = spawn_helper(program, arguments, {});
  bool done = restorer && reap(*restorer, restore_limit_s());
  done = done || within(kHereLimit_s, [path, ceiling] {
           return (ceiling.value() == 0 ? restore_lease(path, 0) : keep_ceiling(path, 0, ceiling)).ok();
         });
  if (done && !left_at_ceiling) mailbox->locked.store(0, std::memory_order_release);
  return done;
}

/// After the last helper: what holds the ceiling in its place gives the clock back, and so does what could not before.
void ClockController::State::end_budget() {
  stopped = true;
  mailbox->limit.set(Megahertz(0), 0);  // a guard sees it
  const bool locked = left_at_ceiling || (mailbox->locked.load(std::memory_order_acquire) != 0 && !tried_at_stop);
  if (!locked || !helper_ended || !restore()) return;
  const std::lock_guard lock(mutex);
  left_locked.clear();
}

/// Tries once more; returns what is to be said of a clock that stays locked.
std::string ClockController::State::restore_at_exit() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock() || mailbox->locked.load(std::memory_order_acquire) == 0) return {};
  if (!left_locked.empty() && !lease.empty()) {
    const auto restorer = spawn_helper(program, {"--restore", lease}, {});
    if (restorer && reap(*restorer, kHereLimit_s)) return {};
  }
  return text_of_lock();
}

/// Call with the mutex.
std::string ClockController::State::text_of_lock() const {
  const std::uint32_t mhz = mailbox->clock_set_mhz.load(std::memory_order_relaxed);
  const std::string& id = device::stable_id(options.gpu);
  const char* const how =
      !own_helper            ? "it could not be given back; the node's clock daemon goes on trying"
      : helper_ended && gone ? "it could not be given back; run perseus-clockd --restore on this host, as the same user"
                             : "its helper has not given it back yet; if it stays so, run perseus-clockd --restore on "
                               "this host, as the same user";
  return fmt::format("the clock of {} may be stuck{}: {} (lease {})", id.empty() ? options.device : id,
                     mhz == 0 ? "" : fmt::format(" at {} MHz", mhz), how, mailbox->lease.read());
}

void ClockController::State::note_failure(const device::DeviceStatus& started) {
  if (started) return;
  const std::lock_guard lock(mutex);
  why_gone = started.error().message;
}

/// Runs one helper after the other, each when the previous one has ended and given the clock back.
void ClockController::State::watch() {
  if (starts) note_failure(go_on(shake_hands(kSlowStart_s)));
  for (;;) {
    see_helper_end();
    const double worked_s = working_since_ns == 0 ? 0 : 1e-9 * static_cast<double>(monotonic_ns() - working_since_ns);
    const std::int64_t given_up = mailbox->device_clock.read().given_up;
    const bool gives_up = std::exchange(before_given_up, given_up) != given_up;
    if (stops() || pause.never() || readable(stop.get(), pause.after(worked_s, gives_up), -1)) return;
    note_failure(start_helper(std::max(options.start_limit_s, kSlowStart_s)));
  }
}

device::DeviceResult<std::unique_ptr<ClockController>> ClockController::start(ClockControllerOptions options) {
  prepare_process();
  auto state = std::make_unique<State>(std::move(options));
  state->generation = fork_generation().load();
  if (const device::DeviceStatus prepared = state->prepare(); !prepared) return prepared.error();
  const device::DeviceStatus started = state->start_helper(state->options.start_limit_s);
  if (!started && state->pause.never()) {
    state->end_start(0);
    return started.error();
  }
  state->note_failure(started);
  state->watcher = start_quiet_thread([&watched = *state] { watched.watch(); });
  if (!state->watcher.joinable()) return no_helper("cannot create the thread that watches the helper");
  return std::unique_ptr<ClockController>(new ClockController(std::move(state)));
}

ClockController::ClockController(std::unique_ptr<State> state) : state_(std::move(state)) {}

ClockController::~ClockController() {
  if (!state_->here()) {
    // A forked child: helper and thread belong to the parent. Files stay open, although closing would do no harm.
    (void)state_.release();
    return;
  }
  stop();
}

void ClockController::stop() noexcept {
  if (!state_->here() || !state_->watcher.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(state_->stop.get(), &one, sizeof one);
  state_->watcher.join();
  try {
    state_->end_budget();
  } catch (...) {}  // no memory: the lease's record stays for the next perseus-clockd
}

// Also while no helper works: the next one begins with the newest change.
void ClockController::set(Megahertz clock) noexcept {
  State& state = *state_;
  state.mailbox->expect_post();
  if (state.here()) state.mailbox->post_now(clock, state.wake.get());
}

void ClockController::set_from(std::uint32_t position, Megahertz clock) noexcept {
  State& state = *state_;
  state.mailbox->expect_post();
  if (state.here()) state.mailbox->post(clock, position, state.wake.get());
}

void ClockController::set_budget(Megahertz ceiling, std::int64_t plan_until_ns) noexcept {
  if (!state_->here() || state_->stopped) return;
  state_->mailbox->limit.set(ceiling, plan_until_ns);
  state_->mailbox->limit_changed(state_->wake.get());
}

void ClockController::set_falls(std::span<const CeilingFall> falls) noexcept {
  if (!state_->here()) return;
  state_->mailbox->limit.falls(falls);
  state_->mailbox->limit_changed(state_->wake.get());
}

void ClockController::extend_plan(std::int64_t plan_until_ns) noexcept {
  if (!state_->here()) return;
  if (state_->mailbox->limit.extend(plan_until_ns)) state_->mailbox->limit_changed(state_->wake.get());
}

std::uint32_t ClockController::cap(Megahertz clock) noexcept {
  if (!state_->here()) return 0;
  const std::uint32_t ticket = state_->mailbox->limit.cap(clock);
  state_->mailbox->limit_changed(state_->wake.get());
  return ticket;
}

void ClockController::lift_cap(std::uint32_t ticket) noexcept {
  if (!state_->here()) return;
  if (state_->mailbox->limit.lift(ticket)) state_->mailbox->limit_changed(state_->wake.get());
}

bool ClockController::capped() const noexcept { return state_->mailbox->limit.capped_at().value() != 0; }

ClockController::SharedMemory ClockController::share_memory() {
  state_->keeps_memory = true;
  Mailbox* const mailbox = state_->mailbox;
  // A separate descriptor, never closed: the number must not become another file's.
  const int wake = ::fcntl(state_->wake.get(), F_DUPFD_CLOEXEC, 0);
  return {mailbox, mailbox_bytes(), &mailbox->queue.position(),
          [mailbox, wake](std::uint32_t position) { mailbox->reached(position, wake); }};
}

void ClockController::position_comes_from_cpu(bool does) noexcept { state_->mailbox->position_wakes = does; }

std::uint32_t ClockController::position() const noexcept { return state_->mailbox->queue.position().load(); }

void ClockController::applied_since(std::uint64_t& read, const std::function<void(const AppliedClock&)>& use) const {
  (void)state_->mailbox->applied_clocks.read_from(read, use);
}

void ClockController::begin_step() noexcept {
  if (state_->here()) state_->mailbox->begin_step();
}

ControlState ClockController::state() const noexcept {
  if (!state_->here()) return ControlState::gone;
  const HelperState helper = state_->mailbox->state.load(std::memory_order_acquire);
  if (helper == HelperState::refused) return ControlState::refused;
  if (state_->gone.load(std::memory_order_acquire) || helper == HelperState::lost) return ControlState::gone;
  return ControlState::working;
}

std::string ClockController::why() const {
  if (!state_->here()) return "this process was forked from the one that controls the clock";
  const std::lock_guard lock(state_->mutex);
  return state_->gone.load(std::memory_order_acquire) ? state_->why_gone : state_->mailbox->why_ended.read();
}

ControlStatistics ClockController::statistics() const {
  const Mailbox& box = *state_->mailbox;
  ControlStatistics statistics;
  statistics.requested = static_cast<std::int64_t>(box.queue.posted());
  const auto taken = box.queue.last_taken();
  const bool answering = taken && box.handled.load() < taken->index;
  const std::int64_t waiting = statistics.requested - static_cast<std::int64_t>(taken ? taken->index : 0);
  statistics.pending = answering || waiting > 0;
  statistics.applied = box.applied.load();
  statistics.failed = box.failed.load();
  statistics.merged = box.queue.merged();
  statistics.woken = box.woken.load();
  statistics.superseded = std::max<std::int64_t>(
      statistics.requested - statistics.applied - statistics.failed - waiting - (answering ? 1 : 0), 0);
  statistics.helpers = state_->helpers.load();
  statistics.last_set = Megahertz(static_cast<int>(box.clock_set_mhz.load()));
  statistics.request_to_device_p50_s = box.request_to_device.quantile_s(0.5);
  statistics.request_to_device_p99_s = box.request_to_device.quantile_s(0.99);
  statistics.device_call_p50_s = box.device_call.quantile_s(0.5);
  statistics.device_call_p99_s = box.device_call.quantile_s(0.99);
  statistics.call_to_clock_p50_s = box.call_to_clock.quantile_s(0.5);
  statistics.call_to_clock_p99_s = box.call_to_clock.quantile_s(0.99);
  statistics.clock_changes_watched = box.call_to_clock.count();
  statistics.helper_cpu_s = cpu_s(state_->supervisor) + cpu_s(state_->worker);
  return statistics;
}

std::string ClockController::left_locked() const {
  if (!state_->here()) return {};
  const std::lock_guard lock(state_->mutex);
  return state_->left_locked;
}

DeviceClock ClockController::device_clock() const {
  return state_->here() ? state_->mailbox->device_clock.read() : DeviceClock{};
}

std::int64_t ClockController::working_helper() const noexcept {
  return state() == ControlState::working ? state_->helpers.load(std::memory_order_acquire) : 0;
}

int ClockController::helper_pid() const noexcept { return state_->worker; }
int ClockController::supervisor_pid() const noexcept { return state_->supervisor; }

}  // namespace perseus::clock_control
