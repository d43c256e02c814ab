// What a timeline says of a training job: spans of computations, transfers and collectives.
//
// Shape:   spans in the order of their files. A span's thread is an index into `threads`. Step and microbatch are -1
//          where the timeline does not number them; `stage` is -1 where it follows from rank and chunk.
// Units:   seconds; starts on one clock for all files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::trace {

enum class SpanKind : std::uint8_t {
  forward,
  backward,
  input_gradient,
  weight_gradient,
  recompute,
  pure_backward,
  forward_send,
  forward_receive,
  backward_send,
  backward_receive,
  receive,           ///< begins within a computation, which waits for it before it computes
  parameter_gather,  ///< all-gather of parameters, among data-parallel ranks
  gradient_reduce,   ///< reduce-scatter or all-reduce of gradients, among data-parallel ranks
  embedding_reduce,  ///< among the ranks of a pipeline that have it
  other_reduce,      ///< of one rank, for example among its tensor-parallel group
  gradient_clip,     ///< among all ranks
  optimizer,
  garbage_collection,
  step,  ///< a whole step of one rank: says only which spans belong to it
};
inline constexpr int kNumSpanKinds = 19;

/// snake_case name, e.g. "forward_send".
std::string_view name_of(SpanKind kind);
/// All names, in the order of the kinds.
std::span<const std::string_view> span_kind_names();
std::optional<SpanKind> span_kind_named(std::string_view name);

/// The kinds that are instructions of schedules come first, in their order.
constexpr bool is_compute(SpanKind kind) { return kind <= SpanKind::pure_backward; }
constexpr bool is_transfer(SpanKind kind) { return kind >= SpanKind::forward_send && kind <= SpanKind::receive; }
constexpr bool is_collective(SpanKind kind) {
  return kind >= SpanKind::parameter_gather && kind <= SpanKind::optimizer;
}

struct Span {
  double start_s = 0;
  float duration_s = 0;
  float bytes = -1;  ///< of a transfer; -1: the timeline does not say
  std::int32_t step = -1;
  std::int32_t thread = 0;
  std::int16_t microbatch = -1;
  std::int16_t stage = -1;
  std::int8_t chunk = -1;
  SpanKind kind = SpanKind::forward;
  [[nodiscard]] double end_s() const { return start_s + duration_s; }
};
static_assert(sizeof(Span) == 32);  // hundreds of thousands are in memory

/// Where a thread of the timeline runs; -1: the timeline does not say.
struct ThreadPlace {
  int data = -1;    ///< data-parallel rank
  int rank = -1;    ///< of the pipeline
  int tensor = -1;  ///< tensor-parallel rank
  int global = -1;  ///< rank among all
  int file = 0;     ///< of TraceSpans::files
};

struct TraceSpans {
  std::vector<Span> spans;
  std::vector<ThreadPlace> threads;
  std::string names;         ///< of the mapping that was used
  long events = 0;           ///< in the files
  long other_events = 0;     ///< of no kind that the mapping names
  long unpaired_events = 0;  ///< ends without a begin, begins without an end
  std::vector<std::string> files;
  std::vector<std::string> gpus;  ///< names of GPUs in the files, each once
  int world_size = 0;             ///< 0: unknown
  int thinned = 1;                ///< one of that many steps was kept, to bound memory
  double read_s = 0;  ///< of spans without a step, those that began so long after their file's first were kept; 0: all
};

}  // namespace perseus::trace
