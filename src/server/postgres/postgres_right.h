// The right to write to a PostgreSQL database, of one server at a time.
//
// Problem: a server that stood still and wakes up must not write beside the one that has taken over, whatever its
//          clock says.
// Output:  take() gets the right for kRight_s of the database's time, or renews it. Each new holder has a greater
//          number, which check() compares within the transaction of each commit: a former holder's commits fail.
// Errors:  unavailable: the database. check() throws PostgresFailure.
// Cost:    a connection of its own; a round trip per call.
// Threads: any.
// Source:  docs/decisions/0066.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/postgres/postgres_connection.h"
#include "server/store/store.h"

namespace perseus::postgres {

class PostgresRight {
 public:
  explicit PostgresRight(std::string connection) : connection_string_(std::move(connection)) {}

  Result<store::Writer> take(const std::string& address);
  void give_back();
  /// Within a transaction: nobody else gets the right before its end.
  void check(PostgresConnection& transaction) const;

 private:
  store::Writer ask(const std::string& address);

  const std::string connection_string_;
  std::mutex mutex_;
  std::unique_ptr<PostgresConnection> connection_;
  std::atomic<std::int64_t> number_ = 0;  ///< 0: this server never had the right
};

}  // namespace perseus::postgres
