// What the parts of server_load share: its input, and the rows that they measure.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"

namespace perseus::bench {

struct Row {
  std::string what, unit;
  double value, must, aim;
};
inline void describe(JsonWriter& f, const Row& row) {
  f.always("what", row.what);
  f.always("unit", row.unit);
  f.always("value", with_digits(row.value, 4));
  f.always("must", with_digits(row.must, 4));
  f.always("aim", with_digits(row.aim, 4));
}

struct Load {
  const char* program;
  std::string csv;
  int ranks, stages;
  std::string data;  ///< a folder of its own
};

/// Effect of lists, dashboards and event streams on ranks, on a server with 5,000 jobs.
void measure_readers(const Load& load, std::vector<Row>& rows);

/// Ranks of Zeus's protocol, which open a connection for each call.
void measure_zeus(const Load& load, std::vector<Row>& rows);

}  // namespace perseus::bench
