// Reads a CSV table: a header line that names the columns, then one row per record; fields are found by column.
//
//   struct MemoryColumn { enum : std::size_t { stage, weights }; };        // indices into the columns
//   constexpr std::array<CsvColumn, 2> kMemoryColumns{{{"stage", true}, {"weights_gib", true}}};
//   CsvTable table(text, "memory.csv");
//   if (Status header = table.read_header(kMemoryColumns, OtherColumns::refused); !header) return header.error();
//   ... table.next(), then table.number(MemoryColumn::weights, kGibibytes) ...
//
// Input:   text as csv.h describes it; columns in any order; blank lines are skipped. A format lists the columns that
//          it knows.
// Output:  the fields of a row. A field is "" if the file has no such column or the row ends before it.
// Errors:  invalid_input, "name:line: column: 'value'; allowed: what". Of the header: missing columns, two columns of
//          one meaning, and unknown columns where they are refused. Of a row: more fields than the header has columns,
//          and fields that are not allowed; the first is kept until take_error().
// Cost:    one pass; O(1) per field.
// Threads: one table per thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/formats/csv.h"
#include "io/formats/number.h"

namespace perseus::formats {

struct CsvColumn {
  std::string_view name;  ///< in the header line and in messages
  bool needed = false;
  std::string_view also = {};       ///< another name of the column
  std::string_view otherwise = {};  ///< column that is read instead if the file has neither name
};

enum class OtherColumns { ignored, refused };

/// The numbers from 0 that a column may contain.
struct CsvRange {
  bool zero_allowed;
  double most;
  std::string_view allowed;  ///< the same for messages
};
inline constexpr CsvRange kTimes{false, kMaxTime_s, "a number > 0 and <= 1e6 (seconds)"};
/// Of a computation at a clock, unless counters cannot tell it from nothing: that clock would save everything.
inline constexpr CsvRange kSpentEnergies{false, kMaxEnergy_j, "a number > 0 and <= 1e15 (joules)"};
inline constexpr CsvRange kEnergies{true, kMaxEnergy_j, "a number >= 0 and <= 1e15 (joules)"};

class CsvTable {
 public:
  /// `name` identifies the file in messages.
  CsvTable(std::string_view text, std::string name) : csv_(text, name), name_(std::move(name)) {}

  /// Call once, before next(). `known` must outlive the table; the other functions' `column` is an index into it.
  Status read_header(std::span<const CsvColumn> known, OtherColumns others);
  /// Reads the next row that is not blank; false at the end of the text.
  Result<bool> next();
  /// Calls visit() for each further row, until one fails.
  template <class Visit>
  Status for_each_row(Visit visit) {
    for (Result<bool> more = next();; more = next()) {
      if (!more) return more.error();
      if (!*more) return Ok{};
      if (Status row = visit(); !row) return row;
    }
  }

  /// True if the file has the column.
  [[nodiscard]] bool has(std::size_t column) const { return at_[column] >= 0; }
  [[nodiscard]] std::string_view field(std::size_t column) const;
  /// An integer, also in the form 1410.0 (as data frames write it). After an error: `least`.
  int integer(std::size_t column, int least, int most);
  /// After an error: range.most.
  double number(std::size_t column, const CsvRange& range);

  /// Keeps the error that this row's field is not `allowed`, unless there is one already.
  void fail(std::size_t column, std::string_view allowed);
  /// The first error of rows since the last call.
  [[nodiscard]] std::optional<Error> take_error() { return std::exchange(error_, std::nullopt); }
  /// An Error at this row, or at the header before the first row.
  [[nodiscard]] Error error_here(const std::string& message) const { return csv_.error(message); }
  /// An Error for a file without rows.
  [[nodiscard]] Error no_rows(std::string_view needed) const;

 private:
  CsvReader csv_;
  std::string name_;
  std::span<const CsvColumn> known_;
  std::vector<int> at_;  ///< field index per known column; -1: the file has no such column
  std::size_t width_ = 0;
  std::optional<Error> error_;
};

}  // namespace perseus::formats
