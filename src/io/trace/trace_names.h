// Which events of a recorder are which spans, and where rank, step, microbatch and chunk stand.
//
// Format, TOML; docs/traces.md shows it:
//
//   categories = ["gpu_user_annotation", "user_annotation"]  # a file's first that occurs counts; default: any
//
//   [places]                    # "pid", "tid", "args.NAME" or "file": the rank that the file names, or its number;
//   data = "pid"                # of data, rank, tensor, global, step, microbatch, chunk, stage,
//                               # bytes (of a transfer)
//
//   thread = "PP rank {rank}, TP rank {tensor}, {}"  # a pattern of thread names
//
//   [events]                    # kinds of spans, and patterns of the names of their events
//   forward = ["forward-compute", "Forward {microbatch}"]
//
// A pattern matches a whole name; {microbatch} and the other names of places match digits, {} matches anything.
// Errors:  "file:line: [table] key: VALUE; allowed: ...".
// Cost:    O(patterns) per new name.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/trace/span.h"

namespace perseus::trace {

enum class SpanField : std::uint8_t { data, rank, tensor, global, step, microbatch, chunk, stage, bytes };
inline constexpr int kNumFields = 9;
using FieldValues = std::array<int, kNumFields>;  ///< -1: not there
inline constexpr FieldValues kNoFields{-1, -1, -1, -1, -1, -1, -1, -1, -1};

/// Names of the places, in the order of the fields.
std::span<const std::string_view> field_names();

struct TraceNames {
  std::string name;
  std::vector<std::string> categories;
  std::array<std::string, kNumFields> places;  ///< empty: nowhere
  std::string thread;
  std::vector<std::pair<std::string, SpanKind>> events;
};

/// The ready mappings: "shared" (ByteDance's what-if timelines), "torch" (record_function names of
/// torch.distributed.pipelining) and "megatron" (timers of Megatron-LM).
const std::vector<TraceNames>& ready_names();
/// Their text, for `perseus trace --names NAME --print-names`; empty for an unknown name.
std::string_view ready_names_text(std::string_view name);

Result<TraceNames> parse_trace_names(std::string_view text, const std::string& file);

/// Sets the fields that `pattern` captures in `name`; false: it does not match.
bool matches(std::string_view pattern, std::string_view name, FieldValues& fields);

}  // namespace perseus::trace
