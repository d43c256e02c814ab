// Reads timelines of a training job: Chrome traces and Perfetto JSON, plain or gzipped, in bounded memory.
//
// Input:   the files of one job, one or one per rank; a mapping of names, or none: the ready one that knows the first
//          event. Events are `X`, or `B` and `E` of one thread, in microseconds; `M` names threads; others are counted.
// Output:  the spans of the events that the mapping names. Spans without a step get that of the rank's step that they
//          begin in; a rank's steps without numbers count in the order of time. With more than kMostSpans spans, whole
//          steps are dropped until there are fewer. An end without a begin, or a begin without an end, is counted: its
//          step lacks it.
// Errors:  "file: event N (NAME): KEY VALUE; expected ...": text that is not JSON, times that are missing, negative or
//          not finite; an Error too where no event has a name that the mapping knows, and where a place of a given
//          mapping never occurs.
// Cost:    linear, some hundred MB/s; memory: kMostSpans spans and one event.
// Threads: pure but for the files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/trace/span.h"
#include "io/trace/trace_names.h"

namespace perseus::trace {

inline constexpr std::size_t kMostSpans = 400'000;

Result<TraceSpans> read_trace(const std::vector<std::string>& files, const std::optional<TraceNames>& names);

/// The same from texts in memory, each with its name.
Result<TraceSpans> parse_trace(const std::vector<std::pair<std::string, std::string>>& texts,
                               const std::optional<TraceNames>& names, std::size_t most_spans = kMostSpans);

}  // namespace perseus::trace
