#include "io/formats/toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace perseus::formats {
namespace {

constexpr std::size_t kShownText = 64;

std::string text_of(const toml::node& node) {
  if (const auto* s = node.as_string()) return fmt::format("'{}'", std::string_view(s->get()).substr(0, kShownText));
  if (const auto* i = node.as_integer()) return fmt::format("{}", i->get());
  if (const auto* f = node.as_floating_point()) return fmt::format("{:g}", f->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a table";
  std::ostringstream text;
  if (const auto* date = node.as_date()) text << "the date " << date->get();
  if (const auto* time = node.as_time()) text << "the time " << time->get();
  if (const auto* moment = node.as_date_time()) text << "the date and time " << moment->get();
  return text.str();
}

std::string text_of(NumberRange allowed, bool whole) {
  return fmt::format("{} from {:.10g} to {:.10g}", whole ? "an integer" : "a number", allowed.least, allowed.most);
}

std::optional<double> number_at(const toml::node& node, NumberRange allowed, bool whole) {
  double value = std::nan("");
  if (const auto* i = node.as_integer()) {
    value = static_cast<double>(i->get());
  } else if (const auto* f = node.as_floating_point(); f != nullptr && !whole) {
    value = f->get();
  }
  if (value >= allowed.least && value <= allowed.most) return value;
  return std::nullopt;
}

std::string_view line_at(std::string_view text, std::size_t line) {
  for (; line > 1 && text.find('\n') != text.npos; --line) text.remove_prefix(text.find('\n') + 1);
  return text.substr(0, text.find('\n'));
}

/// The value, without quotes and lists, in which that place is; empty: it is in none.
std::string_view bare_value(std::string_view text, toml::source_position place) {
  text = line_at(text, place.line);
  const std::size_t equals = text.find('=');
  if (equals >= place.column) return {};  // columns count from 1
  text = text.substr(equals + 1, text.find('#') - std::min(text.find('#'), equals + 1));
  constexpr std::string_view blanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  return text.find_first_of("\"'[{") == text.npos ? text : std::string_view();
}

int line_of(const toml::node& node) { return std::max(1, static_cast<int>(node.source().begin.line)); }

/// The first line (from 1) with a table header that no key follows, which toml++ does not check; or 0.
int line_of_broken_header(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  int line = 1;
  for (;; ++line) {
    std::string_view rest = text.substr(0, text.find('\n'));
    const auto skip_blanks = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size())); };
    skip_blanks();
    const bool is_header = rest.starts_with('[');
    for (int k = 0; k < 2 && rest.starts_with('['); ++k) {
      rest.remove_prefix(1);
      skip_blanks();
    }
    const auto starts_key = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
             c == '"' || c == '\'';
    };
    if (is_header && (rest.empty() || !starts_key(rest.front()))) return line;
    if (text.find('\n') == std::string_view::npos) return 0;
    text.remove_prefix(text.find('\n') + 1);
  }
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// toml++ 3.3 reads beyond its table of letters where it meets a character that is not ASCII outside texts and
/// comments, also while it looks for the end of what is wrong. So a file is read with '~', which is allowed in these
/// only, in place of such characters first.
std::string with_tildes(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '~');
  return text;
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text, const std::string& file) {
  if (const int line = line_of_broken_header(text); line > 0) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}:{}: '[' without a name; allowed: [table] or [[table]]", file, line)};
  }
  toml::parse_result parsed = toml::parse(with_tildes(std::string(text)));
  const bool valid = static_cast<bool>(parsed);
  if (valid && !is_ascii(text)) parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    const auto line = error.source().begin.line;
    if (!valid && !is_ascii(line_at(text, line)))
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}:{}: a character that is not ASCII; allowed: ASCII, and anything in texts and in "
                               "comments",
                               file, line)};
    const bool repeats = error.description().find("redefine") != std::string_view::npos;
    const std::string_view value = repeats ? "" : bare_value(text, error.source().begin);
    return Error{ErrorCode::invalid_input,
                 value.empty() ? fmt::format("{}:{}: {}", file, line, error.description())
                               : fmt::format("{}:{}: {}; allowed: a number, true, false, a date, or a text in quotes: "
                                             "\"{}\"",
                                             file, line, value.substr(0, kShownText), value.substr(0, kShownText))};
  }
  return std::move(parsed).table();
}

TomlFields::TomlFields(const toml::table& table, const std::string& file, std::string name,
                       std::span<const std::string_view> keys)
    : table_(&table), file_(&file), name_(std::move(name)), keys_(keys) {
  reject_unknown();
}

void TomlFields::reject_unknown() {
  const toml::node* first = nullptr;
  std::string_view unknown;
  for (const auto& [key, node] : *table_) {
    if (std::ranges::find(keys_, key.str()) != keys_.end()) continue;
    if (first != nullptr && line_of(*first) <= line_of(node)) continue;
    first = &node;
    unknown = key.str();
  }
  if (first == nullptr) return;
  error_ = Error{ErrorCode::invalid_input, fmt::format("{} unknown key '{}'; allowed: {}", prefix(*first),
                                                       unknown.substr(0, kShownText), fmt::join(keys_, ", "))};
}

std::string TomlFields::prefix(const toml::node& node) const {
  return fmt::format("{}:{}:{}{}", *file_, line_of(node), name_.empty() ? "" : " ", name_);
}

std::string TomlFields::where() const { return prefix(*table_); }

std::string TomlFields::where(std::string_view key) const {
  const toml::node* node = table_->get(key);
  return fmt::format("{}:{}", *file_, line_of(node != nullptr ? *node : *table_));
}

