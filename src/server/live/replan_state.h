// The planning of a job with the switch latency that its ranks measured: what LatencyReplans keeps of it.
//
// Input:   inputs whose completion with a latency failed; the first plan, as it is held back and handed out.
// Output:  whether to try an input again.
// Errors:  none.
// Cost:    a lookup.
// Threads: io thread.
#pragma once

#include <map>
#include <string>

#include "base/units.h"

namespace perseus::live {

class ReplanState {
 public:
  bool under_way = false;        ///< an input is being completed with the measured latency
  bool plan_handed_out = false;  ///< this server has sent the job's plan to some rank
  double measure_again_s = 0;    ///< not earlier: measuring the profile again could not begin
  bool plan_held_back = false;   ///< a rank requested it: see LatencyReplans::first_plan_waits()

  /// The input cannot be completed with that latency.
  void failed(const std::string& input, Seconds latency) { failed_.insert_or_assign(input, latency); }
  /// The last failure of the input was with that latency.
  [[nodiscard]] bool has_failed(const std::string& input, Seconds latency) const {
    const auto found = failed_.find(input);
    return found != failed_.end() && found->second == latency;
  }

 private:
  std::map<std::string, Seconds> failed_;  ///< by input
};

}  // namespace perseus::live
