// Reads a generic DAG of computations from JSON: any job of tasks on machines whose clocks can be chosen.
//
// Format, documented in ../docs/formats.md: {"blocking_power_w": 30, "machines": [{"name": "a", "accelerators": 1,
// "order": ["read", "sort"]}, "b"], "types": [{"name": "sort", "options": [{"frequency_mhz": 2400, "time_s": 1.5,
// "energy_j": 90}]}], "computations": [{"id": "read", "type": "sort", "machine": "a"}], "dependencies": [{"before":
// "read", "after": "sort", "latency_s": 0.1}]} A machine runs its computations one at a time, in the given `order`,
// or else in the order in which they are listed.
//
// Output:  a valid ComputationDag (rank = machine), its computations in topological order, and the names of both.
//          Options are sorted by clock, highest first.
// Errors:  "name: JSON path: value; what is allowed", unknown keys among them (a misspelt one must not be ignored),
//          and cycles by the ids on them. Limits: depth 16, 65535 options a type, 256 MiB.
// Cost:    linear but for sorting.
// Threads: pure functions.
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
