// The states of a job, and which events each state allows.
//
// Output:  next_state(): the state after an event, or nothing if the event is not allowed.
// Errors:  none.
// Cost:    O(1).
// Threads: pure functions.
// Source:  docs/decisions/0008.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "server/jobs/event.h"

namespace perseus::jobs {

enum class JobState : unsigned char {
  none,            ///< before its first event
  registered,      ///< no profile yet
  profiling,       ///< profiling windows are being run and measured
  characterizing,  ///< a frontier is being computed; an older plan may be in force
  deployed,        ///< a plan is in force
  failed,          ///< characterization failed: maximum clock, or the older plan
  finished,
  expired,
};
inline constexpr std::size_t kNumJobStates = 8;
std::string_view name_of(JobState state);

/// Index of an event's type in EventBody.
template <class T, std::size_t kind = 0>
constexpr std::size_t kind_of_type() {
  if constexpr (std::is_same_v<std::variant_alternative_t<kind, EventBody>, T>) {
    return kind;
  } else {
    return kind_of_type<T, kind + 1>();
  }
}

/// The state after an event of that kind (its index in EventBody); nothing if the event is not allowed there.
std::optional<JobState> next_state(JobState state, std::size_t kind);
/// Requests from outside, in contrast to events that follow from them or from time.
bool is_request(std::size_t kind);

}  // namespace perseus::jobs
