#include "clock_control/mailbox.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

namespace perseus {
namespace {

constexpr std::int64_t kLookAtCpu = 8;  // every so many requests: threads seldom move

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

void Mailbox::post(Megahertz clock, int wake_fd) noexcept {
  const int mhz = std::clamp(clock.value(), 0, 0xffff);
  const ClockRequest before(target.load(std::memory_order_relaxed));
  if (before.clock().value() == mhz) return;
  const ClockRequest request(mhz, monotonic_ns());
  const std::int64_t requests = requested.load(std::memory_order_relaxed);
  requested.store(requests + 1, std::memory_order_relaxed);
  if (requests % kLookAtCpu == 0) posted_on_cpu.store(::sched_getcpu(), std::memory_order_relaxed);
  const std::uint32_t mine = next_number.load(std::memory_order_relaxed);
  next_number.store(mine + 1, std::memory_order_relaxed);
  number.store(mine, std::memory_order_relaxed);
  // This store, then `asleep`; the helper: `asleep`, then `target`. In one order for all, so one of us sees the other.
  target.store(request.word(), std::memory_order_seq_cst);
  if (asleep.load(std::memory_order_seq_cst) == 0 || asleep.exchange(0, std::memory_order_seq_cst) == 0) return;
  woken.store(woken.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const int kept = errno;
  const std::uint64_t one = 1;
  // It cannot block (EFD_NONBLOCK), and a full counter wakes as well.
  [[maybe_unused]] const auto done = ::write(wake_fd, &one, sizeof one);
  errno = kept;
}

void Mailbox::begin_again() noexcept {
  state.store(HelperState::starting, std::memory_order_relaxed);
  asleep.store(0, std::memory_order_relaxed);
  clock_set_mhz.store(0, std::memory_order_relaxed);
  why_ended.forget();
}

bool Mailbox::may_sleep(ClockRequest seen) noexcept {
  asleep.store(1, std::memory_order_seq_cst);
  if (target.load(std::memory_order_seq_cst) == seen.word()) return true;
  asleep.store(0, std::memory_order_relaxed);
  return false;
}

int create_mailbox_fd() noexcept {
  const int fd = ::memfd_create("perseus-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  // Sealed, so that nobody can cut it off under the helper's feet.
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

}  // namespace perseus
