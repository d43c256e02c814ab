#include "serve/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "io/formats/number.h"

namespace perseus::cli {
namespace {

std::string taken(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

}  // namespace

ServiceManager::ServiceManager() : address_(taken("NOTIFY_SOCKET")) {
  const auto watched_us = formats::number_in<long>(taken("WATCHDOG_USEC"));
  const auto watched_pid = formats::number_in<long>(taken("WATCHDOG_PID"));
  const bool usable =
      (address_.starts_with('/') || address_.starts_with('@')) && address_.size() < sizeof(sockaddr_un::sun_path);
  if (!usable) address_.clear();
  if (address_.empty()) return;
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (watched_us && *watched_us > 1 && (!watched_pid || *watched_pid == getpid())) {
    every_ = std::chrono::microseconds(*watched_us / 2);
  }
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) close(socket_);
}

void ServiceManager::tell(const std::string& message) const {
  if (socket_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (address_.front() == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  (void)sendto(socket_, message.data(), message.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), length);
}

}  // namespace perseus::cli
