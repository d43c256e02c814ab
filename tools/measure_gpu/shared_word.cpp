#include "shared_word.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <new>
#include <stdexcept>

#include "training/clock_control/mailbox.h"
#include "training/clock_control/start_helper.h"

namespace perseus::measure {
namespace {

SharedBlock* map(int fd) {
  void* const memory = ::mmap(nullptr, sizeof(SharedBlock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<SharedBlock*>(memory);
}

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

bool Watch::look(const std::atomic<std::uint32_t>& word) noexcept {
  const std::uint32_t now = word.load(std::memory_order_acquire), before = last.load(std::memory_order_relaxed);
  if (now == before) return false;
  const std::int64_t time = clock_control::monotonic_ns();
  if (now < before) backward.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = before + 1; i <= std::min<std::uint32_t>(now, kPositions - 1); ++i) {
    seen_ns[i].store(time, std::memory_order_relaxed);
  }
  last.store(now, std::memory_order_release);
  return true;
}

SharedWord::SharedWord() : fd_(::memfd_create("perseus-measure", MFD_CLOEXEC)) {
  if (fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(bytes())) == 0) block_ = map(fd_);
  if (block_ == nullptr) throw std::runtime_error("no shared memory (memfd_create)");
  new (block_) SharedBlock;
}

SharedWord::~SharedWord() {
  end_process();
  ::close(fd_);
}

std::size_t SharedWord::bytes() { return (sizeof(SharedBlock) + 4095) / 4096 * 4096; }

void SharedWord::watch_in_process(const std::string& program) {
  const auto started = clock_control::spawn_helper(program, {"watch-word"}, {fd_});
  if (!started) throw std::runtime_error(started.error().message);
  process_ = *started;
  while (!block_->watching.load(std::memory_order_acquire)) {
    if (::waitpid(process_, nullptr, WNOHANG) != 0) {
      process_ = 0;
      throw std::runtime_error("the watching process ended");
    }
    ::usleep(100);
  }
}

void SharedWord::end_process() {
  if (process_ == 0) return;
  block_->stop.store(true, std::memory_order_release);
  clock_control::reap(process_, 5);
  process_ = 0;
}

int watch_word_main() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  SharedBlock* const block = map(3);
  if (block == nullptr) return 71;
  block->watching.store(true, std::memory_order_release);
  while (!block->stop.load(std::memory_order_relaxed)) {
    if (!block->there.look(block->position)) pause_core();
  }
  return 0;
}

}  // namespace perseus::measure
