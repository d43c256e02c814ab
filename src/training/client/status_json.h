// The status of a training client as JSON, for perseus_status() and people.
//
// Output:  one object; docs/client.md names its members.
// Errors:  none.
// Cost:    some microseconds.
// Threads: pure function.
#pragma once

#include <perseus/perseus.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "training/client/complaints.h"
#include "training/client/iteration_meter.h"

namespace perseus::client {

struct ClientStatus {
  perseus_statistics statistics{};
  std::string job;
  int rank = 0;
  std::string device;
  int helper_pid = 0;
  std::string_view device_time;  ///< how the moment of a clock change is determined
  double switch_latency_s = 0;
  std::size_t record_bytes = 0;
  EnergyFacts energy;
  std::vector<Complaint> complaints;
};

std::string status_json(const ClientStatus& status);

}  // namespace perseus::client
