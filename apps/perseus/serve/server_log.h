// The log of `perseus serve`: one JSON object a line, on standard error or appended to a file.
//
// Input:   a level, and a file; without a file, standard error.
// Errors:  open(): the file cannot be opened for appending (its directory must exist); the log continues at its
//          previous destination. A line that cannot be written at once, because the disk is full or the reader of a
//          pipe does not read, is lost; standard error reports that, at most once a minute. Logging never waits.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spdlog {
class logger;
}

namespace perseus::cli {

class ServerLog {
 public:
  /// Logs to standard error, until open() changes the destination.
  explicit ServerLog(const std::string& level);
  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;
  /// Opens the file again by its name, for example after a log rotation has moved the old one.
  Status open(const std::string& level, const std::string& file);

  void debug(std::string_view message);
  void info(std::string_view message);
  void warn(std::string_view message);
  void error(std::string_view message);
  /// `change`: a JSON object.
  void audit(const std::string& change);

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace perseus::cli
