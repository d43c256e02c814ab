#include "training/clock_control/open_mailboxes.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

namespace perseus::clock_control {
namespace {

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
