// Receives the other servers' notices of a PostgreSQL store, on a connection and a thread of its own.
//
// Problem: servers on one database must learn of each other's changes.
// Input:   notices "ORIGIN WHAT SEQUENCE JOB"; its own origin's are ignored.
// Output:  calls of Store::Foreign, where Post runs them. After a lost connection, a change of everything.
// Errors:  the constructor throws PostgresFailure; later, the listener connects again.
// Cost:    a thread and a connection.
// Threads: any.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/store/postgres_connection.h"
#include "server/store/store.h"

namespace perseus::store {

class PostgresListener {
 public:
  PostgresListener(std::string connection, std::string origin, Post post);
  PostgresListener(const PostgresListener&) = delete;
  PostgresListener& operator=(const PostgresListener&) = delete;
  ~PostgresListener();

  void set_foreign(Store::Foreign foreign);

  /// False while the database cannot be reached.
  [[nodiscard]] bool hears() const { return hears_; }

 private:
  struct Change {
    bool of_tokens = false;
    std::string job;
    std::int64_t sequence = 0;
  };

  void listen(PostgresConnection::Patience patience);
  void work();
  /// Waits for notifications, at most that long; true when the thread must end.
  bool stopping(int timeout_ms);
  std::vector<Change> heard();
  /// Reports a change of everything: notifications were missed while the connection was lost.
  std::vector<Change> everything();
  void post(std::vector<Change> changes);

  std::string connection_string_;
  std::string origin_;
  Post post_;
  int stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::unique_ptr<PostgresConnection> connection_;
  std::atomic<bool> hears_ = false;
  std::mutex mutex_;
  std::shared_ptr<Store::Foreign> foreign_;
  std::thread thread_;
};

}  // namespace perseus::store
