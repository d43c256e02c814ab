#include "server/store/writer_watch.h"

#include <utility>

namespace perseus::store {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kRenew{1000}, kAsk{250};

std::chrono::steady_clock::time_point sure_until(std::chrono::steady_clock::time_point asked) {
  return asked + milliseconds(static_cast<int>(1000 * kRight_s));
}

}  // namespace

WriterWatch::WriterWatch(Store& store, Writer first, std::string address, Post post, Told told)
    : store_(store),
      last_(std::move(first)),
      address_(std::move(address)),
      post_(std::move(post)),
      told_(std::move(told)),
      sure_until_(sure_until(std::chrono::steady_clock::now())),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

bool WriterWatch::has_resigned_within(milliseconds limit) {
  std::unique_lock lock(mutex_);
  return wake_.wait_for(lock, limit, [this] { return resigned_; });
}

void WriterWatch::work(const std::stop_token& stop) {
  const auto stopped_within = [&](milliseconds time) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
  };
  while (!stopped_within(last_.is_us ? kRenew : kAsk)) {
    const auto asked = std::chrono::steady_clock::now();
    const auto now = store_.become_writer(address_);
    if (now && now->is_us) sure_until_ = sure_until(asked);
    if (!now || stop.stop_requested() || (now->is_us == last_.is_us && now->address == last_.address)) continue;
    last_ = *now;
    post_([told = told_, now = *now] { told(now); });
  }
  store_.resign();
  const std::lock_guard lock(mutex_);
  resigned_ = true;
  wake_.notify_all();
}

}  // namespace perseus::store
