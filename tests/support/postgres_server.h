// A real PostgreSQL server for tests, in a folder that goes away with it.
//
// It listens on a socket in its folder only, trusts everybody there, and, since PostgreSQL refuses to run as root, runs
// as the user `postgres` where the tests are root. Unless told to it does not flush to disk: what tests kill are its
// clients. Where Debian's package is not installed there is none: PERSEUS_NEEDS_POSTGRES skips the test and says so.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace perseus::testing {

class PostgresServer {
 public:
  /// Where the programs of the newest installed version are, or "".
  static std::string programs();

  enum class Flush { never, at_every_commit };
  explicit PostgresServer(Flush flush = Flush::never);  ///< creates and starts it
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  void start();
  /// At once, throwing its clients out.
  void stop();
  /// Creates an empty database and returns its connection string.
  std::string new_database();

 private:
  Flush flush_;
  std::string folder_;
  pid_t server_ = -1;
  int databases_ = 0;
};

#define PERSEUS_NEEDS_POSTGRES() \
  if (::perseus::testing::PostgresServer::programs().empty()) GTEST_SKIP() << "no PostgreSQL server is installed here"

}  // namespace perseus::testing
