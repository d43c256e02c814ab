#include "training/client/client_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "io/http/http_message.h"

namespace perseus::client {
namespace {

std::string complaints_json(const std::vector<Complaint>& complaints) {
  std::string list;
  for (const Complaint& complaint : complaints) {
    list +=
        fmt::format("{}{{\"cause\":\"{}\",\"message\":{},\"since_s\":{:.3f},\"times\":{}}}", list.empty() ? "" : ",",
                    name_of(complaint.cause), http::json_quoted(complaint.message), complaint.since_s, complaint.times);
  }
  return list;
}

std::string powers_json(const std::vector<MeasuredPower>& powers) {
  std::string list;
  for (const MeasuredPower& p : powers) {
    list += fmt::format(
        "{}{{\"work\":\"{}\",\"chunk\":{},\"clock_mhz\":{},\"power_w\":{:.2f},\"power_stddev_w\":{:.2f},"
        "\"time_s\":{:.6f},\"energy_j\":{:.4f},\"samples\":{}}}",
        list.empty() ? "" : ",", p.work, p.chunk, p.clock_mhz, p.power.power_w, p.power.stddev_w, p.time_s,
        p.power.power_w * p.time_s, p.samples);
  }
  return list;
}

}  // namespace

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

std::string status_json(const ClientStatus& status) {
  constexpr const char* states[] = {"starting", "maximum_clock", "profiling", "planned"};
  const perseus_statistics& s = status.statistics;
  return fmt::format(
      "{{\"state\":\"{}\",\"job\":{},\"rank\":{},\"device\":{},\"helper_pid\":{},\"iteration\":{},\"plan_version\":{},"
      "\"plan_from_iteration\":{},\"planned_iteration_time_s\":{},\"last_iteration_time_s\":{},"
      "\"server_reached\":{},\"server_failures\":{},\"controls_clock\":{},\"device_time\":\"{}\","
      "\"clocks_requested\":{},\"clocks_applied\":{},\"computations_late\":{},\"switch_latency_s\":{:.6f},"
      "\"helper_restarts\":{},\"begin_end_ns\":{:.1f},\"set_speed_ns\":{:.1f},\"client_cpu_s\":{:.6f},"
      "\"record_bytes\":{},\"counter_period_s\":{:.4f},\"energy_total_j\":{:.3f},\"last_iteration_energy_j\":{:.4f},"
      "\"blocking_power_w\":{:.2f},\"samples\":{},\"samples_throttled\":{},\"samples_rejected\":{},"
      "\"computations_mixed\":{},\"computations_unsure\":{},\"plans_dropped\":{},\"profile\":[{}],"
      "\"wrong\":[{}]}}",
      states[s.state], http::json_quoted(status.job), status.rank, http::json_quoted(status.device), status.helper_pid,
      s.iteration, s.plan_version, s.plan_from_iteration, s.planned_iteration_time_s, s.last_iteration_time_s,
      s.server_reached != 0, s.server_failures, s.controls_clock != 0, status.device_time, s.clocks_requested,
      s.clocks_applied, status.energy.late, status.switch_latency_s, s.helper_restarts, s.begin_end_ns, s.set_speed_ns,
      s.client_cpu_s, status.record_bytes, status.energy.counter_period_s, s.energy_total_j, s.last_iteration_energy_j,
      s.blocking_power_w, s.samples, s.samples_throttled, s.samples_rejected, s.computations_mixed,
      s.computations_unsure, s.plans_dropped, powers_json(status.energy.powers), complaints_json(status.complaints));
}

}  // namespace perseus::client
