// What time makes due for the parts of the service.
//
// Input:   each part sets its Alarm to the time at which it next has something to do.
// Output:  next(): the earliest of these times. perform(): rings the alarms that are due, in the order of Turn.
// Errors:  none.
// Cost:    O(parts).
// Threads: io thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace perseus::work {

class Alarm;

class Due {
 public:
  /// The order of what is due at the same time: answers first, the division of the site's watts after the jobs.
  enum class Turn : unsigned char {
    waits,
    store,
    frontiers,
    streams,
    jobs,
    history,
    retention,
    sizes,
    alerts,
    sent_alerts,
    held_plans,
    site,
    forecasts
  };
  [[nodiscard]] std::optional<double> next() const;
  void perform(double now_s);

 private:
  friend class Alarm;
  std::multimap<Turn, Alarm*> alarms_;
};

/// The time at which a part has something to do, and what that is.
class Alarm {
 public:
  using Turn = Due::Turn;
  Alarm(Due& due, Turn turn, std::function<void(double now_s)> ring) : due_(due), ring_(std::move(ring)) {
    due_.alarms_.emplace(turn, this);
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() {
    std::erase_if(due_.alarms_, [this](const auto& one) { return one.second == this; });
  }

  /// Nothing: not before the next call. It rings once.
  void set(std::optional<double> at_s) { at_s_ = at_s; }
  [[nodiscard]] std::optional<double> at() const { return at_s_; }

 private:
  friend class Due;
  Due& due_;
  std::function<void(double now_s)> ring_;
  std::optional<double> at_s_;
};

inline std::optional<double> Due::next() const {
  std::optional<double> next;
  for (const auto& [turn, alarm] : alarms_) {
    if (alarm->at_s_ && (!next || *alarm->at_s_ < *next)) next = alarm->at_s_;
  }
  return next;
}

inline void Due::perform(double now_s) {
  for (const auto& [turn, alarm] : alarms_) {
    if (!alarm->at_s_ || *alarm->at_s_ > now_s) continue;
    alarm->at_s_.reset();
    alarm->ring_(now_s);
  }
}

}  // namespace perseus::work
