// What time makes due for the parts of the service.
//
// Input:   each part sets its Alarm to the time at which it next has something to do.
// Output:  next(): the earliest of these times. perform(): rings the alarms that are due, in the order of Turn.
// Errors:  none.
// Cost:    O(parts).
// Threads: io thread.
#pragma once

#include <map>
#include <optional>

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

/// The time at which a part has something to do.
class Alarm {
 public:
  using Turn = Due::Turn;
  Alarm(Due& due, Turn turn) : due_(due) { due_.alarms_.emplace(turn, this); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  virtual ~Alarm() {
    std::erase_if(due_.alarms_, [this](const auto& one) { return one.second == this; });
  }

  /// Nothing: not before the next call. It rings once.
  void set(std::optional<double> at_s) { at_s_ = at_s; }
  [[nodiscard]] std::optional<double> at() const { return at_s_; }

 private:
  friend class Due;
  virtual void ring(double now_s) = 0;
  Due& due_;
  std::optional<double> at_s_;
};

/// What the part then does: `Method`, which may get the time.
template <auto Method>
class AlarmOf;
template <class Part, class... Now, void (Part::*Method)(Now...)>
class AlarmOf<Method> final : public Alarm {
 public:
  AlarmOf(Due& due, Turn turn, Part& part) : Alarm(due, turn), part_(part) {}

 private:
  void ring([[maybe_unused]] double now_s) override {
    if constexpr (sizeof...(Now) > 0) {
      (part_.*Method)(now_s);
    } else {
      (part_.*Method)();
    }
  }
  Part& part_;
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
    alarm->ring(now_s);
  }
}

}  // namespace perseus::work
