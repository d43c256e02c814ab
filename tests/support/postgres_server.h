// A real PostgreSQL server for tests, in a temporary folder.
//
// It listens only on a socket in its folder and trusts every connection. PostgreSQL refuses to run as root, so it
// runs as the user `postgres` where the tests are root. By default it does not flush to disk, because tests kill its
// clients and not the server.
// Errors:  without Debian's package, PERSEUS_NEEDS_POSTGRES skips the test and prints the reason.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "tests/support/scratch_folder.h"

namespace perseus::testing {

class PostgresServer {
 public:
  /// Folder of the newest installed version's programs, or "".
  static std::string programs();

  enum class Flush { never, at_every_commit };
  explicit PostgresServer(Flush flush = Flush::never);  ///< creates and starts it
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  void start();
  /// Stops it at once and disconnects its clients.
  void stop();
  /// Creates an empty database and returns its connection string.
  std::string new_database();

 private:
  Flush flush_;
  ScratchFolder scratch_;
  std::string folder_;
  pid_t server_ = -1;
  int databases_ = 0;
};

#define PERSEUS_NEEDS_POSTGRES() \
  if (::perseus::testing::PostgresServer::programs().empty()) GTEST_SKIP() << "no PostgreSQL server is installed here"

}  // namespace perseus::testing
