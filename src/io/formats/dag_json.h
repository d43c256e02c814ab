// Reads a generic DAG of computations from JSON: any job of tasks on machines with selectable clocks.
//
// A machine runs its computations one at a time, in the given `order`, or in the order in which they are listed.
// Format, documented in docs/formats.md:
//
//   {"blocking_power_w": 30,
//    "machines": [{"name": "a", "accelerators": 1, "order": ["read", "sort"]}, "b"],
//    "types": [{"name": "sort", "options": [{"frequency_mhz": 2400, "time_s": 1.5, "energy_j": 90}]}],
//    "computations": [{"id": "read", "type": "sort", "machine": "a"}],
//    "dependencies": [{"before": "read", "after": "sort", "latency_s": 0.1}]}
//
// Output:  a valid ComputationDag (rank = machine), its computations in topological order, and the names of both.
//          Options are sorted by clock, highest first.
// Errors:  "name: JSON path: value; what is allowed", including unknown keys (a misspelled key must not be ignored),
//          and cycles by the ids on them. Limits: depth 16, 65535 options per type, 256 MiB.
// Cost:    linear except for sorting.
// Source:  paper section 4.4 (other DAGs of computations).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"

namespace perseus::formats {

struct NamedDag {
  model::ComputationDag dag;
  std::vector<std::string> computation_ids;  ///< as numbered in dag
  std::vector<std::string> machine_names;    ///< per rank
};

Result<NamedDag> parse_dag_json(std::string_view text, const std::string& name);
Result<NamedDag> read_dag_json(const std::string& path);

}  // namespace perseus::formats
