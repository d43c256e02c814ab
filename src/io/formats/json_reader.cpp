#include "io/formats/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

namespace json = boost::json;
using json::error_code;

constexpr std::size_t kMaxDepth = 16;

/// Builds the values that Boost's parser reports, but converts doubles from their text and rejects a duplicate key.
class ExactValues {
 public:
  // Boost.JSON asks for these names.
  // NOLINTBEGIN(readability-identifier-naming)
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
  // NOLINTEND(readability-identifier-naming)

  explicit ExactValues(json::storage_ptr storage) : stack_() { stack_.reset(std::move(storage)); }
  json::value release() { return stack_.release(); }
  [[nodiscard]] const std::string& repeated_key() const { return repeated_key_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t count, error_code&) { return stack_.push_array(count), true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t count, error_code& error) {
    const auto first = keys_.end() - static_cast<std::ptrdiff_t>(count);
    std::sort(first, keys_.end());
    if (const auto twice = std::adjacent_find(first, keys_.end()); twice != keys_.end()) {
      repeated_key_ = twice->empty() ? "\"\"" : *twice;
      error = json::error::syntax;
      return false;
    }
    keys_.erase(first, keys_.end());
    return stack_.push_object(count), true;
  }
  bool on_string_part(json::string_view part, std::size_t, error_code&) { return stack_.push_chars(part), true; }
  bool on_string(json::string_view part, std::size_t, error_code&) { return stack_.push_string(part), true; }
  bool on_key_part(json::string_view part, std::size_t, error_code&) {
    key_.append(part.data(), part.size());
    return stack_.push_chars(part), true;
  }
  bool on_key(json::string_view part, std::size_t, error_code&) {
    key_.append(part.data(), part.size());
    keys_.push_back(std::move(key_));
    key_.clear();
    return stack_.push_key(part), true;
  }
  bool on_number_part(json::string_view part, error_code&) { return number_.append(part.data(), part.size()), true; }
  bool on_int64(std::int64_t value, json::string_view, error_code&) {
    number_.clear();
    return stack_.push_int64(value), true;
  }
  bool on_uint64(std::uint64_t value, json::string_view, error_code&) {
    number_.clear();
    return stack_.push_uint64(value), true;
  }
  bool on_double(double approximate, json::string_view part, error_code&) {
    number_.append(part.data(), part.size());
    // Out of range (1e999, 1e-999) from_chars gives no value: Boost's inf or 0 is as good.
    stack_.push_double(number_in<double>(number_).value_or(approximate));
    number_.clear();
    return true;
  }
  bool on_bool(bool value, error_code&) { return stack_.push_bool(value), true; }
  bool on_null(error_code&) { return stack_.push_null(), true; }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  json::value_stack stack_;
  std::string number_;
  std::string key_;                ///< the part of it read so far
  std::vector<std::string> keys_;  ///< of the open objects
  std::string repeated_key_;
};

std::string place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t line_start = before.rfind('\n');
  const std::size_t column = line_start == std::string_view::npos ? before.size() : before.size() - line_start - 1;
  return fmt::format("{}:{}", line, column + 1);
}

/// The value itself if it is small, else its kind.
std::string description_of(const json::value& value) {
  if (value.is_object()) return fmt::format("an object of {} members", value.get_object().size());
  if (value.is_array()) return fmt::format("an array of {} elements", value.get_array().size());
  if (value.is_double()) return fmt::format("{}", value.get_double());
  std::string text = json_text(value);
  if (text.size() > 64) text = valid_utf8(text.substr(0, 60)) + "...";
  return text;
}

