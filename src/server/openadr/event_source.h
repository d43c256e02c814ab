// Where events come from: a utility's server, or a test.
//
// Errors:  unavailable: the list is unknown; an earlier one stays valid. invalid_input, of event(): it cannot be read.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "server/openadr/event_json.h"

namespace perseus::openadr {

struct ListedEvents {
  EventList list;
  std::map<std::string, PayloadUnits> program_units;  ///< by program
};

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

}  // namespace perseus::openadr
