// One event of a Chrome trace: the members that matter, from its JSON.
//
// Input:   an event's text, followed by EventSplitter::kPadding readable bytes; the arguments that a mapping reads.
// Output:  views into that text or into the parser, until its next call. An event of a phase that is no interval or
//          name of a thread is read up to its phase.
// Errors:  text that is not JSON; the event's name is set as far as it was read. A time or place that is no number is
//          the event's `wrong`: of events that no mapping names, recorders write anything.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/trace/trace_names.h"

namespace perseus::trace {

struct TraceEvent {
  std::string_view phase, name, category, pid, tid;
  std::optional<double> ts, dur;  ///< microseconds; nothing: none, or wrong
  FieldValues args = kNoFields;
  int iteration = -1, step = -1;  ///< args of these names
  std::string_view thread_name;   ///< args.name
  /// A member whose value is no number.
  struct Wrong {
    std::string_view member, value;
    const char* expected = nullptr;  ///< nullptr: all are right
  } wrong;

  /// An interval, its begin or end, or the name of a thread.
  [[nodiscard]] bool matters() const { return phase.size() != 1 || phase.find_first_of("XBEM") == 0; }
};

class TraceEventParser {
 public:
  void read_arguments_of(const TraceNames& names);

  /// Empty: it has none, or is no JSON.
  std::string_view name_of(std::string_view text);
  Status parse(std::string_view text, TraceEvent& event);
  /// The members of an object beside the events; nothing: it is no JSON.
  simdjson::error_code parse(std::string_view text, simdjson::ondemand::document& document);

 private:
  simdjson::error_code read_args(simdjson::ondemand::value value, TraceEvent& event) const;

  simdjson::ondemand::parser parser_;
  std::vector<std::pair<std::string, std::size_t>> args_;  ///< "args.NAME" and its field
};

/// -1: null or -1, as recorders write "none". Nothing: neither that nor a whole number from 0.
std::optional<int> whole_number(std::string_view text);

}  // namespace perseus::trace
