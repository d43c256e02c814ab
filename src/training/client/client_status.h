// The client's state as the C ABI returns it: perseus_statistics, and JSON for perseus_status().
//
// Input:   figures of one client's energy meter, clock control and training calls; its current complaints.
// Output:  members of perseus_statistics; one JSON object, see docs/client.md.
#pragma once

#include <perseus/perseus.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "training/client/complaints.h"
#include "training/client/iteration_meter.h"
#include "training/client/step_recorder.h"
#include "training/clock_control/clock_controller.h"
#include "training/clock_control/latency_histogram.h"

namespace perseus::client {

void add_energy(perseus_statistics& statistics, const EnergyFacts& energy);
/// `reached_to_call`: from the device passing a boundary to the helper's call; empty: clocks change at the call.
void add_control(perseus_statistics& statistics, const clock_control::ControlStatistics& control,
                 const clock_control::LatencyHistogram& reached_to_call);

struct SwitchLatency {
  double seconds, stddev_s;
};
/// Before any clock change was observed: at least the duration of the device's call, with a typical deviation.
SwitchLatency switch_latency_of(const clock_control::ControlStatistics& control);

/// A measured step, its computations in the order in which they began; times since the step's begin.
struct LastStep {
  struct Computation {
    model::Instruction instruction = model::Instruction::forward;
    int microbatch = -1, chunk = -1;  ///< -1: the caller gave none
    int clock_mhz = 0;                ///< requested; 0: none, or clocks could not be set
    double begin_s = 0, end_s = 0;
  };
  std::int64_t iteration = -1;  ///< -1: no step was measured yet
  double time_s = 0;
  std::vector<Computation> computations;  ///< the first kMostShown ones

  static constexpr std::size_t kMostShown = 2048;
};
LastStep last_step_of(const Step& step);

/// Of a power budget.
struct BudgetStatus {
  int ceiling_mhz = 0;
  double lease_s = 0, lease_left_s = 0;
  std::string_view why_ceiling;  ///< why the ceiling rules; empty: the plan does
  double paced_iteration_s = 0;  ///< see Pacer; 0: the job is not paced
};

struct ClientStatus {
  perseus_statistics statistics{};
  std::string job, device;
  int rank = 0;
  int helper_pid = 0;  ///< 0: no helper sets clocks
  std::string_view device_time;
  double switch_latency_s = 0;
  std::size_t record_bytes = 0;
  EnergyFacts energy;
  LastStep last_step;
  std::optional<BudgetStatus> budget;
  std::vector<Complaint> complaints;
};

std::string status_json(const ClientStatus& status);

}  // namespace perseus::client
