// Profiles with the shape of the pipeline that they belong to: named by operators, or learned from jobs.
//
// Threads: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "planning/model/transfer_latency.h"

namespace perseus::jobs {

/// Properties of a pipeline that a profile leaves open. Missing values come from the ranks' own measurements where
/// they exist (latencies, blocking power), otherwise from the defaults of `perseus plan` (blocking power: a fifth of
/// the highest).
struct PipelineShape {
  std::string schedule = "1f1b";  ///< one of schedule_names()
  std::string action_table;       ///< PyTorch's CSV instead of `schedule` and `microbatches`, if not empty
  int microbatches = 0;
  int chunks = 0;  ///< stages per rank; 0: as the schedule fixes, else profile stages / pp degree
  std::optional<Watts> blocking_power;
  std::optional<model::TransferLatency> transfer_latency;
  bool blocking_transfers = false;
  bool serial_transfers = false;         ///< a link carries one transfer per direction at a time
  std::optional<double> split_backward;  ///< see planning/model/derived_instructions.h
  std::optional<Seconds> switch_latency;
  std::optional<Seconds> min_dwell;
  bool operator==(const PipelineShape&) const = default;
};

/// A profile that jobs can name (`perseus profile push`).
struct NamedProfile {
  std::string name;         ///< 1..128 of [A-Za-z0-9._+-], not starting with a dot
  std::string profile_csv;  ///< as io/formats/profile_csv.h reads it
  PipelineShape shape;
  std::string accelerator;  ///< for people: "NVIDIA A100-SXM4-40GB"; may be empty
};
struct StoredProfile {
  std::string name;
  int stages = 0;
  int ranks = 0;                         ///< per pipeline
  std::vector<std::string> doubts = {};  ///< see planning/model/profile_doubts.h
};

/// A stored learned profile: its owner, its origin, and its input.
struct LearnedProfile {
  std::string id;  ///< the key without its prefix; not stored
  std::string input, team, model, job;
  double learned_at_s = 0;
  int confirmed = 0;            ///< jobs whose iterations agreed with it
  std::string doubted_by = {};  ///< a job whose iterations disagreed: the profile is not tried again
  std::string doubted_because = {};
};

}  // namespace perseus::jobs
