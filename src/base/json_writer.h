// Writes JSON: the only code that quotes strings, prints numbers and sets commas.
//
// A struct is written through the description of its members, a function beside it that the reader uses too
// (io/formats/described_json.h); an object or list that has no struct, through lambdas:
//
//   void describe(auto& f, formats::MaybeConst<Degrees> auto& s) {
//     f.always("dp", s.dp);                                   // f("tp", s.tp): only where it is not 0
//   }
//
//   json_text(degrees);                                                       // {"dp":8}
//   json_object([&](JsonWriter& f) {
//     f.always("names", JsonList{jobs, [](const Job& job) { return job.name; }});
//   });
//
// Input:   any bytes in strings; numbers, strings, optionals, quantities, ranges, maps with string keys, pairs and
//          tuples (as lists), JsonList, JsonLines, JsonObject, JsonRaw, described structs, and types with a function
//          `append_json_form(std::string&, const T&)` beside them.
// Output:  appended to a string, without spaces, on one line without JsonLines. Numbers are the shortest text that
//          reads back the same, as people write them (83.64, 1e+20); numbers that are not finite become null. Strings
//          may also stand inside <script>: no "<", no line separators, no control characters; bytes that are not UTF-8
//          become U+FFFD.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "base/units.h"

namespace perseus {

/// Text that is JSON already.
struct JsonRaw {
  std::string_view text;
};
/// A list of what `value_of` makes of each element.
template <class Range, class ValueOf>
struct JsonList {
  const Range& range;
  ValueOf value_of;
};
template <class Range, class ValueOf>
JsonList(const Range&, ValueOf) -> JsonList<Range, ValueOf>;
/// Such a list with an element a line.
template <class Range, class ValueOf>
struct JsonLines {
  const Range& range;
  ValueOf value_of;
};
template <class Range, class ValueOf>
JsonLines(const Range&, ValueOf) -> JsonLines<Range, ValueOf>;
/// An object whose members `members` writes, a function of a JsonWriter&.
template <class Members>
struct JsonObject {
  Members members;
};
template <class Members>
JsonObject(Members) -> JsonObject<Members>;

/// The number nearest to `value` with that many significant digits, or digits after the point.
double with_digits(double value, int digits);
double with_decimals(double value, int decimals);

void append_json_string(std::string& out, std::string_view text);
void append_json_number(std::string& out, double value);
template <class T>
void append_json(std::string& out, const T& value);

enum class JsonLayout { compact, lines };

/// The members of one object. With `lines`, for files that people edit, each on a line of its own.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out, JsonLayout layout = JsonLayout::compact)
      : out_(&out), in_lines_(layout == JsonLayout::lines) {
    out += '{';
  }
  /// Leaves out a member at its default: 0, false, empty.
  template <class T>
  void operator()(std::string_view key, const T& value) {
    if (!is_default(value)) always(key, value);
  }
  template <class T>
  void always(std::string_view key, const T& value) {
    next_member();
    append_json_string(*out_, key);
    *out_ += in_lines_ ? ": " : ":";
    append_json(*out_, value);
  }
  /// The members of an object that is text already.
  void members_of(std::string_view object) {
    const std::string_view members = object.substr(1, object.size() - 2);
    if (members.empty()) return;
    next_member();
    *out_ += members;
  }
  void end() { *out_ += in_lines_ ? "\n}" : "}"; }

 private:
  void next_member() {
    if (!first_) *out_ += ',';
    if (in_lines_) *out_ += "\n  ";
    first_ = false;
  }
  template <class T>
  static bool is_default(const T& value) {
    if constexpr (requires { value.has_value(); }) {
      return !value.has_value();
    } else if constexpr (requires { value.empty(); }) {
      return value.empty();
    } else if constexpr (std::equality_comparable<T>) {
      return value == T();
    } else {
      return false;
    }
  }

  std::string* out_;
  bool first_ = true, in_lines_;
};

namespace json_detail {

template <class Range, class Append>
void append_list(std::string& out, const Range& range, const Append& append, std::string_view separator = ",") {
  out += '[';
  bool first = true;
  for (auto&& element : range) {
    if (!first) out += separator;
    first = false;
    append(element);
  }
  out += ']';
}

template <class T>
void append_form(std::string& out, const std::optional<T>& value) {
  value ? append_json(out, *value) : append_json(out, JsonRaw{"null"});
}
template <class Tag>
void append_form(std::string& out, const Quantity<Tag>& value) {
  append_json_number(out, value.value());
}
inline void append_form(std::string& out, Megahertz value) { append_json(out, value.value()); }
inline void append_form(std::string& out, const JsonRaw& value) { out += value.text; }
template <class Range, class ValueOf>
void append_form(std::string& out, const JsonList<Range, ValueOf>& list) {
  append_list(out, list.range, [&](const auto& element) { append_json(out, list.value_of(element)); });
}
template <class Range, class ValueOf>
void append_form(std::string& out, const JsonLines<Range, ValueOf>& list) {
  append_list(
      out, list.range, [&](const auto& element) { append_json(out, list.value_of(element)); }, ",\n");
}
template <class Members>
void append_form(std::string& out, const JsonObject<Members>& object) {
  JsonWriter members(out);
  object.members(members);
  members.end();
}
template <class... Parts>
void append_form(std::string& out, const std::tuple<Parts...>& parts) {
  char before = '[';
  std::apply([&](const auto&... part) { ((out += before, before = ',', append_json(out, part)), ...); }, parts);
  out += ']';
}
template <class A, class B>
void append_form(std::string& out, const std::pair<A, B>& parts) {
  append_form(out, std::tie(parts.first, parts.second));
}

}  // namespace json_detail

template <class T>
void append_json(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    append_json_number(out, value);
  } else if constexpr (std::is_integral_v<T>) {
    out += std::to_string(value);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    append_json_string(out, value);
  } else if constexpr (requires { json_detail::append_form(out, value); }) {
    json_detail::append_form(out, value);
  } else if constexpr (requires { append_json_form(out, value); }) {
    append_json_form(out, value);
  } else if constexpr (requires { typename T::mapped_type; }) {
    append_json(out, JsonObject{[&](JsonWriter& f) {
                  for (const auto& [key, element] : value) f.always(key, element);
                }});
  } else if constexpr (requires {
                         typename T::value_type;
                         value.begin();
                       }) {
    using Element = typename T::value_type;  // of std::vector<bool>, not its proxies
    json_detail::append_list(out, value, [&](const Element& element) { append_json(out, element); });
  } else {
    append_json(out, JsonObject{[&](JsonWriter& f) { describe(f, value); }});
  }
}

template <class T>
std::string json_text(const T& value) {
  std::string out;
  append_json(out, value);
  return out;
}
template <class Members>
std::string json_object(const Members& members, JsonLayout layout = JsonLayout::compact) {
  std::string out;
  JsonWriter object(out, layout);
  members(object);
  object.end();
  return out;
}

}  // namespace perseus
