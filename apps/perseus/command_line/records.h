// A table of a result: each column stands once, and JSON, CSV and text follow from it.
//
// Input:   rows of one kind, in order; a column's value is a number, a quantity, a text, JSON, or an optional of these.
// Output:  table_of(): the records, JSON objects; an empty optional has no key.
//          csv_of(): the keys of `header` in its order; numbers with that many significant digits (0: the shortest
//          text that reads back the same); a key that is absent or null is an empty field; a list is separated by
//          spaces. "method=name": the column method shows the key name; "in_time.point": the member of an object;
//          "error_pct:.4f": a number in that format. Table::csv() without a header: all columns, their keys likewise.
//          text_rows(): a column per TextColumn; "-" for a key that is absent or null.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/report/report.h"
#include "io/report/table.h"

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

using Cell = std::optional<boost::json::value>;
template <class T>
Cell cell_of(const T& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? cell_of(*value) : std::nullopt;
  } else if constexpr (requires { value.value(); }) {
    return boost::json::value(value.value());
  } else {
    return boost::json::value(value);
  }
}

/// What a column shows of a row: a member, or a function.
template <class Row>
struct CellOf {
  template <class F>
  CellOf(F function) : value([=](const Row& row) { return cell_of(std::invoke(function, row)); }) {}
  std::function<Cell(const Row&)> value;
};

template <class Row>
struct Column {
  /// `k`: csv, or "-" and csv: not in JSON. (g++ 12 ends by itself on default values of members here.)
  Column(std::string_view k, CellOf<Row> c, std::string t = {}, CellFormat f = {}, double u = 1)
      : csv(k.substr(k.starts_with('-') ? 1 : 0)),
        cell(std::move(c)),
        title(std::move(t)),
        format(f),
        unit(u),
        in_json(!k.starts_with('-')) {}
  [[nodiscard]] std::string_view key() const { return csv.substr(0, csv.find(':')); }
  std::string_view csv;  ///< the key, and perhaps its format in CSV
  CellOf<Row> cell;
  std::string title;  ///< "": not in text
  CellFormat format;
  double unit;   ///< as TextColumn::unit
  bool in_json;  ///< false: in text and CSV alone
};

struct Table {
  boost::json::array records;
  std::vector<TextColumn> columns;
  std::vector<std::string_view> not_in_json;
  std::string all_columns;
  [[nodiscard]] boost::json::array json() const;
  [[nodiscard]] report::TextRows text() const { return text_rows(records, columns); }
  [[nodiscard]] std::string csv(std::string_view header = {}, int digits = 0) const {
    return csv_of(header.empty() ? all_columns : header, records, digits);
  }
};

template <class Row>
Table table_of(const auto& rows, const std::vector<Column<Row>>& columns) {
  Table table;
  for (const Column<Row>& c : columns) {
    table.all_columns.append(table.all_columns.empty() ? "" : ",").append(c.csv);
    if (!c.title.empty()) table.columns.push_back({c.title, c.key(), c.format, c.unit});
    if (!c.in_json) table.not_in_json.push_back(c.key());
  }
  for (const auto& row : rows) {
    boost::json::object& record = table.records.emplace_back(boost::json::object()).get_object();
    for (const Column<Row>& c : columns) {
      if (Cell cell = c.cell.value(row)) record[c.key()] = *std::move(cell);
    }
  }
  return table;
}

/// Rows where several lists have a value each.
template <class T>
std::vector<int> indices_of(const std::vector<T>& list) {
  std::vector<int> indices(list.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

/// {"schedule": "1f1b", ...}
boost::json::object object_of(const std::vector<report::ReportFact>& facts);
/// "schedule: 1f1b\n..."
std::string lines_of(const std::vector<report::ReportFact>& facts);

}  // namespace perseus::cli
