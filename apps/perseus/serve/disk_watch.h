// Free space on the file system of the database.
//
// Input:   a folder on it.
// Output:  the last measurement; each query starts the next one, on the executor, since a disk that hangs would block
//          the caller.
// Errors:  a problem in words: full, nearly full, read-only, or not readable.
// Cost:    one system call on another thread.
// Threads: I/O thread. The object outlives the executor's work.
#pragma once

#include <memory>
#include <string>

#include "server/routes/api.h"

namespace perseus::cli {

class DiskWatch {
 public:
  DiskWatch(std::string folder, work::Executor& executor);
  routes::DiskHealth look();

 private:
  struct Last {
    routes::DiskHealth health;
    bool measuring = false;
  };
  std::string folder_;
  work::Executor& executor_;
  std::shared_ptr<Last> last_ = std::make_shared<Last>();
};

}  // namespace perseus::cli
