#include "planning/checker/clock_line.h"

#include <algorithm>

namespace perseus::checker {
namespace {

/// Measurement of that type at the highest measured clock not above the given one, which may be unmeasured.
const model::Measurement& option_at(const model::ComputationType& type, Megahertz clock) {
  const auto not_above =
      std::ranges::find_if(type.options, [clock](const model::Measurement& option) { return option.clock <= clock; });
  return not_above == type.options.end() ? type.options.back() : *not_above;
}

}  // namespace

ClockLine::Run ClockLine::run(const model::ComputationType& type, Seconds start) {
  Run run;
  double work_left = 1;
  Seconds now = start;
  while (true) {
    clock_.forget_before(now);
    const auto& changes = clock_.changes();
    const model::Measurement& option = option_at(type, clock_.at(now));
    const Seconds to_end = option.time * work_left;
    if (changes.empty() || now + to_end <= changes.front().arrives) {
      run.duration += to_end;
      run.energy += option.energy * work_left;
      return run;
    }
    const Seconds to_change = changes.front().arrives - now;
    const double work = to_change / option.time;
    run.duration += to_change;
    run.energy += option.energy * work;
    work_left -= work;
    now = changes.front().arrives;
  }
}

}  // namespace perseus::checker
