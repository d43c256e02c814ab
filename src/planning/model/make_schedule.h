// The pipeline schedules that have a name: 1f1b, gpipe, interleaved-1f1b, zero-bubble and others.
//
// Input:   a name and a shape: ranks, microbatches, stages per rank.
// Output:  a valid Schedule.
// Errors:  usage: an unknown name (lists the known ones), a shape that the schedule does not allow.
// Cost:    O(actions).
// Threads: pure functions.
// Source:  docs/schedules.md shows each as a picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planning/model/schedule.h"

namespace perseus::model {

/// Input of a schedule generator. `chunks` is the number of stages per rank (V), 1 unless interleaved.
struct ScheduleShape {
  int num_ranks = 1;
  int num_microbatches = 1;
  int chunks = 1;
};

/// The names that make_schedule() knows.
const std::vector<std::string>& schedule_names();
/// The name in schedule_names() of a schedule: its name in any case, or the name of PyTorch's class for it
/// (Schedule1F1B). All functions below accept such names.
std::optional<std::string> schedule_named(std::string_view name);
/// Stages per rank that the named schedule fixes (2 for zbv and dualpipev), or 0 if the caller chooses.
int chunks_fixed_by(const std::string& schedule_name);
/// Stages per rank where neither the schedule nor the caller says: 2 for interleaved-1f1b, which is 1f1b with 1.
int usual_chunks(const std::string& schedule_name);
/// The named schedule for that shape; an Error names the shape's limits (interleaved: microbatches a multiple of its
/// rounds, see microbatches_per_round()).
Result<Schedule> make_schedule(const std::string& name, const ScheduleShape& shape);

}  // namespace perseus::model
