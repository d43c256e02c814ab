// The one writer of lists: a table for people, JSON and CSV for programs.
//
// Input:   a server's response, a member of which is a list, and the columns.
// Output:  table: a header and a row per element, numbers with their units, no wider than the terminal if there is one:
//          columns are left out and texts are cut; wide: all columns, ids in full; csv: the
//          columns' members as they are, with ' before a text that a spreadsheet would take for a formula; json: the
//          response as the server sent it, its list in the requested order.
// Errors:  unavailable for a response without that list.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "command_line/command.h"

namespace perseus::cli {

struct ListColumn {
  /// table: in all; roomy: in all, unless the terminal is too narrow (the last one is left out first); some: as roomy,
  /// and in tables only if a row has a value; wide: in wide and CSV; csv: in CSV only
  enum class Use { table, roomy, some, wide, csv };
  enum class Kind { value, id, age, parts, range, pairs, count, clock, estimate, measured, possible, bounded, state };

  std::string title;   ///< in tables, and for --sort
  std::string member;  ///< of a row; the header in CSV
  Use use = Use::table;
  /// id: the table shows its beginning; age: a time whose distance from now is shown, youngest first in order;
  /// parts: "other/member"; range: "other-member", or one of them if they are equal; pairs: an object of strings as
  /// "name=value,name=value"; count: a number that the server leaves out where it is 0; clock: none if it is 0;
  /// estimate: followed by "est.", or only where `other`, its estimated part, is not 0; measured: followed by "est."
  /// unless `other` is true; possible: followed by "modeled" where `other` is true, otherwise by "est."; bounded:
  /// followed by "over" where it exceeds `other`; state: followed by "maximum clock" where `other` is true.
  Kind kind = Kind::value;
  std::string other = {};  ///< another member of the row
};

struct ListForm {
  std::string member;  ///< of the response: a list of objects, or of strings, which are the first column
  std::vector<ListColumn> columns;
  int left_columns = 1;  ///< the others are right-aligned
  /// In place of the table, and before it if wide: the text for people, of the whole response. May be empty.
  std::function<std::string(const boost::json::value& answer, bool wide, double now_s)> page = {};
};

struct ListOptions {
  std::string output = "table";
  std::string sort;
  bool reverse = false;
  bool watch = false;
};

/// --output, --json, --sort, --reverse and --watch.
std::shared_ptr<ListOptions> add_list_options(CLI::App& action, Command& command, const ListForm& form);

/// Prints what `fetch` returns; with --watch again every two seconds, until Ctrl-C.
Result<int> print_list(const std::function<Result<std::string>()>& fetch, const ListForm& form,
                       const ListOptions& options);

}  // namespace perseus::cli