std::optional<double> number_of(const json::value& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.is_double()  ? value.get_double()
                        : value.is_int64() ? static_cast<double>(value.get_int64())
                                           : static_cast<double>(value.get_uint64());
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

/// JSON has one kind of number: 12, 12.0 and 1.2e1 are equal.
std::optional<int> integer_of(const json::value& value) {
  const auto number = number_of(value);
  if (!number || *number != std::floor(*number)) return std::nullopt;
  if (*number < std::numeric_limits<int>::min() || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

/// "$.path[3]" of a value below `from`, itself at `path`; nothing: it is not there.
std::optional<std::string> path_to(const json::value& wanted, const json::value& from, const std::string& path) {
  if (&wanted == &from) return path;
  if (const json::array* const array = from.if_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      const json::value& element = (*array)[i];
      if (&element != &wanted && !element.is_structured()) continue;
      if (auto found = path_to(wanted, element, fmt::format("{}[{}]", path, i))) return found;
    }
  }
  if (const json::object* const object = from.if_object()) {
    for (const json::key_value_pair& member : *object) {
      if (&member.value() != &wanted && !member.value().is_structured()) continue;
      const std::string_view key(member.key().data(), member.key().size());
      if (auto found = path_to(wanted, member.value(), fmt::format("{}.{}", path, key.substr(0, 64)))) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

struct JsonContent {
  std::string name;
  json::monotonic_resource storage;
  json::value root;
};

JsonDocument::JsonDocument(std::unique_ptr<JsonContent> content) : content_(std::move(content)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonReader JsonDocument::root() const { return {content_->root, *content_}; }

Result<JsonDocument> parse_json(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: larger than the 256 MiB that are allowed", name)};
  }
  auto content = std::make_unique<JsonContent>();
  content->name = name;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::basic_parser<ExactValues> parser(options, json::storage_ptr(&content->storage));
  error_code error;
  std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  while (!error && used < text.size() && (text[used] == '\n' || text[used] == '\r' || text[used] == ' ')) ++used;
  if (!error && used < text.size()) error = json::error::extra_data;
  if (error) {
    const std::string place = place_of(text, used);
    if (const std::string& key = parser.handler().repeated_key(); !key.empty()) {
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}:{}: the key '{}' appears twice in one object", name, place, key.substr(0, 60))};
    }
    const std::string allowed =
        error == json::error::too_deep ? fmt::format("; at most {} levels are allowed", kMaxDepth) : std::string();
    return Error{ErrorCode::invalid_input, fmt::format("{}:{}: not JSON: {}{}", name, place, error.message(), allowed)};
  }
  content->root = parser.handler().release();
  return JsonDocument(std::move(content));
}

Error JsonReader::error(const std::string& expected) const {
  return {ErrorCode::invalid_input,
          fmt::format("{}: {}: found {}; expected {}", document_->name,
                      path_to(*value_, document_->root, "$").value_or("$"), description_of(*value_), expected)};
}

bool JsonReader::is_string() const { return value_->is_string(); }

bool JsonReader::is_null() const { return value_->is_null(); }

Result<std::string_view> JsonReader::string() const {
  if (!value_->is_string()) return error("a string");
  const json::string& text = value_->get_string();
  return std::string_view(text.data(), text.size());
}

Result<double> JsonReader::number() const {
  if (const auto number = number_of(*value_)) return *number;
  return error("a finite number");
}

Result<int> JsonReader::integer() const {
  if (const auto number = integer_of(*value_)) return *number;
  return error("an integer from -2147483648 to 2147483647");
}

Result<bool> JsonReader::boolean() const {
  if (value_->is_bool()) return value_->get_bool();
  return error("true or false");
}

template <class Number>
Result<std::vector<Number>> JsonReader::list_of(const char* what, Result<Number> (JsonReader::*read)() const) const {
  if (!value_->is_array()) return error(what);
  std::vector<Number> numbers;
  numbers.reserve(value_->get_array().size());
  for (const json::value& value : value_->get_array()) {
    const Result<Number> number = (with(value).*read)();
    if (!number) return number.error();
    numbers.push_back(*number);
  }
  return numbers;
}

Result<std::vector<double>> JsonReader::numbers() const { return list_of("an array of numbers", &JsonReader::number); }

Result<std::vector<int>> JsonReader::integers() const { return list_of("an array of integers", &JsonReader::integer); }

Status JsonReader::for_each(const std::function<Status(const JsonReader&)>& visit) const {
  if (!value_->is_array()) return error("an array");
  for (const json::value& element : value_->get_array()) {
    if (Status status = visit(with(element)); !status) return status;
  }
  return Ok{};
}

Status JsonReader::for_each_member(const std::function<Status(std::string_view, const JsonReader&)>& visit) const {
  if (!value_->is_object()) return error("an object");
  for (const json::key_value_pair& member : value_->get_object()) {
    const std::string_view key(member.key().data(), member.key().size());
    if (Status status = visit(key, with(member.value())); !status) return status;
  }
  return Ok{};
}

JsonFields::JsonFields(const JsonReader& object) : object_(object) {
  asked_.reserve(16);
  if (!object_.value_->is_object()) error_ = object_.error("an object");
}

std::optional<JsonReader> JsonFields::optional(std::string_view key) {
  asked_.push_back(key);
  if (error_) return std::nullopt;
  const json::value* value = object_.value_->get_object().if_contains({key.data(), key.size()});
  if (value == nullptr) return std::nullopt;
  return object_.with(*value);
}

JsonReader JsonFields::value(std::string_view key) {
  if (auto found = optional(key)) return *found;
  if (!error_) error_ = object_.error(fmt::format("a member \"{}\" in it", key));
  return object_;
}

template <class Value>
Value JsonFields::take(Result<Value> result) {
  if (error_) return {};
  if (result) return std::move(*result);
  error_ = result.error();
  return {};
}

std::string_view JsonFields::string(std::string_view key) { return take(value(key).string()); }
double JsonFields::number(std::string_view key) { return take(value(key).number()); }
int JsonFields::integer(std::string_view key) { return take(value(key).integer()); }
std::vector<double> JsonFields::numbers(std::string_view key) { return take(value(key).numbers()); }
std::vector<int> JsonFields::integers(std::string_view key) { return take(value(key).integers()); }

void JsonFields::reject_others() {
  if (error_) return;
  for (const json::key_value_pair& member : object_.value_->get_object()) {
    const std::string_view key(member.key().data(), member.key().size());
    if (std::ranges::find(asked_, key) != asked_.end()) continue;
    error_ = object_.with(member.value()).error(fmt::format("no such member; allowed: {}", fmt::join(asked_, ", ")));
    return;
  }
}

}  // namespace perseus::formats
