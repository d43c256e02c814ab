#include "command_line/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/formats/csv.h"
#include "io/report/format.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

std::string csv_cell(const json::value& value, int digits) {
  if (value.is_null()) return "";
  if (value.is_string()) return formats::csv_field(std::string(value.get_string()));
  if (value.is_bool()) return value.get_bool() ? "1" : "0";
  if (!value.is_double()) return fmt::format("{}", value.to_number<std::int64_t>());
  return digits == 0 ? fmt::format("{}", value.get_double()) : fmt::format("{:.{}g}", value.get_double(), digits);
}

std::string text_cell(const json::value& value, const TextColumn& column) {
  if (value.is_null()) return "-";
  if (value.is_string()) return std::string(value.get_string());
  const auto& [format, show] = column.format;
  if (!value.is_double() && format == nullptr && show == nullptr)
    return fmt::format("{}", value.to_number<std::int64_t>());
  double number = value.to_number<double>();
  number = column.unit < 1 ? number * (1 / column.unit) : number / column.unit;
  return show != nullptr ? show(number) : fmt::format(fmt::runtime(format == nullptr ? "{}" : format), number);
}

json::value field_of(const json::value& record, std::string_view path) {
  const json::object* object = record.if_object();
  const std::size_t dot = path.find('.');
  const json::value* field = object == nullptr ? nullptr : object->if_contains(path.substr(0, dot));
  if (field == nullptr) return {};
  return dot == std::string_view::npos ? *field : field_of(*field, path.substr(dot + 1));
}

}  // namespace

std::string csv_of(std::string_view header, const json::array& records, int digits) {
  std::string text;
  std::vector<std::string_view> keys;
  for (std::string_view rest = header; !rest.empty();) {
    const std::string_view column = rest.substr(0, rest.find(','));
    text += fmt::format("{}{}", keys.empty() ? "" : ",", column.substr(0, column.find('=')));
    keys.push_back(column.substr(column.find('=') + 1));
    rest.remove_prefix(std::min(rest.size(), column.size() + 1));
  }
  text += '\n';
  for (const json::value& record : records) {
    for (const std::string_view key : keys) text += csv_cell(field_of(record, key), digits) + ",";
    text.back() = '\n';
  }
  return text;
}

std::string seconds_cell(double time_s) { return report::text_of(Seconds(time_s)); }
std::string joules_cell(double energy_j) { return report::text_of(Joules(energy_j)); }

report::TextRows text_rows(const json::array& records, const std::vector<TextColumn>& columns) {
  report::TextRows rows;
  for (const TextColumn& column : columns) rows.header.push_back(column.title);
  for (const json::value& record : records) {
    std::vector<std::string>& cells = rows.rows.emplace_back();
    for (const TextColumn& column : columns) cells.push_back(text_cell(field_of(record, column.key), column));
  }
  return rows;
}

json::object object_of(const std::vector<report::ReportFact>& facts) {
  json::object object;
  for (const report::ReportFact& fact : facts) object[fact.name] = fact.value;
  return object;
}

std::string lines_of(const std::vector<report::ReportFact>& facts) {
  std::string text;
  for (const report::ReportFact& fact : facts) text += fmt::format("{}: {}\n", fact.name, fact.value);
  return text;
}

}  // namespace perseus::cli
