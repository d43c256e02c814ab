// The server's own schedules and its own reader of action tables, for the Python tests.
//
// usage: perseus_action_table NAME RANKS MICROBATCHES CHUNKS   prints the named schedule's table
//        perseus_action_table -                                prints standard input's table, compute-only
#include "io/formats/action_table.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace {

perseus::Result<perseus::model::Schedule> schedule(char** arguments, int count) {
  if (count == 2) {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    return perseus::formats::parse_action_table(text, "standard input");
  }
  return perseus::model::make_schedule(arguments[1],
                                       {std::atoi(arguments[2]), std::atoi(arguments[3]), std::atoi(arguments[4])});
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 5) return 2;
  const auto made = schedule(arguments, count);
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  const auto table = perseus::formats::format_action_table(*made);
  if (!table) return std::fprintf(stderr, "%s\n", table.error().message.c_str()), 1;
  std::fputs(table->c_str(), stdout);
  return 0;
}
