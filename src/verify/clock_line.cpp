#include "verify/clock_line.h"

#include <algorithm>

namespace perseus {
namespace {

/// How that type runs at a clock it may not have been measured at: the highest measured clock not above it.
const Measurement& option_at(const ComputationType& type, Megahertz clock) {
  const auto not_above =
      std::ranges::find_if(type.options, [clock](const Measurement& option) { return option.clock <= clock; });
  return not_above == type.options.end() ? type.options.back() : *not_above;
}

}  // namespace

void ClockLine::request(Megahertz clock, Seconds when) {
  if (clock == requested_) return;
  requested_ = clock;
  // A change that has begun is completed; one that waited for it is dropped.
  while (!changes_.empty() && changes_.back().begins > when) changes_.pop_back();
  if (clock == (changes_.empty() ? now_ : changes_.back().clock)) return;
  const Seconds begins = changes_.empty() ? when : std::max(when, changes_.back().time);
  changes_.push_back({begins, begins + latency_, clock});
}

ClockLine::Run ClockLine::run(const ComputationType& type, Seconds start) {
  Run run;
  double work_left = 1;
  Seconds now = start;
  while (true) {
    while (!changes_.empty() && changes_.front().time <= now) {
      now_ = changes_.front().clock;
      changes_.pop_front();
    }
    const Measurement& option = option_at(type, now_);
    const Seconds to_end = option.time * work_left;
    if (changes_.empty() || now + to_end <= changes_.front().time) {
      run.duration += to_end;
      run.energy += option.energy * work_left;
      return run;
    }
    const Seconds to_change = changes_.front().time - now;
    const double work = to_change / option.time;
    run.duration += to_change;
    run.energy += option.energy * work;
    work_left -= work;
    now = changes_.front().time;
  }
}

void ClockLine::restart_time_at(Seconds origin) {
  for (Change& change : changes_) {
    change.begins -= origin;
    change.time -= origin;
  }
}

}  // namespace perseus
