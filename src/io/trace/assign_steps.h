// Gives spans without a step that of the step that they begin in.
//
// Input:   spans, among them those of kind `step`, and the places of their threads. A rank's steps are its own; of a
//          rank without, those with its global number count.
// Output:  steps without a number count in the order of time; beside numbered ones, and within others, they are parts
//          of them. Spans of kind `step` are dropped, and those that begin between steps.
// Cost:    O(spans log steps).
#pragma once

#include "io/trace/span.h"

namespace perseus::trace {

void assign_steps(TraceSpans& timeline);

}  // namespace perseus::trace
