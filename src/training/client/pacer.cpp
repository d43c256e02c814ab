#include "training/client/pacer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "training/client/call_cost.h"

namespace perseus::client {
namespace {

constexpr std::chrono::milliseconds kLookAgain{1};  ///< whether the device is idle

std::uint64_t ns(double seconds) { return static_cast<std::uint64_t>(1e9 * std::max(seconds, 0.0)); }

}  // namespace

Pacer::Pacer(std::function<std::uint64_t()> now_ns) : now_ns_(std::move(now_ns)) {
  if (!now_ns_) now_ns_ = host_now_ns;
}

void Pacer::set(RankPace pace, std::vector<LaterPace> later) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) take(pace, std::move(later));
}

void Pacer::move_later(std::vector<LaterPace> later) {
  const std::lock_guard lock(mutex_);
  if (!later_.empty()) take(pace_, std::move(later));
}

void Pacer::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  take({}, {});
}

void Pacer::take(RankPace pace, std::vector<LaterPace> later) {
  pace_ = pace;
  later_ = std::move(later);
  std::uint64_t first_ns = kNever;
  for (const LaterPace& one : later_) first_ns = std::min(first_ns, one.at_ns);
  first_later_ns_.store(first_ns, std::memory_order_relaxed);
  period_s_.store(pace.period_s, std::memory_order_relaxed);
  changed_.notify_all();
}

double Pacer::period_s() const {
  const std::lock_guard lock(mutex_);
  return pace_at(now_ns_()).period_s;
}

RankPace Pacer::pace_at(std::uint64_t now_ns) const {
  RankPace pace = pace_;
  for (const LaterPace& later : later_) {
    if (later.at_ns <= now_ns && later.pace.period_s > pace.period_s) pace = later.pace;
  }
  return pace;
}

double Pacer::share_now() const {
  const std::lock_guard lock(mutex_);
  return pace_at(now_ns_()).evaluation_share;
}

void Pacer::wait_for(std::uint64_t begun_ns, const std::function<bool()>& idle) {
  const auto due_ns = [begun_ns](const RankPace& pace) { return pace.period_s > 0 ? begun_ns + ns(pace.period_s) : 0; };
  sleep(now_ns_() + ns(kLongestPace_s), due_ns, idle);
}

void Pacer::pause_evaluation(std::uint64_t begun_ns, std::uint64_t ended_ns, const std::function<bool()>& idle) {
  const std::uint64_t latest_ns = now_ns_() + ns(kLongestPace_s);
  if (!idle()) {
    sleep(
        latest_ns, [](const RankPace& pace) { return std::uint64_t{pace.evaluation_share > 0 ? 1U : 0U}; }, idle);
    ended_ns = std::max(ended_ns, now_ns_());
  }
  const double share = share_now();
  if (share <= 0 || ended_ns < begun_ns) return;
  const std::uint64_t due_ns = ended_ns + evaluation_.pause_ns(ended_ns - begun_ns, share);
  sleep(
      latest_ns, [due_ns](const RankPace& pace) { return pace.evaluation_share > 0 ? due_ns : 0; }, idle);
}

void Pacer::sleep(std::uint64_t latest_ns, const std::function<std::uint64_t(const RankPace&)>& due_ns,
                  const std::function<bool()>& idle) {
  const std::uint64_t from_ns = now_ns_();
  std::uint64_t now_ns = from_ns;
  std::unique_lock lock(mutex_);
  waits_.store(true, std::memory_order_release);
  for (; now_ns >= from_ns; now_ns = now_ns_()) {  // a time source that goes back ends the wait
    const std::uint64_t due = due_ns(pace_at(now_ns)), until_ns = std::min(due, latest_ns);
    if (now_ns < until_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(until_ns - now_ns));
    } else if (due > 0 && now_ns < latest_ns && !idle()) {
      changed_.wait_for(lock, kLookAgain);
    } else {
      break;
    }
  }
  waits_.store(false, std::memory_order_release);
  paced_s_.store(paced_s() + 1e-9 * static_cast<double>(std::max(now_ns, from_ns) - from_ns),
                 std::memory_order_relaxed);
}

}  // namespace perseus::client
