// The spans of a timeline by step, pipeline and rank.
//
// Method:  a thread without a place in the job gets it from its number among all ranks: pipeline-parallel ranks are
//          outermost, tensor-parallel ones innermost. What the timeline does not number follows from the order of each
//          rank. Steps: a computation that comes again begins the next, and so does a forward after its backward.
//          Microbatches count by kind. Chunks: a microbatch passes the stages of a rank in their order, and backward in
//          the reverse one.
// Output:  of several tensor-parallel ranks one, with the longest time of each computation.
// Errors:  invalid_input: ranks that the timeline and the degrees do not place; times that are no microseconds.
// Cost:    O(spans log spans).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "evaluation/what_if/traced_job.h"
#include "io/trace/span.h"

namespace perseus::what_if {

/// In the order of time.
struct RankSpans {
  std::vector<trace::Span> computing, communicating, pauses;
};
using SpansOfRanks = std::map<std::pair<int, int>, RankSpans>;  // by pipeline and rank

struct StepSpans {
  std::map<int, SpansOfRanks> steps;
  std::vector<trace::ThreadPlace> places;  ///< of the timeline's threads
  int tensor_parallel = 1;
  bool names_stages = false;   ///< or chunks, of some computation
  bool counts_chunks = false;  ///< chunks follow from the order of a microbatch
  bool all_in_one = false, guesses_steps = false, counts_microbatches = false;  ///< as in TracedJob
};

Result<StepSpans> sort_spans(const trace::TraceSpans& timeline, const JobDegrees& degrees);

}  // namespace perseus::what_if
