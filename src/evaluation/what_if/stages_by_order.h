// The stages of computations of a timeline that numbers neither stages nor microbatches.
//
// Method:  if the kinds of all ranks, in their order, fit no schedule of one stage a rank, but one of several, the
//          computations are that schedule's.
// Cost:    O(chunks * named schedules * spans).
#pragma once

#include <optional>

#include "evaluation/what_if/step_spans.h"
#include "planning/model/schedule.h"

namespace perseus::what_if {

/// Sets stages and microbatches of computations in whole steps, and returns their schedule. Nothing: no schedule or
/// several fit, or one of one stage a rank does; then nothing changes. `microbatches`: most computations of a kind that
/// a rank has in a step.
std::optional<model::Schedule> find_stages(std::map<int, SpansOfRanks>& steps, int pipelines, int ranks,
                                           int microbatches);

/// The kinds of computations and their instructions have the same order.
inline model::Instruction instruction_of(trace::SpanKind kind) { return static_cast<model::Instruction>(kind); }
static_assert(static_cast<int>(trace::SpanKind::pure_backward) == static_cast<int>(model::Instruction::pure_backward));

}  // namespace perseus::what_if
