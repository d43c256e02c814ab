// The fields of one TOML table, with errors that give the location: used by all TOML formats.
//
// Input:   a parsed table, its name in messages and the list of the keys that it may have.
// Output:  each getter's value, or a neutral one after an error, so that a reader gets all it needs and then checks
//          error() once: an unknown key, the first in the file, or else the first error in the order of the getters.
// Errors:  "file:line: [table] key: VALUE; allowed: ...", the line being the value's, or the table's if a key is
//          missing; reject_others() names the first key that no getter has read. A getter of a key that is not on the
//          list is a programming error.
// Cost:    a lookup per key.
// Threads: one reader, one thread.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expression) \
  static_cast<void>(0)  // some abort on text that is not TOML; the parser reports the error instead
#include <toml++/toml.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace perseus::formats {

struct NumberRange {
  double least = 0;
  double most = 0;
};

class TomlFields {
 public:
  /// `name`: "[cluster]"; empty for the file's own keys. `keys`: all that the table may have; must outlive this object.
  TomlFields(const toml::table& table, const std::string& file, std::string name,
             std::span<const std::string_view> keys);

  [[nodiscard]] bool has(std::string_view key) const { return table_->contains(key); }
  [[nodiscard]] bool is_list(std::string_view key) const { return (*table_)[key].is_array(); }
  double number(std::string_view key, NumberRange allowed);  ///< must be there
  double number_or(double absent, std::string_view key, NumberRange allowed);
  long integer(std::string_view key, NumberRange allowed);
  long integer_or(long absent, std::string_view key, NumberRange allowed);
  bool boolean_or(bool absent, std::string_view key);
  std::string string(std::string_view key);  ///< not empty
  /// A text or a number, as text; nullopt if it is absent.
  std::optional<std::string> text_or_number(std::string_view key);
  std::vector<double> numbers(std::string_view key, NumberRange allowed);
  /// A list of numbers or [number, number]; a number stands for both of its pair.
  std::vector<std::pair<double, double>> pairs(std::string_view key, NumberRange allowed);
  std::vector<std::string> strings(std::string_view key);
  /// The table under `key`, or null.
  const toml::table* table(std::string_view key);
  /// The tables of [[key]], none if it is absent.
  std::vector<const toml::table*> tables(std::string_view key);
  /// Fails if the key is there; `where` completes "allowed: nothing where ...".
  void exclude(std::string_view key, const std::string& where);
  void reject_others();

  /// An error at `key`, or at the table where it is missing.
  void fail(std::string_view key, const std::string& allowed);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  /// "file:12: [table]"
  [[nodiscard]] std::string where() const;
  /// "file:13", of a key's value; of the table if the key is absent.
  [[nodiscard]] std::string where(std::string_view key) const;

 private:
  const toml::node* find(std::string_view key, bool required, const std::string& allowed);
  /// `take` makes a std::optional<T> of an element: nothing, it is not as expected.
  template <class T, class Take>
  std::vector<T> list(std::string_view key, const std::string& expected, Take take);
  void reject_unknown();
  /// "file:12: [table]", or "file:12:" without a name.
  [[nodiscard]] std::string prefix(const toml::node& node) const;

  const toml::table* table_;
  const std::string* file_;
  std::string name_;
  std::span<const std::string_view> keys_;
  std::vector<std::string> read_;
  std::optional<Error> error_;
};

/// Base of the readers of a whole file: reads its tables, and nothing more after the first error.
class TomlFileReader {
 protected:
  TomlFileReader(const toml::table& root, const std::string& file, std::span<const std::string_view> keys,
                 std::size_t most_tables)
      : root_(root, file, "", keys), file_(file), most_tables_(most_tables) {}

  void keep(const std::optional<Error>& error) {
    if (!error_ && error) error_ = error;
  }
  void fail(std::string_view key, const std::string& allowed) {
    root_.fail(key, allowed);
    keep(root_.error());
  }
  /// Calls `fill` with the fields of [key], if the table is there.
  template <class Fill>
  void read_table(std::string_view key, std::span<const std::string_view> keys, Fill fill) {
    const toml::table* table = root_.table(key);
    if (table != nullptr && !error_) read_fields(*table, "[" + std::string(key) + "]", keys, fill);
  }
  /// The same for each [[key]].
  template <class Fill>
  void read_tables(std::string_view key, std::span<const std::string_view> keys, Fill fill) {
    if (error_) return;
    const std::vector<const toml::table*> tables = root_.tables(key);
    if (tables.size() > most_tables_) root_.fail(key, "at most " + std::to_string(most_tables_) + " of them");
    keep(root_.error());
    for (const toml::table* table : tables) {
      if (!error_) read_fields(*table, "[[" + std::string(key) + "]]", keys, fill);
    }
  }
  /// The first error, also of keys that were not read.
  const std::optional<Error>& end() {
    root_.reject_others();
    keep(root_.error());
    return error_;
  }

  TomlFields root_;
  const std::string& file_;
  std::optional<Error> error_;

 private:
  template <class Fill>
  void read_fields(const toml::table& table, std::string name, std::span<const std::string_view> keys, Fill fill) {
    TomlFields fields(table, file_, std::move(name), keys);
    fill(fields);
    fields.reject_others();
    keep(fields.error());
  }
  std::size_t most_tables_;
};

/// The parsed file; an Error "file:line: reason" for text that is no TOML.
Result<toml::table> parse_toml(std::string_view text, const std::string& file);

}  // namespace perseus::formats
