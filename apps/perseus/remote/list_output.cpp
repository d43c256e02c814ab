#include "remote/list_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cmath>
#include <compare>

#include "base/clock.h"
#include "base/terminal_text.h"
#include "base/utf8.h"
#include "command_line/interrupt.h"
#include "command_line/terminal_size.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/csv.h"
#include "io/report/table.h"
#include "remote/answer_members.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr double kBetweenDrawings_s = 2;
constexpr std::size_t kLeastText = 12;  ///< columns to which texts are cut
constexpr std::size_t kShortId = 12;    ///< characters of an id in a table, if they tell the rows apart

using CellKind = ListColumn::Kind;

const json::value* member_of(const json::value& row, const std::string& name) {
  if (const auto* object = row.if_object()) return object->if_contains(name);
  return &row;
}

std::string age_text(double s) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  const char* sign = s < 0 ? "in " : "";
  const double length = std::abs(s);
  if (length < 2 * minute) return fmt::format("{}{:.0f} s", sign, length);
  if (length < 2 * hour) return fmt::format("{}{:.0f} min", sign, std::floor(length / minute));
  if (length < 2 * day) return fmt::format("{}{:.0f} h", sign, std::floor(length / hour));
  return fmt::format("{}{:.0f} days", sign, std::floor(length / day));
}

