#include "io/formats/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace perseus::formats {
namespace {

constexpr std::size_t kShownCharacters = 64;

std::vector<std::string_view> needed_names(std::span<const CsvColumn> known) {
  std::vector<std::string_view> names;
  for (const CsvColumn& column : known) {
    if (column.needed) names.push_back(column.name);
  }
  return names;
}

/// `name`, or `name (or otherwise)`.
std::string with_alternative(const CsvColumn& column) {
  return column.otherwise.empty() ? std::string(column.name) : fmt::format("{} (or {})", column.name, column.otherwise);
}

/// What a spreadsheet or an editor did to a file whose header has no known columns; empty: nothing known.
std::string header_hint(const std::vector<std::string_view>& fields, std::span<const CsvColumn> known) {
  const std::string_view first = fields.front();
  if (first.starts_with("\xff\xfe") || first.starts_with("\xfe\xff") || first.find('\0') != std::string_view::npos)
    return "the file is UTF-16; save it as UTF-8";
  if (first.starts_with("sep=")) return "remove this line: fields are separated by commas";
  for (const char separator : {';', '\t', '|'}) {
    if (fields.size() == 1 && first.find(separator) != std::string_view::npos)
      return fmt::format("fields are separated by {}; allowed: commas, and points in numbers",
                         separator == '\t' ? std::string("tabs") : fmt::format("'{}'", separator));
  }
  for (const std::string_view field : fields) {
    for (const CsvColumn& column : known) {
      const std::string_view start = field.substr(0, column.name.size());
      const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
      if (field != column.name && std::ranges::equal(start, column.name, same))
        return fmt::format("'{}' is not '{}': names are in lower case and without units", field, column.name);
    }
  }
  return {};
}

}  // namespace

Status CsvTable::read_header(std::span<const CsvColumn> known, OtherColumns others) {
  known_ = known;
  at_.assign(known.size(), -1);
  const Result<bool> more = next();
  if (!more) return more.error();
  if (!*more) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: empty; needed: a header line with {}", name_, fmt::join(needed_names(known), ", "))};
  }
  const std::vector<std::string_view>& fields = csv_.fields();
  width_ = fields.size();
  const auto find = [&](std::string_view name) {
    const auto found = std::ranges::find(fields, name);
    return name.empty() || found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
  };
  for (int i = 0; i < static_cast<int>(fields.size()); ++i) {
    const auto named = std::ranges::find_if(
        known, [&](const CsvColumn& column) { return fields[i] == column.name || fields[i] == column.also; });
    if (fields[i].empty() || named == known.end()) {
      if (others == OtherColumns::ignored) continue;
      std::vector<std::string_view> names;
      for (const CsvColumn& column : known) names.push_back(column.name);
      return error_here(
          fmt::format("column: '{}'; allowed: {}", fields[i].substr(0, kShownCharacters), fmt::join(names, ", ")));
    }
    int& at = at_[named - known.begin()];
    if (at >= 0) return error_here(fmt::format("columns: '{}' and '{}'; allowed: one of them", fields[at], fields[i]));
    at = i;
  }
  std::vector<std::string> missing;
  for (std::size_t column = 0; column < known.size(); ++column) {
    if (!has(column)) at_[column] = find(known[column].otherwise);
    if (known[column].needed && !has(column)) missing.push_back(with_alternative(known[column]));
  }
  if (missing.empty()) return Ok{};
  const std::string hint = header_hint(fields, known);
  return error_here(fmt::format("missing columns: {}; found: {}{}{}", fmt::join(missing, ", "), fmt::join(fields, ", "),
                                hint.empty() ? "" : ": ", hint));
}

Result<bool> CsvTable::next() {
  do {
    Result<bool> more = csv_.next();
    if (!more || !*more) return more;
  } while (csv_.blank());
  // A row with more fields than the header has, as decimal commas make them, would be read wrongly.
  const std::vector<std::string_view>& fields = csv_.fields();
  for (std::size_t i = width_; width_ > 0 && i < fields.size() && !error_; ++i) {
    if (fields[i].empty()) continue;
    error_ = error_here(fmt::format("{} fields; allowed: {}, as in the header (decimals take a point, not a comma)",
                                    fields.size(), width_));
  }
  return true;
}

std::string_view CsvTable::field(std::size_t column) const {
  const std::vector<std::string_view>& fields = csv_.fields();
  return has(column) && at_[column] < static_cast<int>(fields.size()) ? fields[at_[column]] : std::string_view();
}

int CsvTable::integer(std::size_t column, int least, int most) {
  const auto value = number_in<double>(field(column));
  if (value && *value >= least && *value <= most && *value == std::floor(*value)) return static_cast<int>(*value);
  fail(column, fmt::format("an integer from {} to {}", least, most));
  return least;
}

double CsvTable::number(std::size_t column, const CsvRange& range) {
  const auto value = number_in<double>(field(column));
  if (value && *value <= range.most && (*value > 0 || (range.zero_allowed && *value == 0))) return *value;
  fail(column, range.allowed);
  return range.most;
}

void CsvTable::fail(std::size_t column, std::string_view allowed) {
  if (error_) return;
  const std::string_view value = field(column), name = known_[column].name;
  error_ = error_here(
      value.empty()
          ? fmt::format("{}: is missing; allowed: {}", name, allowed)
          : fmt::format("{}: '{}'; allowed: {}{}", name, value.substr(0, kShownCharacters), allowed,
                        value.find("\xc2\xa0") == std::string_view::npos ? "" : ", without a non-breaking space"));
}

Error CsvTable::no_rows(std::string_view needed) const {
  return {ErrorCode::invalid_input, fmt::format("{}: a header but no rows; needed: {}", name_, needed)};
}

}  // namespace perseus::formats
