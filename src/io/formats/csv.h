// Comma-separated values: one record after the other, as views into the text.
//
// Input:   text with LF, CRLF or CR line ends, an optional byte order mark, optional quotes ("" inside quotes is one
//          quote).
// Output:  the fields of one record, spaces around unquoted fields trimmed. A field with doubled quotes is copied;
//          all others point into the text.
// Errors:  a quote that never ends, or text after a closing quote (name:line).
// Threads: one reader per thread.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace perseus::formats {

/// `text` as one field that CsvReader reads back: in quotes if it must be.
std::string csv_field(const std::string& text);

class CsvReader {
 public:
  CsvReader(std::string_view text, std::string name);

  /// Reads the next record into fields(); false at the end of the text.
  Result<bool> next();
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  /// True for a blank line: all fields are empty.
  [[nodiscard]] bool blank() const;
  /// Line on which the record starts, from 1.
  [[nodiscard]] int line() const { return line_; }
  /// An Error at this record: "name:line: message".
  [[nodiscard]] Error error(const std::string& message) const;

 private:
  Result<std::string_view> quoted_field();
  std::string_view plain_field();

  std::string_view rest_;
  std::string name_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;
  int line_ = 0;
  int next_line_ = 1;
};

}  // namespace perseus::formats
