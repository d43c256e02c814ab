#include "command_line/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/formats/csv.h"
#include "io/report/format.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

std::string csv_cell(const json::value& value, std::string_view format, int digits) {
  if (value.is_null()) return "";
  if (const json::array* list = value.if_array()) {
    std::string text;
    for (const json::value& one : *list) text += (text.empty() ? "" : " ") + csv_cell(one, format, digits);
    return text;
  }
  if (!format.empty()) return fmt::format(fmt::runtime("{:" + std::string(format) + "}"), value.to_number<double>());
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
  std::vector<std::pair<std::string_view, std::string_view>> keys;  // and formats
  for (std::string_view rest = header; !rest.empty();) {
    const std::string_view column = rest.substr(0, rest.find(','));
    const std::string_view name = column.substr(0, column.find(':'));
    text += fmt::format("{}{}", keys.empty() ? "" : ",", name.substr(0, name.find('=')));
    keys.emplace_back(name.substr(name.find('=') + 1), column.substr(std::min(column.size(), name.size() + 1)));
    rest.remove_prefix(std::min(rest.size(), column.size() + 1));
  }
  text += '\n';
  for (const json::value& record : records) {
    for (const auto& [key, format] : keys) text += csv_cell(field_of(record, key), format, digits) + ",";
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

json::array Table::json() const {
  json::array all;
  for (const json::value& record : records) {
    json::object& visible = all.emplace_back(json::object()).get_object();
    for (const auto& [key, value] : record.get_object()) {
      if (std::ranges::find(not_in_json, std::string_view(key)) == not_in_json.end()) visible[key] = value;
    }
  }
  return all;
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
