// The server's time on this host's monotonic clock, from answers that say when they were sent.
//
// Problem: falls are sent ahead as times since 1970, and the clock of a host may be wrong by seconds or minutes.
// Model:   the server sent an answer at `server_s` by its clock, `held_s` after it had got the request. That was after
//          the request was sent, plus `held_s`, and before the answer was read: two bounds of the offset between the
//          clocks, as far apart as the round trip. Bounds of several answers are intersected. The two clocks may
//          drift apart by kDrift, so older bounds widen. An answer whose bounds exclude the earlier ones replaces them:
//          the server's clock was set, or another server answers.
// Output:  earliest(): the monotonic time before which the server's time is certainly below `at_s`. It is never later
//          than the true time, and earlier by the shortest round trip at most, as long as the drift is as assumed.
// Errors:  an answer whose times contradict each other is ignored.
// Source:  docs/decisions/0054-falls-are-sent-ahead.md.
#pragma once

#include <optional>

namespace perseus::client {

/// When the server sent an answer, by itself.
struct AnswerTime {
  double server_s = 0;  ///< since 1970
  double held_s = 0;    ///< since it had got the request
};

/// The server has answered a request for a plan. Times are monotonic.
struct Answered {
  double sent_by_s = 0;                 ///< it sent the answer no later than that
  double asked_s = 0, read_s = 0;       ///< the request was sent after that, the answer read before that
  std::optional<AnswerTime> sent = {};  ///< nothing: the server does not say it
};

class ServerClock {
 public:
  static constexpr double kDrift = 2e-4;  ///< quartz and the server's corrections of its rate

  void answered(const Answered& answer);
  /// Nothing: no answer has said its time.
  [[nodiscard]] std::optional<double> earliest(double at_s) const;

 private:
  struct Bounds {
    double from_s = 0, to_s = 0;  ///< of monotonic less server's time
    double at_s = 0;              ///< monotonic
  };
  std::optional<Bounds> bounds_;
};

}  // namespace perseus::client
