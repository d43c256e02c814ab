#include "client/complaints.h"

#include <algorithm>
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
    case Cause::device_time:
      return "device_time";
    case Cause::graph:
      return "graph";
  }
  return "";
}

Complaints::Complaints(Log log) : log_(std::move(log)) {}

void Complaints::say(LogLevel level, const std::string& message) const {
  try {
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
