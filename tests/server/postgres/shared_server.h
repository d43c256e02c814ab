// One PostgreSQL server for all tests of the program, because starting one takes a second.
#pragma once

#include "tests/support/postgres_server.h"

namespace perseus::testing {

inline PostgresServer& shared_server() {
  static PostgresServer server;
  return server;
}

}  // namespace perseus::testing