/// The shortest length, from kShortId on, at which the ids of that column differ.
std::size_t id_length(const json::array& rows, const std::string& member) {
  std::vector<std::string> ids;
  std::size_t longest = 0;
  for (const json::value& row : rows) {
    const json::value* id = member_of(row, member);
    if (id == nullptr || !id->is_string()) continue;
    ids.emplace_back(id->get_string().c_str());
    longest = std::max(longest, ids.back().size());
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (std::size_t length = kShortId; length < longest; ++length) {
    const auto same = [&](const std::string& a, const std::string& b) {
      return a.substr(0, length) == b.substr(0, length);
    };
    if (std::ranges::adjacent_find(ids, same) == ids.end()) return length;
  }
  return longest;
}

/// The value of a column in words; empty: none.
std::string value_text(const ListColumn& column, const json::value& value) {
  if (column.kind != CellKind::pairs || !value.is_object()) return member_text(column.member, value);
  std::vector<std::string> pairs;
  for (const auto& [name, text] : value.get_object()) {
    pairs.push_back(std::string(name) + "=" + member_text("", text));
  }
  return fmt::format("{}", fmt::join(pairs, ","));
}

bool is_estimated(const json::value& row, const ListColumn& column) {
  return column.other.empty() || number_in(row, column.other).value_or(0) != 0;
}

bool is_true(const json::value& row, const ListColumn& column) {
  const json::value* const flag = member_of(row, column.other);
  return flag != nullptr && flag->is_bool() && flag->get_bool();
}

/// By more than rounding.
bool is_over(const json::value& row, const ListColumn& column) {
  constexpr double rounding = 1 + 1e-6;
  const auto value = number_in(row, column.member), bound = number_in(row, column.other);
  return value && bound && *value > *bound * rounding;
}

/// No text, or no clock.
bool is_empty(const ListColumn& column, const json::value& value) {
  if (column.kind == CellKind::clock) return value.is_number() && value.to_number<double>() == 0;
  return value.is_string() && value.get_string().empty();
}

std::string cell(const json::value& row, const ListColumn& column, double now_s, std::size_t id_length) {
  const json::value* const value = member_of(row, column.member);
  if (value == nullptr || is_empty(column, *value)) return "-";
  std::string text = column.kind == CellKind::age && value->is_number() ? age_text(now_s - value->to_number<double>())
                                                                        : value_text(column, *value);
  if (column.kind == CellKind::id) text = text.substr(0, id_length);
  if (column.kind == CellKind::parts) {
    const json::value* const done = member_of(row, column.other);
    text = (done == nullptr ? "0" : member_text(column.other, *done)) + "/" + text;
  }
  if (column.kind == CellKind::range) {
    const json::value* const least = member_of(row, column.other);
    if (least != nullptr && *least != *value) text = formats::json_text(*least) + "-" + text;
  }
  if (column.kind == CellKind::estimate && is_estimated(row, column)) text += " est.";
  if (column.kind == CellKind::measured && !is_true(row, column)) text += " est.";
  if (column.kind == CellKind::bounded && is_over(row, column)) text += " over";
  if (column.kind == CellKind::possible) text += is_true(row, column) ? " modeled" : " est.";
  if (column.kind == CellKind::state && is_true(row, column)) text += ", maximum clock";
  text = terminal_text(text);
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

/// A column of a table, with its title and its cells.
struct ShownColumn {
  const ListColumn* column = nullptr;
  bool is_left = false;
  std::vector<std::string> cells;

  [[nodiscard]] std::size_t width() const {
    std::size_t widest = 0;
    for (const std::string& text : cells) widest = std::max(widest, display_columns(text));
    return widest;
  }
};

std::size_t width_of(const std::vector<ShownColumn>& columns) {
  std::size_t width = 0;
  for (const ShownColumn& column : columns) width += (width == 0 ? 0 : 2) + column.width();
  return width;
}

/// Leaves columns out and cuts texts, as far as allowed, until the table is no wider than that.
void fit(std::vector<ShownColumn>& columns, std::size_t limit) {
  const auto is_roomy = [](const ShownColumn& shown) {
    return shown.column->use == ListColumn::Use::roomy || shown.column->use == ListColumn::Use::some;
  };
  while (width_of(columns) > limit) {
    const auto last = std::find_if(columns.rbegin(), columns.rend(), is_roomy);
    if (last == columns.rend()) break;
    columns.erase(std::next(last).base());
  }
  for (std::size_t width = width_of(columns); width > limit; width = width_of(columns)) {
    ShownColumn* widest = nullptr;
    for (ShownColumn& shown : columns) {
      const bool is_text = shown.is_left && shown.column->kind != CellKind::id && shown.width() > kLeastText;
      if (is_text && (widest == nullptr || shown.width() > widest->width())) widest = &shown;
    }
    if (widest == nullptr) return;
    const std::size_t before = widest->width(), excess = width - limit;
    const std::size_t wanted = before > kLeastText + excess ? before - excess : kLeastText;
    for (std::string& text : widest->cells) text = cut_line(text, wanted);
  }
}

std::string table_text(const json::array& rows, const ListForm& form, bool wide, double now_s) {
  std::vector<ShownColumn> columns;
  for (const ListColumn& column : form.columns) {
    if (column.use == ListColumn::Use::csv || (column.use == ListColumn::Use::wide && !wide)) continue;
    const auto has_value = [&](const json::value& row) { return member_of(row, column.member) != nullptr; };
    if (column.use == ListColumn::Use::some && std::ranges::none_of(rows, has_value)) continue;
    const std::size_t length =
        column.kind == CellKind::id && !wide ? id_length(rows, column.member) : std::string::npos;
    ShownColumn shown{&column, std::ssize(columns) < form.left_columns, {column.title}};
    for (const json::value& row : rows) shown.cells.push_back(cell(row, column, now_s, length));
    columns.push_back(std::move(shown));
  }
  if (!wide) fit(columns, output_columns());
  const auto row_of = [&](std::size_t row) {
    std::vector<std::string> cells;
    for (const ShownColumn& shown : columns) cells.push_back(shown.cells[row]);
    return cells;
  };
  const auto left = static_cast<std::size_t>(std::ranges::count_if(columns, &ShownColumn::is_left));
  report::TextTable table(row_of(0), left);
  for (std::size_t row = 1; row <= rows.size(); ++row) table.add(row_of(row));
  return table.to_string();
}

/// A text that no spreadsheet takes for a formula (OWASP, CSV injection).
std::string plain_text(std::string text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos) text.insert(0, "'");
  return text;
}

std::string csv_value(const json::value& row, const ListColumn& column) {
  const json::value* const value = member_of(row, column.member);
  if (value == nullptr) return column.kind == CellKind::count || column.kind == CellKind::parts ? "0" : "";
  if (column.kind == CellKind::pairs) return plain_text(value_text(column, *value));
  return value->is_string() ? plain_text(std::string(value->get_string().c_str())) : formats::json_text(*value);
}

std::string csv_text(const json::array& rows, const ListForm& form) {
  const auto line_of = [&](const std::function<std::string(const ListColumn&)>& field) {
    std::vector<std::string> fields;
    for (const ListColumn& column : form.columns) fields.push_back(formats::csv_field(field(column)));
    return fmt::format("{}\n", fmt::join(fields, ","));
  };
  std::string text = line_of([](const ListColumn& column) { return column.member; });
  for (const json::value& row : rows) {
    text += line_of([&](const ListColumn& column) { return csv_value(row, column); });
  }
  return text;
}

std::partial_ordering order_of(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) return a.to_number<double>() <=> b.to_number<double>();
  if (a.is_string() && b.is_string()) return std::string_view(a.get_string()) <=> std::string_view(b.get_string());
  return a.is_number() <=> b.is_number();
}

