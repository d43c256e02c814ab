// Cuts the text of a Chrome trace into its events, piece by piece, without holding more than one event.
//
// Input:   the text in pieces of any size: a list of events, or an object with the list `traceEvents`.
// Output:  each event's text, and that of each other object directly in the outer one, such as `distributedInfo`, or in
//          a list of it (`deviceProperties`); kPadding readable bytes follow it, as the JSON parser needs. The list may
//          lack its end, as recorders that were stopped leave it.
// Errors:  invalid_input: text that begins with neither `[` nor `{`, an event that does not end or is larger than
//          kMostEventBytes; what is inside an event is left to the parser.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus::trace {

class EventSplitter {
 public:
  static constexpr std::size_t kPadding = 64;
  static constexpr std::size_t kMostEventBytes = std::size_t{16} << 20U;
  /// `key`: of a member of the outer object; empty: an event.
  using Visit = std::function<Status(std::string_view key, std::string_view object)>;

  Status feed(std::string_view piece, const Visit& visit);
  /// Call after the last piece.
  [[nodiscard]] Status finish() const;

 private:
  /// Reads one character outside of strings.
  Status read(char c, std::size_t at, const Visit& visit);

  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::string text_;               ///< not yet cut, then kPadding spaces
  std::size_t scanned_ = 0;        ///< of text_
  std::size_t object_ = kNowhere;  ///< where the object that is being read begins
  std::size_t string_ = kNowhere;  ///< where the string that is being read begins
  bool escaped_ = false;
  int depth_ = 0;
  int object_depth_ = 0;
  bool began_ = false;    ///< the list or object that the text is
  bool is_list_ = false;  ///< the text is a list of events
  bool in_list_ = false;  ///< in a list directly in the outer object
  std::string key_;       ///< last string directly in the outer object
};

}  // namespace perseus::trace
