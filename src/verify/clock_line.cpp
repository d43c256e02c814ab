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
  under_way_.push_back({when + latency_, clock});
}

ClockLine::Run ClockLine::run(const ComputationType& type, Seconds start) {
  Run run;
  double work_left = 1;
  Seconds now = start;
  while (true) {
    while (!under_way_.empty() && under_way_.front().time <= now) {
      now_ = under_way_.front().clock;
      under_way_.pop_front();
    }
    const Measurement& option = option_at(type, now_);
    const Seconds to_end = option.time * work_left;
    if (under_way_.empty() || now + to_end <= under_way_.front().time) {
      run.duration += to_end;
      run.energy += option.energy * work_left;
      return run;
    }
    const Seconds to_change = under_way_.front().time - now;
    const double work = to_change / option.time;
    run.duration += to_change;
    run.energy += option.energy * work;
    work_left -= work;
    now = under_way_.front().time;
  }
}

void ClockLine::restart_time_at(Seconds origin) {
  for (Arrival& arrival : under_way_) arrival.time -= origin;
}

}  // namespace perseus
