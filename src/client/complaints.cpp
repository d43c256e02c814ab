#include "client/complaints.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace perseus::client {

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::server:
      return "server";
    case Cause::job:
      return "job";
    case Cause::plan:
      return "plan";
    case Cause::clock_control:
      return "clock_control";
    case Cause::device:
      return "device";
    case Cause::energy:
      return "energy";
    case Cause::cuda:
      return "cuda";
    case Cause::records:
      return "records";
  }
  return "";
}

Complaints::Complaints(Log log) : log_(std::move(log)) {}

void Complaints::silence(double limit_s) {
  silent_ = true;
  std::unique_lock lock(logging_, std::defer_lock);
  (void)lock.try_lock_for(std::chrono::duration<double>(std::max(limit_s, 0.0)));
}

void Complaints::say(LogLevel level, const std::string& message) const {
  try {
    const std::lock_guard lock(logging_);
    if (silent_) return;
    log_(level, message);
  } catch (...) {  // a log is not worth a training run
  }
}

void Complaints::raise(Cause cause, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(complaints_, cause, &Complaint::cause);
    if (known != complaints_.end()) {
      known->message = message;
      return;
    }
    complaints_.push_back({cause, message, SystemClock().now_s()});
  }
  say(LogLevel::warning, message);
}

void Complaints::clear(Cause cause, const std::string& now_what) {
  {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(complaints_, [&](const Complaint& c) { return c.cause == cause; }) == 0) return;
  }
  say(LogLevel::info, now_what);
}

bool Complaints::raised(Cause cause) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(complaints_, cause, &Complaint::cause) != complaints_.end();
}

std::vector<Complaint> Complaints::all() const {
  const std::lock_guard lock(mutex_);
  return complaints_;
}

}  // namespace perseus::client
