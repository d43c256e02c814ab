// Notifies a service manager (systemd) that the server is ready, alive or stopping.
//
// Input:   NOTIFY_SOCKET, and WATCHDOG_USEC with WATCHDOG_PID, of the environment.
// Output:  datagrams "READY=1", "WATCHDOG=1", "STOPPING=1", each with a line for `systemctl status`. Nothing without
//          a service manager.
// Errors:  none: a manager that does not listen is ignored.
// Source:  sd_notify(3), "Notes"; sd_watchdog_enabled(3).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace perseus::cli {

class ServiceManager {
 public:
  /// Reads the environment and removes the variables from it: child processes are not the service.
  ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;
  ~ServiceManager();

  void ready(std::string_view status) { tell("READY=1\nSTATUS=" + std::string(status)); }
  void alive() { tell("WATCHDOG=1"); }
  void stopping() { tell("STOPPING=1"); }
  /// Interval of alive(): half of the time after which the manager ends the process. Nullopt: no watchdog.
  [[nodiscard]] std::optional<std::chrono::microseconds> every() const { return every_; }

 private:
  void tell(const std::string& message) const;

  int socket_ = -1;
  std::string address_;  ///< "/run/..." or "@abstract"; empty: no service manager
  std::optional<std::chrono::microseconds> every_;
};

}  // namespace perseus::cli
