#include "base/owned_fd.h"

#include <unistd.h>

#include <utility>

namespace perseus {

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int OwnedFd::release() { return std::exchange(fd_, -1); }

bool OwnedFd::close() {
  const int fd = release();
  return fd < 0 || ::close(fd) == 0;
}

}  // namespace perseus
