// Polls a utility's events and sends the watt limits that follow from them whenever they change.
//
// Input:   an event source, a receiver of steps, the time; call step() again after the seconds that it returns.
// Output:  the first schedule after the first complete list, then every change. While the source does not answer, the
//          known events go on; a schedule that was not received, or that the receiver has no longer, is sent again.
//          Where a limit of an event cannot be read, what was known when this was first seen holds in its place
//          (watt_steps.h): the event's own limits, else those that the receiver has, else those of the other events.
// Errors:  are lines for the log, each once until it changes: the source or the receiver does not answer, payloads that
//          are not followed, events that cannot be read. The latter are a part of what is sent, too.
// Cost:    one list per poll; one call per event that is absent from it, at most kMostConfirmed.
// Threads: one; blocks in the source and the receiver.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/openadr/event_json.h"
#include "server/openadr/event_memory.h"

namespace perseus::openadr {

struct ListedEvents {
  EventList list;
  std::map<std::string, PayloadUnits> program_units;  ///< by program
};

/// Where events come from: a utility's server, or a test. Errors: unavailable: the list is unknown; an earlier one
/// stays valid. invalid_input, of event(): it cannot be read.
class EventSource {
 public:
  EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  virtual ~EventSource() = default;
  /// All events that concern this client: complete, or an error.
  virtual Result<ListedEvents> events() = 0;
  /// One event; nullopt: there is none with that id.
  virtual Result<std::optional<GridEvent>> event(const std::string& id) = 0;
  /// After an error: how long the server asks to wait before the next call; 0: it does not say.
  [[nodiscard]] virtual double asked_wait_s() const { return 0; }
};

/// What the receiver gets.
struct SentLimits {
  std::vector<WattStep> steps;
  std::string unread;  ///< sentence on the events of which a limit cannot be read; empty: there are none
};

struct FollowerOptions {
  FollowSettings settings;
  std::string seed;                                 ///< of random shifts: names this client
  double poll_s = 45;                               ///< on average; each wait is up to a third shorter or longer
  double first_retry_s = 5, longest_retry_s = 300;  ///< also of what the source asks for
  std::string sent_word = "sent";                   ///< begins the log's line for a schedule that send() took
};

/// The receiver of the limits, and the process that follows the events.
class FollowerHost {
 public:
  virtual Status send(const SentLimits& limits) = 0;
  /// What the receiver has; called after each poll without a change, and when a limit cannot be read.
  virtual Result<SentLimits> received() = 0;
  /// Called with the known events and the units of programs after each poll, failed ones too, once the limits have been
  /// sent.
  virtual void polled(std::span<const SeenEvent> events, const std::map<std::string, PayloadUnits>& program_units,
                      double now_s) = 0;
  virtual void log(const std::string& line) = 0;
  virtual double random() = 0;  ///< 0 to 1

 protected:
  ~FollowerHost() = default;
};

struct FollowerParts {
  EventSource* source = nullptr;
  FollowerHost* host = nullptr;
  const Clock* wall = nullptr;       ///< of the events' times
  const Clock* unstepped = nullptr;  ///< of polls and retries
};

class EventFollower {
 public:
  static constexpr std::size_t kMostConfirmed = 50;  ///< events per poll

  EventFollower(FollowerOptions options, FollowerParts parts);
  /// Polls and sends what is due; returns the seconds until the next call.
  double step();
  /// The next step() will poll.
  [[nodiscard]] bool polls_now() const { return next_poll_s_ <= parts_.unstepped->now_s(); }
  /// The schedule as it was last received; empty before the first.
  [[nodiscard]] const std::vector<WattStep>& sent() const { return sent_.steps; }
  /// The sentence that was last sent on events of which a limit cannot be read.
  [[nodiscard]] const std::string& unread() const { return sent_.unread; }
  /// The last poll and the last transmission succeeded.
  [[nodiscard]] bool is_current() const { return poll_failures_ == 0 && polled_ && send_failures_ == 0; }

 private:
  Status poll(double now_s);
  void send_changes(double now_s);
  Result<FollowedSchedule> schedule(const std::vector<SeenEvent>& events, double now_s);
  [[nodiscard]] FollowedSchedule schedule_of(std::span<const SeenEvent> events, double now_s) const;
  Result<std::vector<WattStep>> known_before(const std::string& id, const std::vector<WattStep>& others, double now_s);
  void log_unread(const std::vector<UnreadEvent>& unread);
  void log_once(const std::string& key, const std::string& text);
  void log_state(std::string& last, const std::string& state);
  [[nodiscard]] double retry_after_s(int failures) const;

  FollowerOptions options_;
  FollowerParts parts_;
  EventMemory memory_;
  std::map<std::string, PayloadUnits> program_units_;
  KnownLimits known_;                              ///< of events of which a limit is not known now
  std::map<std::string, SeenEvent> known_events_;  ///< as they were when all their limits were known
  std::map<std::string, std::string> unread_;      ///< sentences by event
  SentLimits sent_;
  bool polled_ = false, was_sent_ = false;
  int poll_failures_ = 0, send_failures_ = 0;
  double next_poll_s_ = 0, next_send_s_ = 0;  ///< by the unstepped clock
  std::set<std::string> logged_;
  std::string poll_state_, send_state_;
};

/// "900000 W from now, 600000 W from 2026-03-14T12:00:00Z, no limit from ...": the first few steps.
std::string schedule_text(const std::vector<WattStep>& steps);

}  // namespace perseus::openadr
