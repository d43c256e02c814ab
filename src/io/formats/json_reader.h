// JSON with exact numbers, and errors that give the location.
//
// Input:   a JSON text (RFC 8259) of at most kMaxFileBytes, nested at most 16 deep, without duplicate keys in an
//          object.
// Output:  JsonDocument owns the values; JsonReader and JsonFields point into it. Doubles are correctly rounded
//          (Boost's own conversion may be off by one unit in the last place, so that written numbers would not read
//          back).
// Errors:  "name:line:column: ..." for text that is not JSON, "name: $.path[3]: found ...; expected ..." for values
//          that do not fit a format; numbers must be finite.
// Cost:    one parse; an error searches the document for the path of its value.
// Threads: any, read-only.
#pragma once

#include <boost/json/fwd.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace perseus::formats {

/// A document's text, parsed.
struct JsonContent;

/// A value of a document.
class JsonReader {
 public:
  JsonReader(const boost::json::value& value, const JsonContent& document) : value_(&value), document_(&document) {}

  [[nodiscard]] Result<std::string_view> string() const;
  [[nodiscard]] Result<double> number() const;
  [[nodiscard]] Result<int> integer() const;
  [[nodiscard]] Result<bool> boolean() const;
  [[nodiscard]] Result<std::vector<double>> numbers() const;
  [[nodiscard]] Result<std::vector<int>> integers() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_null() const;
  /// Visits an array's elements until one fails.
  [[nodiscard]] Status for_each(const std::function<Status(const JsonReader&)>& visit) const;
  /// Visits an object's members until one fails.
  [[nodiscard]] Status for_each_member(const std::function<Status(std::string_view, const JsonReader&)>& visit) const;
  /// "name: $.path: found <this value>; expected <expected>"
  [[nodiscard]] Error error(const std::string& expected) const;

 private:
  friend class JsonFields;
  [[nodiscard]] JsonReader with(const boost::json::value& value) const { return {value, *document_}; }
  template <class Number>
  Result<std::vector<Number>> list_of(const char* what, Result<Number> (JsonReader::*read)() const) const;

  const boost::json::value* value_;
  const JsonContent* document_;
};

/// The members of one object. After an error each getter returns a neutral value, so that a reader gets all it needs
/// and then checks error() once.
class JsonFields {
 public:
  explicit JsonFields(const JsonReader& object);

  /// The member, or an error that it is missing (and a reader of the object instead).
  JsonReader value(std::string_view key);
  /// The member, or nothing.
  std::optional<JsonReader> optional(std::string_view key);
  std::string_view string(std::string_view key);
  double number(std::string_view key);
  int integer(std::string_view key);
  std::vector<double> numbers(std::string_view key);
  std::vector<int> integers(std::string_view key);
  /// An error for the first member that no getter has read.
  void reject_others();

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  template <class Value>
  Value take(Result<Value> result);

  JsonReader object_;
  std::vector<std::string_view> asked_;
  std::optional<Error> error_;
};

class JsonDocument {
 public:
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();
  [[nodiscard]] JsonReader root() const;

  friend Result<JsonDocument> parse_json(std::string_view text, const std::string& name);

 private:
  explicit JsonDocument(std::unique_ptr<JsonContent> content);
  std::unique_ptr<JsonContent> content_;
};

Result<JsonDocument> parse_json(std::string_view text, const std::string& name);

}  // namespace perseus::formats
