#include "training/client/client_status.h"

#include <algorithm>
#include <array>

#include "base/json_writer.h"

namespace perseus::client {
namespace {

constexpr int kPowerDecimals = 2, kEnergyDecimals = 4, kTimeDecimals = 6;
constexpr std::array<std::string_view, 5> kStates{"starting", "maximum_clock", "profiling", "planned", "ceiling"};

}  // namespace

template <class F>
void describe(F& f, const MeasuredPower& p) {
  f.always("work", p.work);
  f.always("chunk", p.chunk);
  f.always("clock_mhz", p.clock_mhz);
  f.always("power_w", with_decimals(p.power.power_w, kPowerDecimals));
  f.always("power_stddev_w", with_decimals(p.power.stddev_w, kPowerDecimals));
  f.always("time_s", with_decimals(p.time_s, kTimeDecimals));
  f.always("energy_j", with_decimals(p.power.power_w * p.time_s, kEnergyDecimals));
  f.always("samples", p.samples);
}
template <class F>
void describe(F& f, const Complaint& complaint) {
  f.always("cause", name_of(complaint.cause));
  f.always("message", complaint.message);
  f.always("since_s", with_decimals(complaint.since_s, 3));
  f.always("times", complaint.times);
}
template <class F>
void describe(F& f, const LastStep::Computation& c) {
  f.always("instruction", name_of(c.instruction));
  f.always("microbatch", c.microbatch);
  f.always("chunk", c.chunk);
  f.always("clock_mhz", c.clock_mhz);
  f.always("begin_s", with_decimals(c.begin_s, kTimeDecimals));
  f.always("end_s", with_decimals(c.end_s, kTimeDecimals));
}
template <class F>
void describe(F& f, const LastStep& step) {
  f.always("iteration", step.iteration);
  f.always("time_s", with_decimals(step.time_s, kTimeDecimals));
  f.always("computations", step.computations);
}
template <class F>
void describe(F& f, const BudgetStatus& budget) {
  f.always("ceiling_mhz", budget.ceiling_mhz);
  f.always("lease_s", budget.lease_s);
  f.always("lease_left_s", with_decimals(budget.lease_left_s, 3));
  f.always("rules", budget.why_ceiling.empty() ? "plan" : "ceiling");
  f("why", budget.why_ceiling);
  f("paced_iteration_s", budget.paced_iteration_s);
}
template <class F>
void describe(F& f, const ClientStatus& status) {
  const perseus_statistics& s = status.statistics;
  f.always("state", kStates[static_cast<std::size_t>(s.state)]);
  f.always("job", status.job);
  f.always("rank", status.rank);
  f.always("device", status.device);
  f.always("helper_pid", status.helper_pid);
  f.always("iteration", s.iteration);
  f.always("plan_version", s.plan_version);
  f.always("plan_from_iteration", s.plan_from_iteration);
  f.always("planned_iteration_time_s", s.planned_iteration_time_s);
  f.always("last_iteration_time_s", s.last_iteration_time_s);
  f.always("server_reached", s.server_reached != 0);
  f.always("server_failures", s.server_failures);
  f.always("controls_clock", s.controls_clock != 0);
  f.always("device_time", status.device_time);
  f.always("clocks_requested", s.clocks_requested);
  f.always("clocks_applied", s.clocks_applied);
  f.always("computations_late", status.energy.late);
  f.always("switch_latency_s", with_decimals(status.switch_latency_s, kTimeDecimals));
  f.always("helper_restarts", s.helper_restarts);
  f.always("begin_end_ns", with_decimals(s.begin_end_ns, 1));
  f.always("set_speed_ns", with_decimals(s.set_speed_ns, 1));
  f.always("client_cpu_s", with_decimals(s.client_cpu_s, kTimeDecimals));
  f.always("record_bytes", status.record_bytes);
  f.always("counter_period_s", with_decimals(status.energy.counter_period_s, 4));
  f.always("energy_total_j", with_decimals(s.energy_total_j, 3));
  f.always("last_iteration_energy_j", with_decimals(s.last_iteration_energy_j, kEnergyDecimals));
  f.always("blocking_power_w", with_decimals(s.blocking_power_w, kPowerDecimals));
  f.always("samples", s.samples);
  f.always("samples_throttled", s.samples_throttled);
  f.always("samples_rejected", s.samples_rejected);
  f.always("computations_mixed", s.computations_mixed);
  f.always("computations_unsure", s.computations_unsure);
  f.always("plans_dropped", s.plans_dropped);
  f.always("profile", status.energy.powers);
  if (status.last_step.iteration >= 0) f.always("last_step", status.last_step);
  if (status.budget) f.always("budget", *status.budget);
  f.always("wrong", status.complaints);
}

LastStep last_step_of(const Step& step) {
  const auto since_begin_s = [&](std::uint64_t mark) {
    return mark < step.begin_mark ? 0 : 1e-9 * static_cast<double>(mark - step.begin_mark);
  };
  LastStep shown{step.iteration, since_begin_s(step.end_mark), {}};
  shown.computations.reserve(std::min(step.count, LastStep::kMostShown));
  for (std::size_t i = 0; i < std::min(step.count, LastStep::kMostShown); ++i) {
    const RecordedComputation& ran = step.computations[i];
    shown.computations.push_back({ran.instruction, ran.microbatch, ran.chunk, step.controlled ? ran.clock : 0,
                                  since_begin_s(ran.begin), since_begin_s(ran.end)});
  }
  return shown;
}

SwitchLatency switch_latency_of(const clock_control::ControlStatistics& control) {
  if (control.call_to_clock_p50_s <= 0) return {control.device_call_p50_s, 0.002};
  constexpr double p99_over_p50 = 2.3;  // in standard deviations
  return {control.call_to_clock_p50_s, (control.call_to_clock_p99_s - control.call_to_clock_p50_s) / p99_over_p50};
}

void add_energy(perseus_statistics& s, const EnergyFacts& energy) {
  s.last_iteration_energy_j = energy.last_iteration_j;
  s.energy_total_j = energy.total_j;
  if (s.blocking_power_w == 0) s.blocking_power_w = energy.blocking.power_w;
  s.samples = energy.intervals;
  s.samples_throttled = energy.throttled;
  s.samples_rejected = energy.rejected;
  s.computations_mixed = energy.mixed;
  s.computations_unsure = energy.unsure;
}

void add_control(perseus_statistics& s, const clock_control::ControlStatistics& control,
                 const clock_control::LatencyHistogram& reached_to_call) {
  s.clocks_requested = control.requested;
  s.clocks_applied = control.applied;
  s.clocks_superseded = control.superseded;
  s.clocks_failed = control.failed;
  s.helper_restarts = std::max<std::int64_t>(control.helpers - 1, 0);
  // At device time: from the device passing the boundary, by its own events; else from the call.
  const double reached_p50_s = reached_to_call.quantile_s(0.5), reached_p99_s = reached_to_call.quantile_s(0.99);
  const bool by_device = reached_to_call.count() > 0;
  s.request_to_device_p50_s = by_device ? reached_p50_s + control.device_call_p50_s : control.request_to_device_p50_s;
  s.request_to_device_p99_s = by_device ? reached_p99_s + control.device_call_p99_s : control.request_to_device_p99_s;
  s.client_cpu_s += control.helper_cpu_s;
}

std::string status_json(const ClientStatus& status) { return json_text(status); }

}  // namespace perseus::client
