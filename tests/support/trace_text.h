// A trace of runs as the two CSV files that perseus calibrate reads, see docs/formats.md.
#pragma once

#include <fmt/format.h>

#include <string>

#include "planning/model/run_trace.h"

namespace perseus::testing {

struct TraceText {
  std::string ops = "plan,stage,op,instruction,microbatch,frequency_mhz,time_s\n";
  std::string iterations = "plan,kind,stage,iter_time_s,iter_energy_j,load_total_s,n_iters\n";
};

inline TraceText trace_text(const model::RunTrace& trace) {
  TraceText text;
  for (const model::TracedPlan& plan : trace.plans) {
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
      for (std::size_t op = 0; op < plan.stages[stage].size(); ++op) {
        const model::TracedComputation& c = plan.stages[stage][op];
        text.ops += fmt::format("{},{},{},{},{},{},{}\n", plan.id, stage, op, model::name_of(c.instruction),
                                c.microbatch, c.clock.value(), c.time.value());
      }
      text.iterations += fmt::format("{},{},{},{},{},{},{}\n", plan.id, plan.kind, stage, plan.iteration_time.value(),
                                     plan.energy[stage].value(), plan.loading[stage].value(), plan.iterations);
    }
    text.iterations += fmt::format("{},{},-1,{},{},,{}\n", plan.id, plan.kind, plan.iteration_time.value(),
                                   plan.total_energy().value(), plan.iterations);
  }
  return text;
}

}  // namespace perseus::testing
