// Reads a struct from JSON through the description of its members, the function that base/json_writer.h writes it by.
//
// Problem: a writer and a reader that are written separately drift apart.
// Input:   for a struct S, a function `void describe(auto& f, MaybeConst<S> auto& s)` found by argument-dependent
//          lookup that calls f("member", s.member) for each member, f.always(...) for required ones.
// Output:  the struct, with absent members at their default.
// Errors:  those of io/formats/json_reader.h, including unknown members and missing required ones.
// Source:  docs/decisions/0047.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/units.h"
#include "io/formats/json_reader.h"

namespace perseus::formats {

/// One of these types, const where it is written.
template <class S, class... Types>
concept MaybeConst = (std::is_same_v<std::remove_const_t<S>, Types> || ...);

template <class T>
Status read_json(const JsonReader& json, T& value);

class JsonMembers {
 public:
  explicit JsonMembers(const JsonReader& object) : fields_(object) {}
  template <class T>
  void operator()(std::string_view key, T&& value) {
    const auto member = fields_.optional(key);
    if (!member || error_) return;
    if (Status read = read_json(*member, value); !read) error_ = read.error();
  }
  template <class T>
  void always(std::string_view key, T& value) {
    const JsonReader member = fields_.value(key);
    if (fields_.error() || error_) return;
    if (Status read = read_json(member, value); !read) error_ = read.error();
  }
  [[nodiscard]] Status end() {
    if (error_) return *error_;
    fields_.reject_others();
    if (fields_.error()) return *fields_.error();
    return Ok{};
  }

 private:
  JsonFields fields_;
  std::optional<Error> error_;
};

namespace json_detail {

template <class T>
Status take(Result<T> read, auto& value) {
  if (!read) return read.error();
  value = std::move(*read);
  return Ok{};
}

template <class T>
Status read_compound(const JsonReader& json, std::optional<T>& value) {
  T inner{};
  if (Status read = read_json(json, inner); !read) return read;
  value = std::move(inner);
  return Ok{};
}
template <class Tag>
Status read_compound(const JsonReader& json, Quantity<Tag>& value) {
  const auto number = json.number();
  if (!number) return number.error();
  value = Quantity<Tag>(*number);
  return Ok{};
}
template <class T>
Status read_compound(const JsonReader& json, std::vector<T>& values) {
  values.clear();
  return json.for_each([&](const JsonReader& element) -> Status {
    T value{};
    if (Status read = read_json(element, value); !read) return read;
    values.push_back(std::move(value));
    return Ok{};
  });
}
template <class T>
Status read_compound(const JsonReader& json, std::map<std::string, T>& values) {
  values.clear();
  return json.for_each_member([&](std::string_view key, const JsonReader& element) -> Status {
    return read_json(element, values[std::string(key)]);
  });
}
template <class T>
Status read_compound(const JsonReader& json, T& value) {
  JsonMembers members(json);
  describe(members, value);
  return members.end();
}

}  // namespace json_detail

template <class T>
Status read_json(const JsonReader& json, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return json_detail::take(json.boolean(), value);
  } else if constexpr (std::is_same_v<T, int>) {
    return json_detail::take(json.integer(), value);
  } else if constexpr (std::is_same_v<T, double>) {
    return json_detail::take(json.number(), value);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    const auto number = json.number();
    if (!number) return number.error();
    constexpr double most = 9007199254740992.0;  // 2^53: above it, doubles skip integers
    if (*number != std::floor(*number) || std::abs(*number) > most) {
      return json.error("an integer from -9007199254740992 to 9007199254740992");
    }
    value = static_cast<std::int64_t>(*number);
    return Ok{};
  } else if constexpr (std::is_same_v<T, std::string>) {
    const auto text = json.string();
    if (!text) return text.error();
    value = std::string(*text);
    return Ok{};
  } else if constexpr (std::is_same_v<T, std::vector<int>>) {
    return json_detail::take(json.integers(), value);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return json_detail::take(json.numbers(), value);
  } else if constexpr (requires { read_json_form(json, value); }) {
    return read_json_form(json, value);
  } else {
    return json_detail::read_compound(json, value);
  }
}

/// Reads what json_text() wrote; `name` identifies the text in messages.
template <class T>
Result<T> parse_json_as(std::string_view text, const std::string& name) {
  const auto document = parse_json(text, name);
  if (!document) return document.error();
  T value{};
  if (Status read = read_json(document->root(), value); !read) return read.error();
  return value;
}

}  // namespace perseus::formats
