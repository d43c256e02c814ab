#include "training/device/examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "training/device/clock_habit.h"
#include "training/device/nvml_library.h"
#include "training/device/unix_http.h"
#include "training/device/zeusd.h"

namespace perseus::device {
namespace {

using SteadyClock = std::chrono::steady_clock;

Seconds since(SteadyClock::time_point begin) {
  return Seconds(std::chrono::duration<double>(SteadyClock::now() - begin).count());
}

void pause(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

/// Of sorted values: the value that at least that share of them does not exceed.
Seconds quantile(const std::vector<Seconds>& sorted, double share) {
  if (sorted.empty()) return Seconds(0);
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

DriverPresence examine_nvml() {
  const auto nvml = nvml_library();
  if (!nvml) return {"NVML", false, nvml.error().message};
  return {"NVML", true, (*nvml)->driver};
}

DriverPresence examine_zeusd() {
  UnixHttp http(zeusd_socket(), "", std::chrono::seconds(2));
  const auto answer = http.call("GET", "/discover");
  if (!answer) return {"zeusd", false, answer.error().message};
  constexpr int ok = 200, not_found = 404;
  if (answer->status == not_found) return {"zeusd", true, http.path() + ", before 0.3"};
  const auto offer = parse_zeusd_offer(answer->body);
  if (answer->status != ok || !offer) return {"zeusd", false, http.path() + ": it does not list its features"};
  return {"zeusd", true,
          fmt::format("{}, {} GPU{}, {}{}", http.path(), offer->gpus.size(), offer->gpus.size() == 1 ? "" : "s",
                      offer->controls ? "sets clocks" : "does not set clocks",
                      offer->needs_token ? ", requires a token" : "")};
}

}  // namespace

std::vector<DriverPresence> examine_drivers() { return {examine_nvml(), examine_zeusd()}; }

CounterExamination examine_counter(Gpu& gpu, Seconds at_most, int changes) {
  CounterExamination seen;
  const auto first = gpu.energy();
  if (!first) {
    seen.why = first.error().message;
    return seen;
  }
  seen.present = true;
  const auto begin = SteadyClock::now();
  Joules last = *first, counted, integrated;
  Seconds last_change, last_look;
  bool power_known = true;
  std::vector<Seconds> gaps;
  Joules since_change;  ///< of the power sensor, since the counter last moved
  Watts last_power;
  while (seen.changes <= changes && since(begin) < at_most) {
    const auto energy = gpu.energy();
    const auto power = gpu.power();
    const Seconds now = since(begin);
    if (!energy) {
      seen.why = energy.error().message;
      return seen;
    }
    power_known = power_known && power.ok();
    if (power) {
      since_change += 0.5 * (last_power + *power) * (now - last_look);
      last_power = *power;
    }
    last_look = now;
    if (*energy != last) {
      // The interval before the first change began before the examination.
      if (seen.changes > 0) {
        gaps.push_back(now - last_change);
        counted += *energy - last;
        integrated += since_change;
      }
      since_change = Joules(0);
      ++seen.changes;
      seen.backward += *energy < last ? 1 : 0;
      last_change = now;
      last = *energy;
    }
    pause(std::chrono::microseconds(2000));
  }
  std::sort(gaps.begin(), gaps.end());
  seen.refresh = quantile(gaps, 0.5);
  if (power_known && integrated > Joules(0)) seen.ratio = counted / integrated;
  return seen;
}

SwitchExamination examine_switching(Gpu& gpu, int switches, const std::function<bool()>& go_on) {
  SwitchExamination seen;
  const auto clocks = gpu.supported_clocks();
  if (!clocks) {
    seen.why = clocks.error().message;
    return seen;
  }
  std::vector<Seconds> calls, settles;
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> any(0, clocks->size() - 1);
  std::vector<int> clocks_mhz;
  for (const Megahertz clock : *clocks) clocks_mhz.push_back(clock.value());
  ClockHabit habit(clocks_mhz);
  Megahertz last;
  for (int i = 0; i < switches && go_on(); ++i) {
    const Megahertz target = (*clocks)[any(random)];
    if (target == last) continue;
    last = target;
    const auto before = gpu.clock();
    const auto begin = SteadyClock::now();
    const DeviceStatus locked = gpu.lock_clock(target);
    calls.push_back(since(begin));
    if (!locked) {
      seen.why = locked.error().message;
      const DeviceFault fault = locked.error().fault;
      seen.touched = seen.touched || (fault != DeviceFault::no_permission && fault != DeviceFault::not_supported &&
                                      fault != DeviceFault::bad_clock);
      break;
    }
    seen.touched = true;
    constexpr Seconds give_up = Seconds(0.5);
    bool reached = false, lost = false;
    Megahertz runs;
    while (!reached && !lost && since(begin) < give_up) {
      const auto clock = gpu.clock();
      lost = !clock && clock.error().fault == DeviceFault::lost;
      if (lost) seen.why = clock.error().message;
      if (clock) runs = *clock;
      reached = clock && (runs_at(gpu.identity(), target, runs) || habit.is_usual(target.value(), runs.value()));
      if (!reached) pause(std::chrono::microseconds(200));
    }
    if (lost) break;
    if (reached && !(before && *before == runs && runs != target)) settles.push_back(since(begin));
    reached ? ++seen.switches : ++seen.not_reached;
    if (!reached && runs.value() > 0) habit.learn(target.value(), runs.value());
    if (const auto remark = habit.take_remark()) seen.remark = *remark;
  }
  if (seen.touched) {
    const DeviceStatus unlocked = gpu.unlock_clock();
    seen.restored = unlocked.ok();
    if (!unlocked && seen.why.empty()) seen.why = unlocked.error().message;
  }
  pause(std::chrono::milliseconds(100));
  if (const auto clock = gpu.clock()) seen.after = *clock;
  if (seen.why.empty() && seen.switches == 0 && seen.not_reached > 0) seen.why = "no clock was reached in 500 ms";
  seen.done = seen.why.empty();
  std::sort(calls.begin(), calls.end());
  std::sort(settles.begin(), settles.end());
  seen.call_p50 = quantile(calls, 0.5);
  seen.call_p99 = quantile(calls, 0.99);
  seen.settle_p50 = quantile(settles, 0.5);
  seen.settle_p99 = quantile(settles, 0.99);
  return seen;
}

}  // namespace perseus::device
