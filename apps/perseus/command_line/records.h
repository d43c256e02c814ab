// The records of a result, JSON objects, and what follows from them: CSV and tables of text.
//
// Input:   objects of one kind, in order.
// Output:  csv_of(): the keys of `header` in its order; numbers with that many significant digits (0: the shortest
//          text that reads back the same); a key that is absent or null is an empty field. "method=name": the column
//          method shows the key name; "in_time.point": the member of an object.
//          text_rows(): a column per TextColumn; "-" for a key that is absent or null.
// Errors:  none.
// Cost:    O(cells).
// Threads: pure functions.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/report/comparison_text.h"
#include "io/report/report.h"

namespace perseus::cli {

std::string csv_of(std::string_view header, const boost::json::array& records, int digits = 0);

/// How a number is shown: a format of fmt, or a function.
struct CellFormat {
  CellFormat() = default;
  CellFormat(const char* text) : format(text) {}
  CellFormat(std::string (*function)(double)) : show(function) {}
  const char* format = nullptr;
  std::string (*show)(double) = nullptr;
};
std::string seconds_cell(double time_s);  ///< as report::text_of(Seconds)
std::string joules_cell(double energy_j);

struct TextColumn {
  std::string title;
  std::string_view key;
  CellFormat format = {};
  double unit = 1;  ///< that the format shows: 1000 for kW of watts, 0.01 for percent of a share
};
report::TextRows text_rows(const boost::json::array& records, const std::vector<TextColumn>& columns);

/// {"schedule": "1f1b", ...}
boost::json::object object_of(const std::vector<report::ReportFact>& facts);
/// "schedule: 1f1b\n..."
std::string lines_of(const std::vector<report::ReportFact>& facts);

}  // namespace perseus::cli