void TomlFields::fail(std::string_view key, const std::string& allowed) {
  if (error_) return;
  const toml::node* node = table_->get(key);
  error_ =
      Error{ErrorCode::invalid_input, fmt::format("{} {}: {}; allowed: {}", prefix(node != nullptr ? *node : *table_),
                                                  key, node != nullptr ? text_of(*node) : "is missing", allowed)};
}

const toml::node* TomlFields::find(std::string_view key, bool required, const std::string& allowed) {
  PERSEUS_CHECK(std::ranges::find(keys_, key) != keys_.end(), "a key that is read is on the list of keys");
  read_.emplace_back(key);
  const toml::node* node = table_->get(key);
  if (node == nullptr && required) fail(key, allowed);
  return node;
}

double TomlFields::number(std::string_view key, NumberRange allowed) {
  if (find(key, true, text_of(allowed, false)) == nullptr) return allowed.least;
  return number_or(allowed.least, key, allowed);
}

double TomlFields::number_or(double absent, std::string_view key, NumberRange allowed) {
  const toml::node* node = find(key, false, "");
  if (node == nullptr) return absent;
  const auto value = number_at(*node, allowed, false);
  if (!value) fail(key, text_of(allowed, false));
  return value.value_or(absent);
}

long TomlFields::integer(std::string_view key, NumberRange allowed) {
  if (find(key, true, text_of(allowed, true)) == nullptr) return static_cast<long>(allowed.least);
  return integer_or(static_cast<long>(allowed.least), key, allowed);
}

long TomlFields::integer_or(long absent, std::string_view key, NumberRange allowed) {
  const toml::node* node = find(key, false, "");
  if (node == nullptr) return absent;
  const auto value = number_at(*node, allowed, true);
  if (!value) fail(key, text_of(allowed, true));
  return value ? static_cast<long>(*value) : absent;
}

bool TomlFields::boolean_or(bool absent, std::string_view key) {
  const toml::node* node = find(key, false, "");
  if (node == nullptr) return absent;
  const auto* value = node->as_boolean();
  if (value == nullptr) fail(key, "true or false");
  return value != nullptr ? value->get() : absent;
}

std::string TomlFields::string(std::string_view key) {
  const toml::node* node = find(key, true, "a text");
  if (node == nullptr) return {};
  const auto* value = node->as_string();
  if (value == nullptr || value->get().empty()) {
    fail(key, "a text that is not empty");
    return {};
  }
  return value->get();
}

std::optional<std::string> TomlFields::text_or_number(std::string_view key) {
  const toml::node* node = find(key, false, "");
  if (node == nullptr) return std::nullopt;
  if (const auto* text = node->as_string()) return text->get();
  if (const auto* integer = node->as_integer()) return std::to_string(integer->get());
  if (const auto* real = node->as_floating_point()) return fmt::format("{}", real->get());
  fail(key, "a text or a number");
  return std::nullopt;
}

template <class T, class Take>
std::vector<T> TomlFields::list(std::string_view key, const std::string& expected, Take take) {
  const toml::node* node = find(key, true, expected);
  if (node == nullptr) return {};
  const auto* array = node->as_array();
  std::vector<T> values;
  if (array != nullptr) {
    for (const toml::node& element : *array) {
      if (std::optional<T> value = take(element)) values.push_back(*std::move(value));
    }
  }
  if (array == nullptr || array->empty() || values.size() != array->size()) fail(key, expected);
  return values;
}

std::vector<double> TomlFields::numbers(std::string_view key, NumberRange allowed) {
  return list<double>(key, fmt::format("a list of at least one, each {}", text_of(allowed, false)),
                      [&](const toml::node& element) { return number_at(element, allowed, false); });
}

std::vector<std::pair<double, double>> TomlFields::pairs(std::string_view key, NumberRange allowed) {
  using Pair = std::pair<double, double>;
  const auto pair_in = [&](const toml::node& element) -> std::optional<Pair> {
    const auto* pair = element.as_array();
    if (pair != nullptr && pair->size() != 2) return std::nullopt;
    const auto first = number_at(pair != nullptr ? *pair->get(0) : element, allowed, false);
    const auto second = pair != nullptr ? number_at(*pair->get(1), allowed, false) : first;
    return first && second ? std::optional(Pair(*first, *second)) : std::nullopt;
  };
  const std::string each = text_of(allowed, false);
  return list<Pair>(key, fmt::format("a list of at least one, each {} or a list of two such numbers", each), pair_in);
}

std::vector<std::string> TomlFields::strings(std::string_view key) {
  return list<std::string>(key, "a list of texts, at least one",
                           [](const toml::node& element) { return element.value_exact<std::string>(); });
}

const toml::table* TomlFields::table(std::string_view key) {
  const toml::node* node = find(key, false, "");
  if (node == nullptr) return nullptr;
  if (!node->is_table()) fail(key, fmt::format("a table, [{}]", key));
  return node->as_table();
}

std::vector<const toml::table*> TomlFields::tables(std::string_view key) {
  const toml::node* node = find(key, false, "");
  if (node == nullptr) return {};
  std::vector<const toml::table*> all;
  const auto* array = node->as_array();
  if (array != nullptr) {
    for (const toml::node& element : *array)
      if (const auto* table = element.as_table()) all.push_back(table);
  }
  if (array == nullptr || all.size() != array->size()) fail(key, fmt::format("tables, each under [[{}]]", key));
  return all;
}

void TomlFields::exclude(std::string_view key, const std::string& where) {
  if (find(key, false, "") != nullptr) fail(key, "nothing where " + where);
}

void TomlFields::reject_others() {
  for (const auto& [key, node] : *table_) {
    if (std::ranges::find(read_, key.str()) == read_.end()) fail(key.str(), "nothing beside the other keys here");
  }
}

}  // namespace perseus::formats