/// Rows without a value come last in either direction.
void sort_rows(json::array& rows, const ListColumn& column, bool reverse) {
  const bool descending = reverse != (column.kind == CellKind::age);
  std::vector<json::value> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, [&](const json::value& a, const json::value& b) {
    const json::value* const left = member_of(a, column.member);
    const json::value* const right = member_of(b, column.member);
    if (left == nullptr || right == nullptr) return left != nullptr && right == nullptr;
    return (descending ? order_of(*right, *left) : order_of(*left, *right)) < 0;
  });
  rows = json::array(sorted.begin(), sorted.end());
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

const ListColumn* column_named(const ListForm& form, const std::string& name) {
  const auto found = std::ranges::find_if(form.columns, [&](const ListColumn& column) {
    return lower(name) == lower(column.title) || name == column.member;
  });
  return found == form.columns.end() ? nullptr : &*found;
}

Result<std::string> list_text(const std::string& body, const ListForm& form, const ListOptions& options) {
  boost::system::error_code problem;
  json::value answer = json::parse(body, problem);
  json::array* const list = list_to_change(answer, form.member);
  if (list == nullptr) {
    return Error{ErrorCode::unavailable, fmt::format("the server answered without a list of {}", form.member)};
  }
  json::array& rows = *list;
  if (!options.sort.empty()) {
    sort_rows(rows, *column_named(form, options.sort), options.reverse);
  } else if (options.reverse) {
    std::reverse(rows.begin(), rows.end());
  }
  if (options.output == "json") return formats::json_text(answer) + "\n";
  if (options.output == "csv") return csv_text(rows, form);
  const bool wide = options.output == "wide";
  const double now_s = SystemClock().now_s();
  if (!form.page) return table_text(rows, form, wide, now_s);
  return form.page(answer, wide, now_s) + (wide ? "\n" + table_text(rows, form, wide, now_s) : "");
}

/// On a terminal in place of the previous drawing, cut to its size.
void draw(const std::string& text) {
  const auto size = terminal_size(STDOUT_FILENO);
  if (!size) return print(text);
  std::string drawing = "\x1b[H";
  std::size_t line = 0;
  for (std::size_t begins = 0; begins < text.size(); ++line) {
    const std::size_t ends = text.find('\n', begins);
    if (line + 2 < size->rows) {
      drawing += cut_line(std::string_view(text).substr(begins, ends - begins), size->columns) + "\x1b[K\n";
    }
    begins = ends + 1;
  }
  if (line + 2 > size->rows) drawing += fmt::format("... {} more rows\x1b[K\n", line + 2 - size->rows);
  print_drawing(drawing + "\x1b[J");
}

}  // namespace

std::shared_ptr<ListOptions> add_list_options(CLI::App& action, Command& command, const ListForm& form) {
  auto options = std::make_shared<ListOptions>();
  auto* output = add_default(action, "-o,--output FORM", options->output, "Form: table, wide, json or csv",
                             CLI::IsMember({"table", "wide", "json", "csv"}).description(""));
  add_json_flag(action, command)->description("The same as -o json")->excludes(output);
  std::vector<std::string> titles;
  for (const ListColumn& column : form.columns) {
    if (column.use != ListColumn::Use::csv) titles.push_back(lower(column.title));
  }
  add_value(action, "--sort COLUMN", options->sort, fmt::format("Sort by a column: {}", fmt::join(titles, ", ")),
            CLI::Validator(
                [form, titles](const std::string& name) {
                  if (column_named(form, name) != nullptr) return std::string();
                  return fmt::format("'{}' is not a column; allowed: {}", name, fmt::join(titles, ", "));
                },
                ""));
  action.add_flag("--reverse", options->reverse, "Reverse the order");
  action.add_flag("-w,--watch", options->watch, "Print the list again every two seconds, until Ctrl-C");
  return options;
}

Result<int> print_list(const std::function<Result<std::string>()>& fetch, const ListForm& form,
                       const ListOptions& options) {
  std::optional<InterruptGuard> guard;
  if (options.watch) guard.emplace();
  do {
    const Result<std::string> body = fetch();
    if (!body) return body.error();
    const Result<std::string> text = list_text(*body, form, options);
    if (!text) return text.error();
    if (!options.watch) {
      print(*text);
      return 0;
    }
    draw(*text);
    InterruptGuard::wait(Seconds(kBetweenDrawings_s));
  } while (!InterruptGuard::interrupted());
  return 0;
}

}  // namespace perseus::cli
