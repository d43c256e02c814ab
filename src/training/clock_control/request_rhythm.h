// Predicts the next clock change from the rhythm of previous training steps.
//
// Waking a sleeping helper costs the training thread up to 50 us, a device's write into memory wakes no process, and
// a helper that never sleeps costs a core. Training repeats itself, so the helper sleeps until shortly before a
// change is due, and then polls with short naps. A gap that differs by more than an eighth, or another successor (a
// hiccup), is not learned; two in a row are a new rhythm. The helper sleeps only through a rhythm without surprises:
// one change that came during a sleep makes the helper poll often for the next 32.
//
// Input:   changes, each with its number in its step (not all numbers occur) and the time at which it was due (ns,
//          monotonic).
// Output:  the window in which the next one is expected, learned per pair of successive numbers; where another change
//          follows than before (a new plan), from the times of both since their steps began. Empty until that part of
//          a step was observed once, and where hiccups are more frequent than regular gaps.
// Cost:    an array access; 40 bytes per number of a step, for at most 65536.
// Source:  docs/decisions/0020, 0030.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "training/clock_control/mailbox.h"

namespace perseus::clock_control {

/// Confidence of an expectation.
enum class RhythmTrust : std::uint8_t {
  seen_once,
  confirmed,  ///< the last change came inside its window
  calm        ///< ... and no change before it came before its window
};

struct RequestWindow {
  std::int64_t opens_ns = 0, due_ns = 0, closes_ns = 0;  ///< all 0: nothing is expected
  RhythmTrust trust = RhythmTrust::seen_once;
};

class RequestRhythm {
 public:
  /// `number`: 0 for the first change of a step, then increasing. It was due after `not_before_ns`, the previous
  /// look.
  void requested(std::uint32_t number, std::int64_t at_ns, std::int64_t not_before_ns);
  void requested(std::uint32_t number, std::int64_t at_ns) { requested(number, at_ns, at_ns); }
  /// `number` of the next change, if it is known.
  [[nodiscard]] RequestWindow next(std::optional<std::uint32_t> number = {}) const;

 private:
  /// From a change to the one after it.
  struct Gap {
    std::uint32_t to = 0;                        ///< number of the later change
    std::int64_t mean_ns = 0, deviation_ns = 0;  ///< mean of absolute differences; both 0: not seen yet
    std::int8_t trust = 0;                       ///< 0 to 3, like a branch predictor: from 2 on the successor is
                                                 ///< expected
    bool surprised = false;                      ///< the last one was a hiccup
    void learn(std::uint32_t number, std::int64_t gap_ns);
    /// Relative to the previous request.
    [[nodiscard]] RequestWindow window() const;
  };
  struct Place {
    Gap gap;
    std::int64_t since_step_ns = -1;  ///< from the step's first change; -1: not seen yet
  };
  std::vector<Place> places_;       ///< by number
  std::int64_t step_began_ns_ = 0;  ///< 0: not seen
  std::uint32_t number_ = 0;        ///< of the last change
  std::int64_t at_ns_ = 0;          ///< 0: there was none
  int calm_ = 0;                    ///< number of consecutive changes that did not come before their window
};

/// How the helper waits until a change is due.
struct Rest {
  std::int64_t limit_ns = -1;  ///< maximum duration; -1: without limit
  HelperRest how = HelperRest::asleep;
};
/// Call when no change waits for the device. `due_ns`: time until the helper has other work; -1: none.
Rest rest_until(RequestWindow expected, std::int64_t now_ns, std::int64_t due_ns);
/// Call when a change waits for the device, which wakes no process. `last_ns`: when the change before was due.
Rest doze_until(RequestWindow expected, std::int64_t last_ns, std::int64_t now_ns, std::int64_t due_ns);

}  // namespace perseus::clock_control
