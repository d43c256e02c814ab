// The event streams over all jobs, which share one text.
//
// Problem: a notice in 5,000 jobs makes 15,000 events; sending them to 200 streams must not cost the request 3
//          million steps.
// Input:   events as text; streams.
// Output:  every stream gets all later events in order; events of 20 ms, or 48 KiB of them, form one text that all
//          streams share.
// Errors:  none.
// Cost:    per event a copy of its text, whatever the number of streams; per text a pointer per stream.
// Threads: io thread.
// Source:  docs/decisions/0034.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "io/http/http_server.h"

namespace perseus::views {

class EventStreams {
 public:
  using Id = std::uint64_t;

  Id add(http::Responder responder);
  void remove(Id id) { streams_.erase(id); }
  [[nodiscard]] bool empty() const { return streams_.empty(); }

  void take(std::string_view event, double now_s);
  [[nodiscard]] std::optional<double> next_wake_s() const { return due_s_; }
  /// Sends the collected events.
  void send();

 private:
  std::map<Id, http::Responder> streams_;
  Id last_ = 0;
  std::string text_;
  std::optional<double> due_s_;
};

}  // namespace perseus::views
