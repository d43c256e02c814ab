#include "io/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/split.h"

namespace perseus::formats {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos && trimmed(text).size() == text.size()) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

CsvReader::CsvReader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
}

Error CsvReader::error(const std::string& message) const {
  return {ErrorCode::invalid_input, fmt::format("{}:{}: {}", name_, std::max(line_, 1), message)};
}

bool CsvReader::blank() const {
  return std::ranges::all_of(fields_, [](std::string_view field) { return field.empty(); });
}

std::string_view CsvReader::plain_field() {
  const std::size_t end = std::min(rest_.find_first_of(",\r\n"), rest_.size());
  const std::string_view field = trimmed(rest_.substr(0, end));
  rest_.remove_prefix(end);
  return field;
}

Result<std::string_view> CsvReader::quoted_field() {
  const std::string_view from = rest_.substr(1);
  bool has_doubled = false;
  std::size_t end = 0;
  for (;;) {
    end = from.find('"', end);
    if (end == std::string_view::npos) return error("a quote that never ends");
    if (end + 1 >= from.size() || from[end + 1] != '"') break;
    has_doubled = true;
    end += 2;
  }
  std::string_view field = from.substr(0, end);
  next_line_ += static_cast<int>(std::ranges::count(field, '\n'));
  if (has_doubled) {
    std::string& copy = unescaped_.emplace_back();
    for (std::size_t i = 0; i < field.size(); ++i) {
      copy += field[i];
      if (field[i] == '"') ++i;
    }
    field = copy;
  }
  rest_ = from.substr(end + 1);
  if (!plain_field().empty()) return error("text after a closing quote; must be a comma or the end of the line");
  return field;
}

Result<bool> CsvReader::next() {
  fields_.clear();
  unescaped_.clear();
  if (rest_.empty()) return false;
  line_ = next_line_;
  for (;;) {
    const std::size_t start = rest_.find_first_not_of(" \t");
    if (start != std::string_view::npos && rest_[start] == '"') {
      rest_.remove_prefix(start);
      auto field = quoted_field();
      if (!field) return field.error();
      fields_.push_back(*field);
    } else {
      fields_.push_back(plain_field());
    }
    if (rest_.empty()) return true;
    const char separator = rest_.front();
    rest_.remove_prefix(1);
    if (separator == ',') continue;
    if (separator == '\r' && rest_.starts_with('\n')) rest_.remove_prefix(1);
    ++next_line_;
    return true;
  }
}

}  // namespace perseus::formats
