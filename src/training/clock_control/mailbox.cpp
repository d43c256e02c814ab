#include "training/clock_control/mailbox.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace perseus::clock_control {
namespace {

constexpr std::int64_t kLookAtCpu = 8;  // check the CPU once in this many requests: threads seldom move

constexpr std::int64_t kExitLimit_ns = 2'000'000'000;

struct OpenMailboxes {
  struct One {
    Mailbox* mailbox;
    int wake, generation;
    std::function<std::string()> left_locked;
  };
  std::mutex mutex;
  std::vector<One> all;
};

OpenMailboxes& open_mailboxes() {
  static auto* const mailboxes = new OpenMailboxes;  // never destroyed: exit handlers use it
  return *mailboxes;
}

void give_back_at_exit() {
  const std::unique_lock lock(open_mailboxes().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const std::int64_t until_ns = monotonic_ns() + kExitLimit_ns;
  const auto owned = [](const OpenMailboxes::One& one) { return one.generation == fork_generation().load(); };
  const auto works = [&](const OpenMailboxes::One& one) {
    return owned(one) && one.mailbox->state.load(std::memory_order_acquire) == HelperState::working;
  };
  // A request in flight to the device will lock the clock.
  const auto owes = [&](const OpenMailboxes::One& one) {
    const Mailbox& mailbox = *one.mailbox;
    return (works(one) && mailbox.owes_answer()) || (owned(one) && mailbox.locked.load() != 0);
  };
  for (const OpenMailboxes::One& one : open_mailboxes().all) {
    if (!works(one)) continue;
    one.mailbox->limit.set(Megahertz(0), 0);  // a power budget ends with this process
    one.mailbox->post_now(Megahertz(0), one.wake);
    one.mailbox->limit_changed(one.wake);
  }
  while (std::ranges::any_of(open_mailboxes().all, owes) && monotonic_ns() < until_ns) {
    const timespec pause{0, 500'000};
    ::nanosleep(&pause, nullptr);
  }
  for (const OpenMailboxes::One& one : open_mailboxes().all) {
    if (!owned(one) || one.mailbox->locked.load() == 0) continue;
    if (const std::string text = one.left_locked(); !text.empty()) std::fprintf(stderr, "perseus: %s\n", text.c_str());
  }
}

}  // namespace

std::int64_t monotonic_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

void SharedText::write(std::string_view text) {
  if (written_.load(std::memory_order_relaxed) != 0) return;
  const std::size_t length = std::min(text.size(), sizeof text_ - 1);
  std::memcpy(text_, text.data(), length);
  text_[length] = 0;  // a longer text may have been there before
  written_.store(1, std::memory_order_release);
}

std::string SharedText::read() const {
  if (written_.load(std::memory_order_acquire) == 0) return {};
  return {text_, ::strnlen(text_, sizeof text_)};
}

void Mailbox::post(Megahertz clock, std::uint32_t position, int wake_fd) noexcept {
  ClockChange change;
  change.position = position;
  change.clock_mhz = static_cast<std::uint16_t>(std::clamp(clock.value(), 0, 0xffff));
  if (newest_mhz.load(std::memory_order_relaxed) == change.clock_mhz) return;
  post_change(change, wake_fd);
}

void Mailbox::post_now(Megahertz clock, int wake_fd) noexcept {
  ClockChange change;
  change.clock_mhz = static_cast<std::uint16_t>(std::clamp(clock.value(), 0, 0xffff));
  change.now = true;
  const bool nothing_waits = queue.newest_is_now() || !queue.waits_for_device();
  if (newest_mhz.load(std::memory_order_relaxed) == change.clock_mhz && nothing_waits) return;
  post_change(change, wake_fd);
}

void Mailbox::post_change(ClockChange change, int wake_fd) noexcept {
  change.posted_ns = monotonic_ns();
  change.begins_step = step_begins.load(std::memory_order_relaxed);
  if (change.begins_step) step_begins.store(false, std::memory_order_relaxed);
  newest_mhz.store(change.clock_mhz, std::memory_order_relaxed);
  if (queue.posted() % kLookAtCpu == 0) posted_on_cpu.store(::sched_getcpu(), std::memory_order_relaxed);
  // Writes the queue's tail, then reads `rest`; the helper writes `rest`, then reads the tail. In one order for all,
  // so one of them sees the other.
  queue.post(change);
  const HelperRest resting = rest.load(std::memory_order_seq_cst);
  if (resting == HelperRest::asleep || (resting == HelperRest::dozing && change.now)) wake(wake_fd);
}

void Mailbox::reached(std::uint32_t position, int wake_fd) noexcept {
  std::atomic<std::uint32_t>& here = queue.position();
  std::uint32_t before = here.load(std::memory_order_relaxed);
  do {
    if (static_cast<std::int32_t>(position - before) <= 0) return;
  } while (!here.compare_exchange_weak(before, position, std::memory_order_seq_cst));
  if (queue.has_due() && rest.load(std::memory_order_seq_cst) != HelperRest::awake) wake(wake_fd);
}

void Mailbox::limit_changed(int wake_fd) noexcept {
  if (rest.load(std::memory_order_seq_cst) != HelperRest::awake) wake(wake_fd);
}

void Mailbox::wake(int wake_fd) noexcept {
  if (rest.exchange(HelperRest::awake, std::memory_order_seq_cst) == HelperRest::awake) return;
  woken.fetch_add(1, std::memory_order_relaxed);
  const int kept = errno;
  const std::uint64_t one = 1;
  // It cannot block (EFD_NONBLOCK), and a full counter wakes as well.
  [[maybe_unused]] const auto done = ::write(wake_fd, &one, sizeof one);
  errno = kept;
}

void SharedDeviceClock::write(const DeviceClock& clock) noexcept {
  set_.store(clock.set.value(), std::memory_order_relaxed);
  limited_by_.store(clock.limited_by, std::memory_order_relaxed);
  foreign_clock_.store(clock.foreign_clock.value(), std::memory_order_relaxed);
  foreign_.store(clock.foreign, std::memory_order_relaxed);
  other_.store(clock.other.value(), std::memory_order_release);
}

DeviceClock SharedDeviceClock::read() const noexcept {
  DeviceClock clock;
  clock.other = Megahertz(other_.load(std::memory_order_acquire));
  clock.set = Megahertz(set_.load(std::memory_order_relaxed));
  clock.limited_by = limited_by_.load(std::memory_order_relaxed);
  clock.foreign = foreign_.load(std::memory_order_relaxed);
  clock.foreign_clock = Megahertz(foreign_clock_.load(std::memory_order_relaxed));
  clock.given_up = given_up_.load(std::memory_order_acquire);
  return clock;
}

void Mailbox::begin_again() noexcept {
  device_clock.forget();
  state.store(HelperState::starting, std::memory_order_relaxed);
  rest.store(HelperRest::awake, std::memory_order_relaxed);
  clock_set_mhz.store(0, std::memory_order_relaxed);
  awaits_lease.store(0, std::memory_order_relaxed);
  why_ended.forget();
  lease.forget();
}

bool Mailbox::may_rest(HelperRest how, std::uint64_t seen, std::uint32_t seen_limit) noexcept {
  rest.store(how, std::memory_order_seq_cst);
  const bool news = queue.posted() != seen, limit_is_news = limit.changes() != seen_limit;
  // Changes that a dozing helper sees by itself need not keep it awake; but it must not miss a position that wakes.
  if (!limit_is_news && !(how == HelperRest::dozing ? queue.has_due() : news || queue.has_due())) return true;
  rest.store(HelperRest::awake, std::memory_order_relaxed);
  return false;
}

bool Mailbox::owes_answer() const noexcept {
  if (queue.has_due()) return true;
  const auto taken = queue.last_taken();
  return taken && handled.load(std::memory_order_acquire) < taken->index;
}

int create_mailbox_fd() noexcept {
  const int fd = ::memfd_create("perseus-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  // Sealed, so that no process can shrink it under the helper.
  if (::ftruncate(fd, sizeof(Mailbox)) == 0 &&
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    void* memory = ::mmap(nullptr, sizeof(Mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) {
      unmap_mailbox(new (memory) Mailbox);
      return fd;
    }
  }
  const int kept = errno;
  ::close(fd);
  errno = kept;
  return -1;
}

Mailbox* map_mailbox(int fd) noexcept {
  struct stat about {};
  if (::fstat(fd, &about) != 0 || about.st_size != sizeof(Mailbox)) return nullptr;
  if ((::fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0) return nullptr;
  void* memory = ::mmap(nullptr, sizeof(Mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* mailbox = static_cast<Mailbox*>(memory);
  if (mailbox->magic == Mailbox::kMagic && mailbox->layout == Mailbox::kLayout) return mailbox;
  unmap_mailbox(mailbox);
  return nullptr;
}

void unmap_mailbox(Mailbox* mailbox) noexcept {
  if (mailbox != nullptr) ::munmap(mailbox, sizeof(Mailbox));
}

std::size_t mailbox_bytes() noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (sizeof(Mailbox) + page - 1) / page * page;
}

void prepare_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork(nullptr, nullptr, [] { fork_generation().fetch_add(1); });
    (void)std::atexit(give_back_at_exit);
  });
}

void add_open_mailbox(Mailbox& mailbox, int wake, int generation, std::function<std::string()> left_locked) {
  const std::lock_guard lock(open_mailboxes().mutex);
  open_mailboxes().all.push_back({&mailbox, wake, generation, std::move(left_locked)});
}

void remove_open_mailbox(const Mailbox* mailbox) {
  const std::lock_guard lock(open_mailboxes().mutex);
  std::erase_if(open_mailboxes().all, [mailbox](const OpenMailboxes::One& one) { return one.mailbox == mailbox; });
}

}  // namespace perseus::clock_control
