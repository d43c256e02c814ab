// One description of a struct's members, used to write it as JSON and to read it back.
//
// Problem: a writer and a reader that are written separately drift apart.
// Input:   for a struct S, a function `template <class F, class S> void describe(F& f, S& s)` found by
//          argument-dependent lookup that calls f("member", s.member) for each member; constness follows the
//          direction.
// Output:  an object of the members that differ from their default (JsonWriter), and the struct again with absent
//          members at their default (read_json). Numbers are the shortest text that reads back the same.
// Errors:  those of io/formats/json_reader.h, including unknown members.
// Cost:    linear.
// Threads: pure functions.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/units.h"
#include "io/formats/json_reader.h"
#include "io/formats/transfer_latency_text.h"
#include "io/report/escape.h"

namespace perseus::jobs {

// ---- Writing

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(&out) { out += '{'; }
  template <class T>
  void operator()(std::string_view key, const T& value) {
    if constexpr (std::equality_comparable<T>) {
      if (value == T()) return;
    }
    always(key, value);
  }
  template <class T>
  void always(std::string_view key, const T& value) {
    if (!first_) *out_ += ',';
    first_ = false;
    ((*out_ += '"') += key) += "\":";
    write(value);
  }
  void end() { *out_ += '}'; }

  template <class T>
  void write(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      *out_ += value ? "true" : "false";
    } else if constexpr (std::is_arithmetic_v<T>) {
      fmt::format_to(std::back_inserter(*out_), "{}", value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      *out_ += report::json_string(value);
    } else if constexpr (std::is_same_v<T, model::TransferLatency>) {
      *out_ += formats::format_transfer_latency(value);
    } else {
      write_compound(value);
    }
  }

 private:
  template <class T>
  void write_compound(const std::optional<T>& value) {
    if (value) {
      write(*value);
    } else {
      *out_ += "null";
    }
  }
  template <class Tag>
  void write_compound(const Quantity<Tag>& value) {
    write(value.value());
  }
  template <class T>
  void write_compound(const std::vector<T>& values) {
    *out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) *out_ += ',';
      write(static_cast<const T&>(values[i]));
    }
    *out_ += ']';
  }
  template <class T>
  void write_compound(const std::map<std::string, T>& values) {
    JsonWriter object(*out_);
    for (const auto& [key, value] : values) {
      if (!object.first_) *out_ += ',';
      object.first_ = false;
      *out_ += report::json_string(key);
      *out_ += ':';
      write(value);
    }
    object.end();
  }
  template <class T>
  void write_compound(const T& value) {
    JsonWriter object(*out_);
    describe(object, value);
    object.end();
  }

  std::string* out_;
  bool first_ = true;
};

template <class T>
std::string json_text(const T& value) {
  std::string out;
  JsonWriter object(out);
  describe(object, value);
  object.end();
  return out;
}

// ---- Reading

template <class T>
Status read_json(const formats::JsonReader& json, T& value);

class JsonMembers {
 public:
  explicit JsonMembers(const formats::JsonReader& object) : fields_(object) {}
  template <class T>
  void operator()(std::string_view key, T& value) {
    const auto member = fields_.optional(key);
    if (!member || error_) return;
    if (Status read = read_json(*member, value); !read) error_ = read.error();
  }
  template <class T>
  void always(std::string_view key, T& value) {
    const formats::JsonReader member = fields_.value(key);
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
  formats::JsonFields fields_;
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
Status read_compound(const formats::JsonReader& json, std::optional<T>& value) {
  T inner{};
  if (Status read = read_json(json, inner); !read) return read;
  value = std::move(inner);
  return Ok{};
}
template <class Tag>
Status read_compound(const formats::JsonReader& json, Quantity<Tag>& value) {
  const auto number = json.number();
  if (!number) return number.error();
  value = Quantity<Tag>(*number);
  return Ok{};
}
template <class T>
Status read_compound(const formats::JsonReader& json, std::vector<T>& values) {
  values.clear();
  return json.for_each([&](const formats::JsonReader& element) -> Status {
    T value{};
    if (Status read = read_json(element, value); !read) return read;
    values.push_back(std::move(value));
    return Ok{};
  });
}
template <class T>
Status read_compound(const formats::JsonReader& json, std::map<std::string, T>& values) {
  values.clear();
  return json.for_each_member([&](std::string_view key, const formats::JsonReader& element) -> Status {
    return read_json(element, values[std::string(key)]);
  });
}
template <class T>
Status read_compound(const formats::JsonReader& json, T& value) {
  JsonMembers members(json);
  describe(members, value);
  return members.end();
}

}  // namespace json_detail

template <class T>
Status read_json(const formats::JsonReader& json, T& value) {
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
  } else if constexpr (std::is_same_v<T, model::TransferLatency>) {
    return json_detail::take(formats::read_transfer_latency(json), value);
  } else {
    return json_detail::read_compound(json, value);
  }
}

/// Reads a struct written by json_text(); `name` identifies the text in messages.
template <class T>
Result<T> parse_json_as(std::string_view text, const std::string& name) {
  const auto document = formats::parse_json(text, name);
  if (!document) return document.error();
  T value{};
  if (Status read = read_json(document->root(), value); !read) return read.error();
  return value;
}

}  // namespace perseus::jobs
